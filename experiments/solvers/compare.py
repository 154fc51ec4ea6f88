"""Every solver on every task: work and seconds to a certified gap, as results.json, a table and figures.

python compare.py --data DATA [--task NAME ...]        run tasks, adding to results.json
python compare.py --render                             table in README.md and figures from results.json
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from readme import fill, table as markdown

from kcrf_core.chains import Problem
from kcrf_core.config import load_template, parse_config, with_options
from kcrf_core.corpora import Corpus, read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import DTYPES, fit_terms
from kcrf_core.objective import Engine, Objective, ObjectiveTerm, Partition, Point, Vectors
from kcrf_core.objective.solvers import SOLVERS, Observer, Progress, Run, SolverResult, certificate, lbfgs
from kcrf_core.objective.solvers.initial_inverse import Diagonal
from kcrf_core.objective.solvers.run import until_stopped
from kcrf_core.system import Workers

HERE = Path(__file__).parent
SAMPLES = HERE.parent.parent / "sample_data"
RESULTS = HERE / "results.json"
PLAIN = "plain L-BFGS"
MOST_PASSES = 4_000
LOOSE = 1e-3
HEADER = ("solver", "stop", "P", "gap", "passes", "products", "steps", "work", "seconds", "work to 1e-3")


@dataclass(frozen=True)
class Task:
    title: str
    path: str  # below the folder of the data, or of the samples
    options: dict[str, Any]
    tolerance: float = 1e-4
    template: str | None = None  # beside the data
    fold: str | None = None  # file of fold numbers: train on fold 0
    sample: bool = False
    solvers: tuple[str, ...] = (PLAIN, *SOLVERS)


def _accent(degree: int) -> Task:
    options = {"kernel": "poly", "degree": degree, "map": "full", "sigma2": 1.0}
    return Task(f"pitch accent, poly-{degree}, full map, sigma2 1", "pitch_accent.conll", options, sample=True)


def _ocr(degree: int, size: int, sigma2: float, tolerance: float, *solvers: str) -> Task:
    options = {"kernel": "poly", "degree": degree, "size": size, "sigma2": sigma2}
    title = f"OCR small, poly-{degree}, {size:,} pivots, sigma2 {sigma2:g}"
    return Task(title, "ocr/all.conll", options, tolerance, fold="ocr/folds.txt", solvers=solvers)


TASKS = {
    "accent-1": _accent(1),
    "accent-2": _accent(2),
    "accent-3": _accent(3),
    "basenp": Task(
        "CRF++ basenp, its template, linear, sigma2 1",
        "crfpp/basenp/train.conll",
        {"sigma2": 1.0},
        template="crfpp/basenp/template",
    ),
    "ocr-poly2": _ocr(2, 500, 40.0, 1e-4, PLAIN, *SOLVERS),
    "ocr-poly3": _ocr(3, 1500, 80.0, 1e-3, PLAIN, *SOLVERS),
    "conll2000": Task(
        "CoNLL-2000, linear, sigma2 1",
        "conll2000/train.conll",
        {"sigma2": 1.0},
        tolerance=1e-3,
        solvers=(PLAIN, "auto", "lbfgs"),
    ),
}


# ----------------------------------------------------------------------------- plain L-BFGS from zero


class _OnePoint:
    """Lemma 9 alone, in the place of a bundle."""

    def add(self, objective: Objective, theta: np.ndarray, found: Point) -> None:
        return None  # the certificate takes the bound of each point by itself


class _FewPairs(lbfgs.Memory):
    def __init__(self, vectors: Vectors):
        super().__init__(vectors)
        self._most = min(self._most, lbfgs.FEWEST_PAIRS)


def _descend_plainly(objective: Objective, theta: np.ndarray, now: Point | None, run: Run) -> None:
    """Ten pairs and no scaling: what textbooks call L-BFGS."""
    if now is None:
        now = run.evaluate(objective, theta)
    memory = _FewPairs(objective.vectors)
    unscaled = Diagonal(np.ones(objective.size), objective.vectors)  # its length is that of the last pair
    while True:
        found = lbfgs.step(
            lambda point: run.evaluate(objective, point), theta, now, memory, unscaled, objective.vectors, run
        )
        if found is None:
            return
        theta, now = found


# ----------------------------------------------------------------------------- running


@dataclass
class _Trace:
    """What an observer sees of a run."""

    started: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, float, float, float | None]] = field(default_factory=list)  # work, seconds, P, gap

    def __call__(self, progress: Progress) -> None:
        gap = float(progress.gap) if np.isfinite(progress.gap) else None
        self.rows.append((round(progress.work, 2), round(time.perf_counter() - self.started, 3), progress.value, gap))


def load(task: Task, data: Path) -> tuple[Corpus, dict[str, Any]] | None:
    """A task's corpus and configuration; None, and a line that says so, where its data is not there."""
    root = SAMPLES if task.sample else data
    for path in (task.path, task.template, task.fold):
        if path is not None and not (root / path).exists():
            print(f"skipped: {task.title}: there is no {root / path} (DATA=folder says where to look)")
            return None
    corpus = read_corpus(str(root / task.path))
    if task.fold is not None:
        corpus = corpus.subset(np.flatnonzero(np.loadtxt(root / task.fold, dtype=int) == 0))
    raw = {} if task.template is None else load_template((root / task.template).read_text(), task.template)
    return corpus, with_options(raw, task.options)


def build(corpus: Corpus, raw: dict[str, Any], workers: Workers) -> Objective:
    config = parse_config(raw)
    encoding, dataset = fit_encoding(config, corpus)
    fitted = fit_terms(encoding, dataset, config, None, workers, Observer())
    problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), len(encoding.labels))
    terms = [ObjectiveTerm(term.config.clique, config.training.sigma2, term.map) for term in fitted]
    return Objective.on(Engine.of(Partition(problem, terms, workers, DTYPES[config.training.precision])), terms)


def solve(objective: Objective, name: str, tolerance: float) -> dict[str, Any]:
    trace = _Trace()
    theta = np.zeros(objective.size)
    if name == PLAIN:
        with mock.patch.object(certificate, "Bundle", _OnePoint):
            run = Run(tolerance, MOST_PASSES, trace)
            result: SolverResult = until_stopped(_descend_plainly, objective, theta, run)
    else:
        result = SOLVERS[name](objective, theta, Run(tolerance, MOST_PASSES, trace))
    seconds = time.perf_counter() - trace.started
    loose = next((row for row in trace.rows if row[3] is not None and row[3] <= LOOSE), None)
    return {
        "reason": result.reason,
        "objective": result.value,
        "lower": result.lower,
        "gap": result.gap if np.isfinite(result.gap) else None,
        "passes": result.passes,
        "products": result.products,
        "steps": result.steps,
        "work": round(result.work, 1),
        "seconds": round(seconds, 2),
        "work_to_1e-3": None if loose is None else loose[0],
        "seconds_to_1e-3": None if loose is None else loose[1],
        "trace": trace.rows,
    }


def run_tasks(names: list[str], data: Path, solvers: list[str] | None) -> None:
    for name in names:
        task = TASKS[name]
        loaded = load(task, data)
        if loaded is None:
            continue
        with Workers() as workers:
            objective = build(*loaded, workers)
            results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            found = results.get(name, {}).get("solvers", {}) if solvers else {}
            for solver in solvers or task.solvers:
                found[solver] = solve(objective, solver, task.tolerance)
                shown = {key: value for key, value in found[solver].items() if key != "trace"}
                print(f"{name}: {solver}: {shown}", flush=True)
        results[name] = {
            "title": task.title,
            "tolerance": task.tolerance,
            "positions": objective.problem.positions,
            "labels": objective.problem.label_count,
            "parameters": objective.size,
            "solvers": {solver: found[solver] for solver in task.solvers if solver in found},
        }
        ordered = {key: results[key] for key in TASKS if key in results}
        RESULTS.write_text(json.dumps(ordered, separators=(",", ":")) + "\n")


# ----------------------------------------------------------------------------- table and figures


def table(results: dict[str, Any]) -> str:
    lines = []
    for found in results.values():
        lines += [
            f"**{found['title']}** ({found['positions']:,} positions, {found['labels']} labels, "
            f"{found['parameters']:,} parameters; tolerance {found['tolerance']:g})",
            "",
        ]
        rows = []
        for name, one in found["solvers"].items():
            gap = "unknown" if one["gap"] is None else f"{one['gap']:.1e}"
            loose = "" if one["work_to_1e-3"] is None else f"{one['work_to_1e-3']:.1f}"
            counts = [str(one[key]) for key in ("passes", "products", "steps")]
            cost = [f"{one['work']:.1f}", f"{one['seconds']:.1f}", loose]
            rows.append([name, one["reason"], f"{one['objective']:.4f}", gap, *counts, *cost])
        lines += [markdown(HEADER, rows, text_columns=2), ""]
    return "\n".join(lines[:-1])


def figure(name: str, found: dict[str, Any]) -> None:
    """P above the best known value, and the certified gap, against work and against seconds."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    best = min(one["objective"] for one in found["solvers"].values())
    shown, axes = pyplot.subplots(2, 2, figsize=(9, 6.4), sharex="col", sharey="row", layout="constrained")
    for number, (solver, one) in enumerate(found["solvers"].items()):
        work, seconds, values, gaps = (np.array(column, dtype=float) for column in zip(*one["trace"], strict=True))
        above = np.maximum(np.minimum.accumulate(values) / best - 1, 1e-7)
        gaps = np.fmin.accumulate(gaps)
        style = {"color": f"C{number}", "lw": 2.2 if solver == "auto" else 1.2, "label": solver}
        style["ls"] = "--" if solver == PLAIN else "-"
        for column, cost in enumerate((work, seconds)):
            axes[0, column].plot(cost, above, **style)
            axes[1, column].plot(cost, gaps, **style)
    for axis in axes.flat:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("P above the best known, relative")
    axes[1, 0].set_ylabel("certified relative gap")
    axes[0, 0].set_ylim(5e-8, 1e2)
    axes[1, 0].set_ylim(found["tolerance"] / 5, 1e2)
    axes[1, 0].set_xlabel("work (passes over the whole problem)")
    axes[1, 1].set_xlabel("seconds")
    axes[0, 1].legend(fontsize=8)
    shown.suptitle(found["title"])
    shown.savefig(HERE / f"{name}.png", dpi=80)
    pyplot.close(shown)


def render() -> None:
    if not RESULTS.exists():
        sys.exit("there is no results.json yet: run the tasks first")
    results = json.loads(RESULTS.read_text())
    fill(HERE / "README.md", table(results))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("no figures: matplotlib is not installed (pip install '.[plot]')")
        return
    for name, found in results.items():
        figure(name, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the data sets")
    parser.add_argument("--task", action="append", choices=list(TASKS), help="only this one; may be repeated")
    parser.add_argument("--solver", action="append", help="only this one, beside what is there; may be repeated")
    parser.add_argument("--render", action="store_true", help="write the table and the figures instead")
    arguments = parser.parse_args()
    if arguments.render:
        render()
    else:
        run_tasks(arguments.task or list(TASKS), arguments.data, arguments.solver)


if __name__ == "__main__":
    main()
