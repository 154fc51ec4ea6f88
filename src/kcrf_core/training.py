"""From encoded data and a configuration to a model with its certificate.

The steps: fix each term's kernel and map, choose sigma2 on held-out sequences where it is not given, then
minimise P until its certified relative gap is within the tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from . import basis as pivot_selection
from .archives import StoredBasis, TermBasis, digest
from .config import Config, TermConfig
from .corpus import sequence_rows
from .dataset import Dataset, Inputs
from .encoding import Encoding
from .errors import ConfigError, DataError
from .kernels import fit_kernel
from .maps import ExplicitMap, FeatureMap, ReducedMap
from .model import ExplicitTerm, KernelTerm, Model, Term
from .parallel import Workers
from .posterior import Posterior, Problem
from .solvers import DEFAULT_SOLVER, SOLVERS, Progress, Run, SolverResult

# The path over sigma2: steps of half a decade, each fit warm-started from the one before.
PATH_START, PATH_FACTOR = 0.1, 10**0.5
PATH_LEAST, PATH_MOST = 1e-4, 1e4
PATH_TOLERANCE, PATH_PASSES = 1e-2, 300
# A step for one term alone must gain this part of the log-probability: larger variances are harder to certify.
LEAST_GAIN = 0.002
ALL_TERMS = "all"
# Positions that the path looks at: all of a small corpus, a part of a large one.
PATH_POSITIONS, PATH_SHARE = 40_000, 0.25
ENOUGH_HELD_OUT = 200  # sequences
FALLBACK_SIGMA2 = 1.0

DTYPES = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}


class Observer:
    """What training tells while it runs; this one listens to nothing."""

    def note(self, text: str) -> None:
        """A decision, in words."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A new stage of work begins."""

    def pivots(self, done: int, total: int) -> None:
        """Pivots chosen so far."""

    def passed(self, progress: Progress) -> None:
        """One more pass over the data."""

    def tried(self, trial: Trial) -> None:
        """One setting of sigma2, with held-out figures per position."""


@dataclass(frozen=True)
class Trial:
    """One setting tried in the search for sigma2."""

    term: str  # which term's sigma2, or all
    sigma2: float
    log_probability: float  # held-out mean of log p(y_t | x)
    accuracy: float  # held-out


@dataclass(frozen=True)
class Report:
    """What a training run found, for people and for the model file."""

    result: SolverResult
    sigma2: dict[str, float]  # of each term, chosen or given
    path: tuple[Trial, ...]  # what was tried to choose it
    outside: float  # estimated gain left outside the basis
    score_columns: int
    parameters: int

    def to_dict(self) -> dict[str, Any]:
        result = self.result
        return {
            "stop": result.reason,
            "objective": result.value,
            "lower_bound": result.lower,
            "certified_gap": result.gap if np.isfinite(result.gap) else None,
            "outside_estimate": self.outside,
            "passes": result.passes,
            "sigma2": self.sigma2,
            "sigma2_path": [asdict(trial) for trial in self.path],
            "score_columns": self.score_columns,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class _FittedTerm:
    """A node term with its map on the training data, and what the model keeps of it."""

    config: TermConfig
    features: tuple[str, ...]
    map: FeatureMap
    basis: TermBasis | None  # None: explicit


# ----------------------------------------------------------------------------- bases


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Pivots for every node term that needs them."""
    found = []
    for term in config.node_terms:
        if _map_type(term) == "explicit":
            observer.note(f"term {term.name}: linear kernel, explicit map; it needs no pivots")
            continue
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features)
        found.append(_select(term, features, inputs, dataset, config, workers, observer)[0])
    if not found:
        raise ConfigError("no term needs pivots: give a kernel such as --kernel poly, or a map such as --map reduced")
    return StoredBasis(encoding, config, tuple(found))


def _map_type(term: TermConfig) -> str:
    if term.map.type != "auto":
        return term.map.type
    return "explicit" if term.kernel.type == "linear" and term.map.size is None else "reduced"


def _select(
    term: TermConfig,
    features: tuple[str, ...],
    inputs: Inputs,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> tuple[TermBasis, np.ndarray]:
    """Pivots of one term, and the residual of every training position."""
    training = config.training
    kernel = fit_kernel(term.kernel, inputs, training.seed)
    dtype = DTYPES[training.precision]
    if _map_type(term) == "full":
        chosen = pivot_selection.full_basis(inputs, kernel, dtype)
        how = "every distinct input"
    else:
        size = term.map.size or pivot_selection.DEFAULT_SIZE
        observer.stage("choosing pivots", min(size, len(inputs)))
        rng = np.random.default_rng(training.seed)
        chosen = pivot_selection.choose_pivots(
            term.map.select, inputs, kernel, size, rng, workers, dtype, observer.pivots
        )
        how = term.map.select
    observer.note(
        f"term {term.name}: {term.kernel.type} kernel, {_map_type(term)} map, {len(chosen.rows):,} pivots ({how}), "
        f"{100 * chosen.unexplained:.2g} % of the trace unexplained"
    )
    pivots = inputs.take(chosen.rows)
    curve = chosen.curve / chosen.trace
    return TermBasis(term.name, features, kernel, pivots, dataset.lines[chosen.rows], curve), chosen.residual


# ----------------------------------------------------------------------------- training


def train(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    *,
    basis: StoredBasis | None = None,
    workers: Workers,
    observer: Observer | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> tuple[Model, Report]:
    """Fit a model. `interrupted` is asked after every pass; once true, the best so far is what comes back."""
    observer = observer or Observer()
    interrupted = interrupted or (lambda: False)
    training = config.training
    dtype = DTYPES[training.precision]
    problem = _problem(encoding, dataset)
    fitted = _fit_terms(encoding, dataset, config, basis, workers, observer)
    maps = [term.map for term in fitted]
    solve = SOLVERS[DEFAULT_SOLVER if training.solver == "auto" else training.solver]
    if problem.label_count == 1:
        observer.note(f"all labels are '{encoding.labels[0]}': the model will say nothing else")
    elif problem.label_count == 2:
        observer.note("two labels: one score column")

    def posterior(sigma2: dict[str, float], rows: Problem = problem, on: Sequence[FeatureMap] = maps) -> Posterior:
        values = {name: fixed if fixed is not None else sigma2[name] for name, fixed in given.items()}
        edge = None if config.edge_term is None else values[config.edge_term.name]
        return Posterior(rows, on, [values[term.config.name] for term in fitted], edge, workers, dtype)

    names = [term.config.name for term in fitted]
    # A term's own sigma2, else the one of the training section; None is to be chosen.
    ordered = [term.config for term in fitted] + ([config.edge_term] if config.edge_term else [])
    given = {term.name: term.sigma2 or training.sigma2 for term in ordered}
    sigma2 = {name: value or FALLBACK_SIGMA2 for name, value in given.items()}
    theta, path = np.zeros(posterior(sigma2).size), ()
    if None in given.values():
        search = _PriorSearch(
            problem,
            maps,
            given,
            {term.config.name: term.map.mean_diagonal() for term in fitted}
            | {name: 1.0 for name in given if name not in names},
            posterior,
            solve,
            training.seed,
            observer,
            interrupted,
        )
        if search.fit_part is None:
            observer.note(f"sigma2 = {FALLBACK_SIGMA2:g}: there are too few sequences to hold some out")
        else:
            observer.note(
                f"choosing sigma2 on {len(search.held_part):,} held-out sequences, fits on "
                f"{len(search.fit_part):,} of {dataset.sequences:,}"
            )
            search.run(theta)
            for name, value in search.best[1].items():
                if not PATH_LEAST * PATH_FACTOR < value < PATH_MOST / PATH_FACTOR:
                    observer.note(f"sigma2 of {name} is at the end of the range searched: it may want more")
            sigma2 |= {name: float(f"{value:.3g}") for name, value in search.best[1].items()}
            theta, path = search.best[2], tuple(search.tried)
    final = posterior(sigma2)
    observer.stage("training")
    run = Run(training.tolerance, training.max_passes, observer.passed, interrupted)
    result = solve(final, theta, run)
    report = Report(
        result=result,
        sigma2=sigma2,
        path=path,
        outside=final.outside_estimate(result.theta),
        score_columns=final.columns,
        parameters=final.size,
    )
    terms = tuple(_model_term(term, final.weights_of(result.theta, j)) for j, term in enumerate(fitted))
    info = {"config": config.to_dict(), "digest": digest(dataset), "training": report.to_dict()}
    return Model(encoding, terms, final.edges_of(result.theta), info), report


def _problem(encoding: Encoding, dataset: Dataset) -> Problem:
    if dataset.labels is None:
        raise DataError("the data has no labels to train on")
    if (dataset.labels < 0).any():
        line = int(dataset.lines[np.flatnonzero(dataset.labels < 0)[0]])
        raise DataError(f"the label in line {line} is unknown to the encoding")
    weights = np.ones(dataset.sequences) if dataset.weights is None else dataset.weights
    return Problem(dataset.labels, dataset.offsets, weights, len(encoding.labels))


def _fit_terms(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    basis: StoredBasis | None,
    workers: Workers,
    observer: Observer,
) -> list[_FittedTerm]:
    dtype = DTYPES[config.training.precision]
    stored = {} if basis is None else {term.name: term for term in basis.terms}
    fitted = []
    for term in config.node_terms:
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features)
        if _map_type(term) == "explicit":
            explicit = ExplicitMap.of(inputs, dtype)
            observer.note(f"term {term.name}: linear kernel, explicit map, {explicit.size:,} features")
            fitted.append(_FittedTerm(term, features, explicit, None))
            continue
        residual = None
        if term.name in stored:
            chosen = stored[term.name]
            observer.note(
                f"term {term.name}: {chosen.kernel.type} kernel, {len(chosen.pivots):,} pivots of the basis file"
            )
        else:
            chosen, residual = _select(term, features, inputs, dataset, config, workers, observer)
        reduced = ReducedMap.of(inputs, chosen.kernel, chosen.pivots, chosen.curve, workers, dtype, residual)
        fitted.append(_FittedTerm(term, features, reduced, chosen))
    return fitted


def _model_term(term: _FittedTerm, weights: np.ndarray) -> Term:
    if term.basis is None:
        return ExplicitTerm(term.config.name, term.features, np.ascontiguousarray(weights))
    return KernelTerm(
        term.config.name,
        term.features,
        term.basis.kernel,
        term.basis.pivots,
        term.basis.lines,
        np.ascontiguousarray(term.map.dual(weights)),
    )


# ----------------------------------------------------------------------------- sigma2


class _PriorSearch:
    """Prior variances by the held-out log-probability of single labels.

    The mean of log p(y_t | x) follows accuracy more closely than log p(y | x) of whole sequences, which would
    choose stiffer transitions (OCR, poly-3: 13.4 % letter error by the latter, 13.1 % by the former), and it is
    far less noisy than accuracy itself.

    First one variance of scores for all terms that have no sigma2 of their own, along a path: sigma2 times the
    mean of k(x, x). Then each of those terms by itself, since what suits the inputs need not suit the
    transitions (OCR, linear: 21.5 % letter error with one value for both, 18.3 % with two).
    """

    def __init__(
        self,
        problem: Problem,
        maps: Sequence[FeatureMap],
        fixed: dict[str, float | None],  # by term; None is to be chosen
        scales: dict[str, float],  # mean k(x, x) of each term
        posterior: Callable[..., Posterior],
        solve: Callable[..., SolverResult],
        seed: int,
        observer: Observer,
        interrupted: Callable[[], bool],
    ):
        self.fixed, self.scales, self.posterior, self.solve = fixed, scales, posterior, solve
        self.observer, self.interrupted = observer, interrupted
        self.tried: list[Trial] = []
        self.best: tuple[Trial, dict[str, float], np.ndarray, float] | None = None
        self.fit_part, self.held_part = _held_out(problem, seed)
        if self.fit_part is not None:
            fit_rows, held_rows = (sequence_rows(problem.offsets, p) for p in (self.fit_part, self.held_part))
            self.fit = problem.subset(self.fit_part), [m.subset(fit_rows) for m in maps]
            self.held = problem.subset(self.held_part), [m.subset(held_rows) for m in maps]
            weights, lengths = self.held[0].weights, np.diff(self.held[0].offsets)
            self.held_positions = max(float(weights @ lengths), 1e-300)

    def run(self, start: np.ndarray) -> None:
        """Fill `best` and `tried`."""
        free = [name for name, value in self.fixed.items() if value is None]
        self._line(ALL_TERMS, free, {name: PATH_START / self.scales[name] for name in free}, start)
        if len(free) > 1:
            # Transitions first: they come last in the list of terms, and mostly they want it most.
            for name in reversed(free):
                self._line(name, [name], self._scaled([name], PATH_FACTOR), self.best[2])

    def _scaled(self, names: Sequence[str], factor: float) -> dict[str, float]:
        values = self.best[1]
        return {name: value * factor if name in names else value for name, value in values.items()}

    def _line(self, label: str, names: Sequence[str], values: dict[str, float], start: np.ndarray) -> None:
        """Up from `values` while that helps; down from there where the first step up did not."""
        first = True
        while self._attempt(label, names, values, start):
            first = first and label == ALL_TERMS and len(self.tried) == 1
            start = self.best[2]
            values = self._scaled(names, PATH_FACTOR)
        if first:
            while self._attempt(label, names, self._scaled(names, 1 / PATH_FACTOR), self.best[2]):
                pass

    def _attempt(self, label: str, names: Sequence[str], values: dict[str, float], start: np.ndarray) -> bool:
        """Fit and judge one setting; whether it is the best so far."""
        if self.interrupted() and self.best is not None:
            return False
        # Rounded, so that what is stored and printed is the very number that is used.
        used = {name: float(f"{value:.3g}") for name, value in values.items()}
        sigma2 = used[names[0]] if label != ALL_TERMS else float(f"{values[names[0]] * self.scales[names[0]]:.3g}")
        if not PATH_LEAST <= sigma2 <= PATH_MOST:
            return False
        self.observer.stage(f"sigma2 {label} {sigma2:g}")
        run = Run(PATH_TOLERANCE, PATH_PASSES, self.observer.passed, self.interrupted)
        theta = self.solve(self.posterior(used, *self.fit), start, run).theta
        held = self.posterior(used, *self.held)
        total = held.label_log_probability(theta)
        trial = Trial(label, sigma2, total / self.held_positions, held.accuracy(theta))
        self.tried.append(trial)
        self.observer.tried(trial)
        better = self.best is None or total > self.best[3]
        if better and label != ALL_TERMS:
            better = total > (1 - LEAST_GAIN) * self.best[3]
        if better:
            self.best = (trial, values, theta, total)
        return bool(better)


def _held_out(problem: Problem, seed: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Sequences to fit on and to judge by: a tenth is held out, of a sample where the data is large.

    Of few sequences up to a quarter, since a comparison on a handful of them is mostly chance.
    """
    S = len(problem.offsets) - 1
    if S < 2:
        return None, None
    order = np.random.default_rng([seed, 1]).permutation(S)
    wanted = max(PATH_POSITIONS, PATH_SHARE * problem.positions)
    if problem.positions > wanted:
        reached = np.searchsorted(np.cumsum(np.diff(problem.offsets)[order]), wanted) + 1
        order = order[: max(int(reached), 2)]
    held = max(1, len(order) // 10, min(len(order) // 4, ENOUGH_HELD_OUT))
    return np.sort(order[held:]), np.sort(order[:held])
