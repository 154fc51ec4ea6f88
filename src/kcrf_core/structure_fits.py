"""Fits of sets of terms, to all sequences and to all but those held out, each started from the fit before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import chain
from .config import TrainingConfig
from .fitted_terms import DTYPES, FittedTerm
from .observer import Observer
from .parallel import Workers
from .posterior import Cliques, Posterior
from .problem import Problem
from .solvers import Run, SolverResult

# Variances of scores that a term without a sigma2 of its own is tried with, and the one that it is judged at first.
VARIANCES = (0.1, 1.0, 10.0)
JUDGED_VARIANCE = 1.0

# Sequences are dealt into folds, of which as many are held out in turn as give enough positions.
FOLDS, ENOUGH_HELD_OUT = 5, 20_000
LEAST_SEQUENCES = 10

TOLERANCE, MAX_PASSES = 1e-3, 300


@dataclass(frozen=True)
class Fit:
    """A set of terms fitted to all sequences and, fold by fold, to those not held out."""

    sigma2: dict[str, float]  # of its terms
    theta: np.ndarray
    value: float  # P
    slack: float  # what P may be above its minimum
    fold_thetas: tuple[np.ndarray, ...]
    held_out: np.ndarray  # [S] weighted log p(y | x) of each sequence held out in turn


class Fits:
    """Fits of any set of terms, each from the one before it."""

    def __init__(
        self,
        problem: Problem,
        fitted: Sequence[FittedTerm],
        training: TrainingConfig,
        solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
        workers: Workers,
        forbidden: chain.Edges | None,
        observer: Observer,
        interrupted: Callable[[], bool],
    ):
        self.problem, self.fitted, self.workers = problem, tuple(fitted), workers
        self._solve, self._forbidden, self.dtype = solve, forbidden, DTYPES[training.precision]
        self._observer, self._interrupted = observer, interrupted
        self.given = {term.name: term.config.sigma2 or training.sigma2 for term in fitted}
        self.folds = _folds(problem, training.seed)
        if not self.folds:
            observer.note("too few sequences to hold some out: terms are judged by chance alone")

    def term(self, name: str) -> FittedTerm:
        return next(term for term in self.fitted if term.name == name)

    def judged_sigma2(self, name: str) -> float:
        """The given one, or one that no data has been asked about yet."""
        return self.given[name] or JUDGED_VARIANCE / self.term(name).score_scale()

    def posterior(self, sigma2: dict[str, float], problem: Problem | None = None) -> Posterior:
        terms = [Cliques(term.config.type, sigma2[term.name], term.map, term.kept) for term in self._present(sigma2)]
        return Posterior(problem or self.problem, terms, self.workers, self.dtype, self._forbidden)

    def carried(self, theta: np.ndarray, before: dict[str, float], after: dict[str, float]) -> np.ndarray:
        """Parameters of one set of terms for another: new terms at zero, old ones left out."""
        old, new = self.posterior(before), self.posterior(after)
        blocks = {term.name: block for term, block in zip(self._present(before), old.blocks, strict=True)}
        out = np.zeros(new.size)
        for term, block in zip(self._present(after), new.blocks, strict=True):
            if term.name in blocks:
                out[block] = theta[blocks[term.name]]
        return out

    def extended(self, before: Fit, names: Sequence[str]) -> Fit:
        """With more terms, whose sigma2 is the best of the variances tried where none is given."""
        free = [name for name in names if self.given[name] is None]
        best: Fit | None = None
        for variance in VARIANCES if free and self.folds else (JUDGED_VARIANCE,):
            added = {name: self.given[name] or variance / self.term(name).score_scale() for name in names}
            tried = self._held_out(best or before, before.sigma2 | added)
            if best is not None and tried.held_out.sum() <= best.held_out.sum():
                break
            best = tried
            if self._interrupted():
                break
        return self._on_all(best, before)

    def without(self, before: Fit, name: str) -> Fit:
        sigma2 = {other: value for other, value in before.sigma2.items() if other != name}
        return self._on_all(self._held_out(before, sigma2), before)

    def _present(self, sigma2: dict[str, float]) -> list[FittedTerm]:
        return [term for term in self.fitted if term.name in sigma2]

    def _held_out(self, before: Fit, sigma2: dict[str, float]) -> Fit:
        """Fits without each fold, and what they say about it. They start from fits that have not seen it either."""
        thetas, held_out = [], np.zeros(len(self.problem.weights))
        for fold, theta in zip(self.folds, before.fold_thetas, strict=True):
            rest = replace(self.problem, weights=np.where(fold, 0.0, self.problem.weights))
            thetas.append(self._minimise(sigma2, self.carried(theta, before.sigma2, sigma2), rest))
            found = self.posterior(sigma2).sequence_log_probabilities(thetas[-1])
            held_out[fold] = (self.problem.weights * found)[fold]
        return Fit(sigma2, before.theta, before.value, before.slack, tuple(thetas), held_out)

    def _on_all(self, tried: Fit, before: Fit) -> Fit:
        theta = self.carried(before.theta, before.sigma2, tried.sigma2)
        theta = self._minimise(tried.sigma2, theta, self.problem)
        here = self.posterior(tried.sigma2).evaluate(theta, np.float64)
        return replace(tried, theta=theta, value=here.value, slack=here.value - here.lower)

    def _minimise(self, sigma2: dict[str, float], theta: np.ndarray, problem: Problem) -> np.ndarray:
        posterior = self.posterior(sigma2, problem)
        if posterior.size == 0:  # no term yet, nothing to fit
            return theta
        run = Run(TOLERANCE, MAX_PASSES, self._observer.passed, self._interrupted)
        return self._solve(posterior, theta, run).theta

    def nothing(self) -> Fit:
        """No term at all."""
        empty = np.zeros(0)
        return Fit({}, empty, 0.0, 0.0, (empty,) * len(self.folds), np.zeros(len(self.problem.weights)))


def _folds(problem: Problem, seed: int) -> list[np.ndarray]:
    """Sequences to hold out in turn, [S] bool each; none where there are too few to tell anything."""
    lengths = np.diff(problem.offsets)
    useful = np.flatnonzero((problem.weights > 0) & (lengths > 0))
    if len(useful) < LEAST_SEQUENCES:
        return []
    place = np.full(len(lengths), -1)
    place[np.random.default_rng([seed, 2]).permutation(useful)] = np.arange(len(useful)) % FOLDS
    wanted = int(np.ceil(ENOUGH_HELD_OUT * FOLDS / lengths[useful].sum()))
    return [place == fold for fold in range(min(wanted, FOLDS))]
