"""Ways to certify a fit in fewer passes, beside `auto`: processor seconds on one thread, and passes.

python passes.py --data DATA [--header FOLDER] [--set NAME ...] [--way NAME ...]     runs, added to passes.json
python passes.py --render                                                            table in ../README.md

Sequences of each set are every second, fourth or eighth of a file. All ways end with the certificate of today.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse
from readme import code, fill, machine, origins, table as markdown

from kcrf_cli.main import main as kcrf
from kcrf_core.chains import NODE
from kcrf_core.errors import NumericError
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import Objective, Point, Vector
from kcrf_core.objective.solvers import SOLVERS, Progress, Run, initial_inverse, lbfgs, newton
from kcrf_core.objective.solvers.run import until_stopped
from kcrf_core.system import Workers
from kcrf_core.training import training
from kcrf_core.training.task import TrainingTask

HERE = Path(__file__).parent
RESULTS = HERE / "passes.json"
TOLERANCE, MOST_PASSES = 1e-3, 5_000
LONGEST = 4  # a run ends after so many times the seconds of `auto`


@dataclass(frozen=True)
class Set:
    title: str
    path: str
    every: int
    options: tuple[str, ...]
    folds: str | None = None  # file of fold numbers: those of fold 0
    template: str | None = None

    def folder(self, data: Path, header: Path) -> Path:
        return header if self.path.startswith("header") else data


SETS = {
    "text": Set("text, CoNLL-2000", "conll2000/train.conll", 4, ("--plain", "--sigma2", "0.5")),
    "letters": Set("letters, OCR small", "ocr/all.conll", 1, ("--plain", "--sigma2", "10"), "ocr/folds.txt"),
    "pivots": Set(
        "400 pivots, OCR small",
        "ocr/all.conll",
        1,
        ("--plain", "--kernel", "poly", "--degree", "3", "--size", "400", "--sigma2", "30"),
        "ocr/folds.txt",
    ),
    "header": Set(
        "46 labels, header", "header.train.conll", 14, ("--wapiti", "--sigma2", "1"), template="header.template"
    ),
    "weak": Set("weak prior, CoNLL-2000", "conll2000/train.conll", 8, ("--plain", "--sigma2", "300")),
    "entities": Set("wnut17", "wnut17/train.conll", 4, ("--plain", "--sigma2", "100")),
    "japanese": Set(
        "JapaneseNE", "crfpp/JapaneseNE/train.conll", 1, ("--sigma2", "10"), template="crfpp/JapaneseNE/template"
    ),
}


class _Enough(Exception):
    """Raised where the final fit would begin."""


def task_of(chosen: Set, data: Path, header: Path) -> tuple[TrainingTask, dict[str, float]]:
    """Return the task of `kcrf train` for a set, and its prior variances."""
    root, found = chosen.folder(data, header), dict[str, Any]()
    sequences = (root / chosen.path).read_text(encoding="utf-8").strip("\n").split("\n\n")
    if chosen.folds:
        folds = (root / chosen.folds).read_text(encoding="utf-8").split()
        sequences = [own for own, fold in zip(sequences, folds, strict=True) if fold == "0"]
    options = (*chosen.options, *(("-c", str(root / chosen.template)) if chosen.template else ()))

    def fit(self: Any, task: TrainingTask, prior: Any, theta: Vector, run: Run) -> None:
        found.update(task=task, sigma2=prior.sigma2)
        raise _Enough

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(training.TrainingRun, "fit", fit):
        path = Path(folder) / "train.conll"
        path.write_text("\n\n".join(sequences[:: chosen.every]) + "\n", encoding="utf-8")
        with suppress(_Enough):
            kcrf(["train", str(path), "-o", f"{folder}/model", "--threads", "1", "-q", *options], standalone_mode=False)
    return replace(found["task"], workers=Workers(1)), found["sigma2"]


# ----------------------------------------------------------------------------- ways


@dataclass
class Fit:
    """A task with its budget of seconds, and what a way reports beside its passes."""

    task: TrainingTask
    sigma2: dict[str, float]
    most_seconds: float
    serial: float = 0.0  # seconds that no second thread would share
    before: int = 0  # passes over fewer sequences, or with another prior
    began: float = 0.0

    def run(self, proves: bool = True, tolerance: float = TOLERANCE, observe: Any = None) -> Run:
        return Run(tolerance, MOST_PASSES, observe, self._late, proves)

    def _late(self) -> bool:
        return time.process_time() - self.began > self.most_seconds

    def solve(self, objective: Objective, descend: Callable[..., None] | str, theta: Vector, run: Run) -> Any:
        if isinstance(descend, str):
            return SOLVERS[descend](objective, theta, run)
        return until_stopped(descend, objective, theta, run)


def plain(fit: Fit, objective: Objective, run: Run) -> Any:
    return fit.solve(objective, "auto", objective.vectors.zeros(), run)


def with_constant(fit: Fit, objective: Objective, run: Run, name: str, value: int) -> Any:
    with mock.patch.object(lbfgs, name, value):
        return plain(fit, objective, run)


def after_others(fit: Fit, objective: Objective, run: Run, shares: tuple[float, ...], of: str) -> Any:
    """Begin at the optimum, within a tenth, of a sample of the sequences, or of a stronger prior."""
    theta = objective.vectors.zeros()
    S = len(fit.task.problem.weights)
    for share in shares:
        task, sigma2 = fit.task, fit.sigma2
        if of == "sample":
            order = np.random.default_rng(0).permutation(S)
            task = task.subset(np.sort(order[: int(share * S)]))
        else:
            sigma2 = {name: share * value for name, value in sigma2.items()}
        other = fit.run(proves=False, tolerance=0.1)
        found = fit.solve(task.objective(sigma2), lbfgs.descend, theta, other)
        theta, fit.before = objective.vectors.copy(found.theta), fit.before + other.passes
    return fit.solve(objective, lbfgs.descend, theta, run)


class _Near(Exception):
    pass


def newton_at_last(fit: Fit, objective: Objective, run: Run, gap: float) -> Any:
    """Take the steps of L-BFGS to a gap, and Newton's below it."""

    def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
        if now is None:
            whole = run.evaluate

            def evaluate(objective: Objective, theta: Vector) -> Point:
                point = whole(objective, theta)
                if run._certificate.gap() <= gap:
                    raise _Near
                return point

            with mock.patch.object(run, "evaluate", evaluate):
                try:
                    lbfgs.descend(objective, theta, now, run)
                except _Near:
                    theta, now = run._certificate.best.theta, run._certificate.best.point
        newton.descend(objective, theta, now, run)

    return fit.solve(objective, descend, objective.vectors.zeros(), run)


class _Correlations(initial_inverse.Unsized):
    """D^-1/4 R^-q D^-1/4, D the diagonal of the Hessian, R correlations of frequent columns; D^-1/2 for others."""

    def __init__(self, diagonal: np.ndarray, columns: np.ndarray, width: int, matrix: np.ndarray, objective: Objective):
        self._columns, self._width, self._matrix = columns, width, matrix
        inverse = diagonal**-0.5
        self._rest = initial_inverse.Diagonal(1 / inverse, objective.vectors, np.float32)
        self._block = objective.blocks[0]
        self._roots = np.sqrt(self._rows(inverse)[columns]).astype(np.float32)

    def _rows(self, vector: Vector) -> np.ndarray:
        return vector[self._block].reshape(-1, self._width)

    def __call__(self, vector: Vector) -> Vector:
        out = self._rest(vector)
        rows = self._roots * self._rows(vector)[self._columns].astype(np.float32)
        self._rows(out)[self._columns] = self._roots * (self._matrix @ rows)
        return out


class _Frequent:
    """Initial inverses with a matrix for the most frequent columns of a sparse map."""

    moves = True

    def __init__(self, fit: Fit, columns: int, power: float, objective: Objective, run: Run):
        self._fit, self._objective, self._run, self._power = fit, objective, run, power
        term = objective.terms[0]
        assert isinstance(term.map, ExplicitMap)
        rows = term.map.rows
        squares = np.asarray(objective.engine.column_squares(0)).ravel()
        self._columns = np.sort(np.argsort(-squares, kind="stable")[:columns])
        scale = rows.scale if len(rows.scale) else np.ones(term.rows)
        entries = scale[rows.indices].astype(np.float32), rows.indices, rows.indptr
        values = scipy.sparse.csr_array(entries, shape=(objective.problem.positions, term.rows))
        self._values = values[:, self._columns]

    def at(self, theta: Vector) -> _Correlations:
        began, objective = time.process_time(), self._objective
        Y = objective.problem.label_count
        if objective.vectors.is_zero(theta):
            diagonal, variance = objective.initial_curvature(), np.full(objective.problem.positions, (1 - 1 / Y) / Y)
        else:
            diagonal = initial_inverse.current_curvature(objective, theta, self._run)
            p = objective.engine.errors(theta, NODE).astype(np.float64)
            p[np.arange(len(p)), objective.problem.labels] += 1
            variance = (p * (1 - p)).mean(axis=1)
        weighted = self._values.multiply(np.sqrt(variance)[:, None]).tocsr()
        gram = (weighted.T @ weighted).toarray() + np.eye(len(self._columns)) / objective.sigma2[0]
        roots = np.sqrt(np.diag(gram))
        values, vectors = np.linalg.eigh(gram / np.outer(roots, roots))
        matrix = (vectors * np.maximum(values, 1e-6) ** -self._power) @ vectors.T
        self._fit.serial += time.process_time() - began
        return _Correlations(diagonal, self._columns, objective.terms[0].columns, matrix.astype(np.float32), objective)


def frequent(fit: Fit, objective: Objective, run: Run, columns: int, power: float) -> Any:
    """Renew a matrix for the most frequent columns beside the diagonal; None where columns are not sparse."""
    own = objective.terms[0].map
    if not isinstance(own, ExplicitMap) or not own.sparse_size:
        return None
    with mock.patch.object(lbfgs, "InitialInverse", partial(_Frequent, fit, columns, power)):
        return fit.solve(objective, lbfgs.descend, objective.vectors.zeros(), run)


class _Dual(ctypes.Structure):
    _fields_ = [
        ("columns", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("ends", "indices", "scale", "dense", "labels", "offsets", "squares")),
        ("label_count", ctypes.c_int),
        ("variance", ctypes.c_float),
        ("edge_variance", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("weights", "transitions", "start", "end", "nodes", "pairs")),
    ]


def library() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        compiled = f"{folder}/dual_steps.so"
        options = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run(["cc", *options, str(HERE / "dual_steps.c"), "-o", compiled, "-lm"], check=True)
        return ctypes.CDLL(compiled)


def dual_first(fit: Fit, objective: Objective, run: Run, batch: int, kappa: float, epochs: int) -> Any:
    """Begin where some epochs of damped dual steps end; None where they diverge."""
    compiled, began = library(), time.process_time()
    problem, term = objective.problem, objective.terms[0]
    S, Y, D = len(problem.weights), problem.label_count, term.rows
    own: Any = term.map
    zeros = partial(np.zeros, dtype=np.float32)
    arrays: dict[str, np.ndarray] = {
        "labels": problem.labels.astype(np.int32),
        "offsets": problem.offsets.astype(np.int64),
        "weights": zeros((D, Y)),
        "transitions": zeros((Y, Y)),
        "start": zeros(Y),
        "end": zeros(Y),
        "nodes": zeros((problem.positions, Y)),
        "pairs": zeros((S, Y, Y)),
    }
    if getattr(own, "sparse_size", 0):
        scale = own.rows.scale if len(own.rows.scale) else np.ones(D)
        arrays |= {"ends": own.rows.indptr, "indices": own.rows.indices, "scale": scale.astype(np.float32)}
        squares = np.add.reduceat((scale**2)[own.rows.indices], own.rows.indptr[:-1])
    else:
        values = own._dense if hasattr(own, "_dense") else own.features(fit.task.workers)
        arrays["dense"] = np.ascontiguousarray(values, np.float32)
        squares = (arrays["dense"] ** 2).sum(axis=1)
    arrays["squares"] = squares.astype(np.float32)
    variances = {"variance": float(objective.sigma2[0]), "edge_variance": float(objective.sigma2[1])}
    given = _Dual(columns=D, label_count=Y, **variances, **{name: one.ctypes.data for name, one in arrays.items()})
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(S)
        about = ctypes.c_int64(S), ctypes.c_int(batch), ctypes.c_float(kappa)
        compiled.dual_steps(ctypes.byref(given), ctypes.c_void_p(order.ctypes.data), *about)
    fit.serial += time.process_time() - began if batch == 1 else 0.0
    fit.before = epochs
    theta = np.concatenate([arrays[name].ravel() for name in ("weights", "transitions", "start", "end")])
    zero = problem.positions * np.log(Y)
    try:
        start = objective.vectors.from_array(theta.astype(np.float64))
        if not objective.evaluate(start).value < zero:
            return None
    except NumericError:
        return None
    return fit.solve(objective, lbfgs.descend, start, run)


WAYS: dict[str, Callable[..., Any]] = {
    "auto": plain,
    "20 pairs": partial(with_constant, name="FEWEST_PAIRS", value=20),
    "first renewal after 15 steps": partial(with_constant, name="FIRST_RENEWAL", value=15),
    "half of the sequences first": partial(after_others, shares=(0.5,), of="sample"),
    "a quarter, then half": partial(after_others, shares=(0.25, 0.5), of="sample"),
    "a tenth of sigma2 first": partial(after_others, shares=(0.1,), of="prior"),
    "Newton below 1 %": partial(newton_at_last, gap=0.01),
    "matrix of 300 frequent features": partial(frequent, columns=300, power=0.5),
    "4 epochs of dual steps": partial(dual_first, batch=1, kappa=3.0, epochs=4),
    "10 epochs of dual steps": partial(dual_first, batch=1, kappa=3.0, epochs=10),
    "6 epochs, 16 at a time": partial(dual_first, batch=16, kappa=10.0, epochs=6),
}


# ----------------------------------------------------------------------------- running


def measure(task: TrainingTask, sigma2: dict[str, float], way: str, most_seconds: float) -> dict[str, Any] | None:
    """Fit once; None where a way cannot be taken."""
    objective, fit = task.objective(sigma2), Fit(task, sigma2, most_seconds)
    loose: list[int] = []

    def observe(event: Progress) -> None:
        if event.gap <= 0.01 and not loose:
            loose.append(event.passes)

    fit.began = time.process_time()
    run = fit.run(observe=observe)
    result = WAYS[way](fit, objective, run)
    seconds = time.process_time() - fit.began
    if result is None:
        return None
    return {
        "seconds": round(seconds, 2),
        "serial": round(fit.serial, 2),
        "before": fit.before,
        "passes": result.passes,
        "products": result.products,
        "to 1 %": (loose or [0])[0],
        "reason": result.reason,
        "P": round(result.value, 4),
        "taken with": f"{code()}; {machine()}",
    }


def run_all(names: list[str], ways: list[str], data: Path, header: Path) -> None:
    for name in names:
        chosen = SETS[name]
        needed = chosen.folder(data, header) / chosen.path
        if not needed.exists():
            print(f"skipped: {chosen.title}: there is no {needed}")
            continue
        task, sigma2 = task_of(chosen, data, header)
        with task.workers:
            for way in ways:
                results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
                own = results.setdefault(name, {})
                most = LONGEST * own["auto"]["seconds"] if way != "auto" and own.get("auto") else np.inf
                own[way] = measure(task, sigma2, way, most)
                RESULTS.write_text(json.dumps(results, separators=(",", ":")) + "\n")
                print(name, way, own[way], flush=True)


def estimate(found: dict[str, Any], threads: int) -> float:
    return found["serial"] + (found["seconds"] - found["serial"]) / threads


def cell(found: dict[str, Any] | None, base: dict[str, Any]) -> str:
    if found is None:
        return "-"
    before = f"{found['before']} + " if found["before"] else ""
    products = f" + {found['products']} products" if found["products"] else ""
    if found["reason"] != "certified":
        return f"> {found['seconds']:.1f}"
    shares = [estimate(found, threads) / estimate(base, threads) for threads in (1, 2, 16)]
    shown = "/".join(f"{share:.2f}" for share in shares) if found["serial"] else f"{shares[0]:.2f}"
    return f"{found['seconds']:.2f} ({shown}); {before}{found['passes']}{products}"


def render() -> None:
    results = json.loads(RESULTS.read_text())
    names = [name for name in SETS if name in results]
    rows = [
        [way, *(cell(results[name][way], results[name]["auto"]) if way in results[name] else "" for name in names)]
        for way in WAYS
    ]
    taken = origins((name, found["taken with"]) for name in names for found in results[name].values() if found)
    header = ("way", *(SETS[name].title for name in names))
    fill(HERE.parent / "README.md", markdown(header, rows), name="passes", taken_with=taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--header", type=Path, default=Path("header"), help="header.train.conll with header.template")
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--render", action="store_true")
    given = parser.parse_args()
    if given.render:
        render()
    else:
        run_all(given.set or list(SETS), given.way or list(WAYS), given.data, given.header)


if __name__ == "__main__":
    main()
