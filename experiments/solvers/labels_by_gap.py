"""Labels of test data at decreasing certified gaps, against those at a gap of 1e-5 of P.

python labels_by_gap.py --data DATA [--task NAME ...]      fits, added to labels.json
python labels_by_gap.py --render                           table in README.md from labels.json

Each fit is that of `kcrf train` with its defaults and the given sigma2, on one thread. The gap is counted in nats per
1,000 positions and as a share of P.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from readme import fill, table as markdown

from kcrf_cli.main import main as kcrf
from kcrf_core.corpora import read_corpus
from kcrf_core.model import Model
from kcrf_core.objective import Vector
from kcrf_core.objective.solvers import Progress, Run
from kcrf_core.training import training

HERE = Path(__file__).parent
RESULTS = HERE / "labels.json"
TIGHT, MOST_PASSES = 1e-5, 6_000
LEVELS = [unit * 10.0**power for power in range(1, -5, -1) for unit in (5, 2, 1)]  # nats per 1,000 positions
SHARES = (0.1, 0.03, 0.01, 0.003, 0.001)  # of P


@dataclass(frozen=True)
class Task:
    train: str
    test: str | None  # None: other sequences of the same file
    sigma2: tuple[float, ...]
    options: tuple[str, ...] = ()
    every: int = 1  # take one of so many sequences to train on
    folds: str | None = None  # file of fold numbers: train on fold 0


TASKS = {
    "conll2000": Task("conll2000/train.conll", "conll2000/test.conll", (1, 100), every=8),
    "wnut17": Task("wnut17/train.conll", "wnut17/test.conll", (1, 100), every=2),
    "JapaneseNE": Task("crfpp/JapaneseNE/train.conll", "crfpp/JapaneseNE/test.conll", (1, 100)),
    "ocr-small": Task("ocr/all.conll", None, (3, 300), folds="ocr/folds.txt"),
    "adl": Task("batteryless_adl/all.conll", None, (1, 30), ("--size", "500"), every=4),
    "helsinki": Task("helsinki_prosody/dev.2class.conll", "helsinki_prosody/test.2class.conll", (0.1, 10), every=4),
    **{
        f"gpstruct-{name}": Task(
            f"gpstruct/{name}/split1.train.crfsuite", f"gpstruct/{name}/split1.test.crfsuite", (1, 100)
        )
        for name in ("basenp", "chunking", "japanesene", "segmentation")
    },
}


class Snapshots:
    """Parameters at the first pass whose gap is at most a level."""

    def __init__(self, positions: int):
        self._positions, self._best = positions, None
        self.found: dict[tuple[str, float], tuple[int, Vector]] = {}

    def __call__(self, event: Progress) -> None:
        self._best = self._best if event.theta is None else event.theta
        nats = (event.gap * event.lower if np.isfinite(event.gap) else np.inf) * 1000 / self._positions
        for kind, gap, levels in (("nats", nats, LEVELS), ("share", event.gap, SHARES)):
            for level in levels:
                if gap <= level and (kind, level) not in self.found:
                    self.found[kind, level] = event.passes, self._best


def fitted(task: Task, data: Path, sigma2: float) -> dict[str, Any]:
    """Train once, and compare labels by the parameters of each level with those of the end."""
    corpus = read_corpus(data / task.train)
    number = np.arange(len(corpus.offsets) - 1)
    chosen = number % task.every == 0
    if task.folds is not None:
        chosen = np.loadtxt(data / task.folds, dtype=int) == 0
    with tempfile.TemporaryDirectory() as folder:
        suffix = Path(task.train).suffix
        train, test = Path(folder) / f"train{suffix}", Path(folder) / f"test{suffix}"
        sequences = (data / task.train).read_text(encoding="utf-8").strip("\n").split("\n\n")
        assert len(sequences) == len(number)
        train.write_text("\n\n".join(np.array(sequences, dtype=object)[chosen]) + "\n", encoding="utf-8")
        if task.test is None:
            test.write_text("\n\n".join(np.array(sequences, dtype=object)[~chosen]) + "\n", encoding="utf-8")
        else:
            test = data / task.test
        taken: dict[str, Any] = {}
        fit: Callable[..., Any] = training.TrainingRun.fit

        def watched(self: Any, parts: Any, prior: Any, theta: Vector, run: Run) -> Any:
            snapshots = run.observe = Snapshots(parts.problem.positions)
            solution, growth = fit(self, parts, prior, theta, run)
            taken.update(solution=solution, snapshots=snapshots)
            return solution, growth

        model_path = Path(folder) / "model.npz"
        given = ["train", str(train), "-o", str(model_path), "--sigma2", str(sigma2), "--tolerance", str(TIGHT)]
        given += ["--max-passes", str(MOST_PASSES), "--threads", "1", "-q", *task.options]
        with mock.patch.object(training.TrainingRun, "fit", watched):
            kcrf(given, standalone_mode=False)
        model = Model.load(str(model_path))
        solution, snapshots = taken["solution"], taken["snapshots"]
        dataset = model.encoding.encode(read_corpus(test))
        objective, result = solution.objective, solution.result
        workers = solution.task.workers.__class__(1)

        def labels(theta: Vector) -> np.ndarray:
            mapped = [j for j, term in enumerate(solution.task.terms) if term.map is not None]
            terms = tuple(solution.task.terms[j].to_model(objective.stored_weights(theta, j), "single") for j in mapped)
            with workers:
                return replace(model, terms=terms, edges=objective.engine.potentials(theta)).tag(dataset, workers)

        last = labels(result.theta)
        known: dict[int, list[float]] = {}
        for _, theta in snapshots.found.values():
            if id(theta) not in known:
                now = labels(theta)
                known[id(theta)] = [round(float(same.mean()), 6) for same in (now != last, now == dataset.labels)]
        return {
            "sigma2": sigma2,
            "positions": solution.task.problem.positions,
            "test": len(last),
            "P": result.value,
            "passes": result.passes,
            "accuracy": round(float((last == dataset.labels).mean()), 6),
            # unit, level, passes, share of labels that differ, accuracy
            "gaps": [[*level, passes, *known[id(theta)]] for level, (passes, theta) in snapshots.found.items()],
        }


def at(fit: dict[str, Any], share: float, nats: float) -> str:
    """Return the share of labels that differ, in per cent, and passes, at the first pass within a tolerance."""
    whole = 1000 * fit["P"] / fit["positions"]
    limit = max(share * whole, nats) * (1 + 1e-6)
    within = [rest for unit, level, *rest in fit["gaps"] if level * (1 if unit == "nats" else whole) <= limit]
    passes, differ, _ = min(within, default=(0, np.nan, 0))
    return f"{100 * differ:.3f} ({passes})"


def render(fits: list[dict[str, Any]]) -> None:
    tolerances = [(0.01, 0.0), (0.001, 0.0), (0.001, 0.002), (0.001, 0.005)]
    header = ["data", "sigma2", "positions", "P", "0.01 P", "0.001 P", *(f"or {nats:g}" for _, nats in tolerances[2:])]
    lines = [
        [fit["task"], f"{fit['sigma2']:g}", f"{fit['positions']:,}", f"{fit['P']:.4g}"]
        + [at(fit, *each) for each in tolerances]
        for fit in fits
    ]
    fill(HERE / "README.md", markdown(header, lines), name="labels")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--task", action="append", choices=TASKS)
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    fits = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    for name in () if given.render else given.task or TASKS:
        for sigma2 in TASKS[name].sigma2:
            fits = [fit for fit in fits if (fit["task"], fit["sigma2"]) != (name, sigma2)]
            fits.append({"task": name, **fitted(TASKS[name], given.data, sigma2)})
            RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, fits)) + "\n]\n")
            print(fits[-1], flush=True)
    if given.render:
        render(fits)


if __name__ == "__main__":
    main()
