"""Choosing prior variances by the held-out log-probability of single labels.

The mean of log p(y_t | x) follows accuracy more closely than log p(y | x) of whole sequences, which would choose
stiffer transitions (OCR small, poly-3: 13.4 % letter error by the latter, 13.1 % by the former), and it is far less
noisy than accuracy itself.

First one variance of scores for all terms that have no sigma2 of their own, along a path: sigma2 times the mean of
k(x, x). Then each of those terms by itself, since what suits the inputs need not suit the transitions (OCR small,
linear: 21.5 % letter error with one value for both, 18.3 % with two). Each fit starts from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..chains import Problem
from ..corpora import sequence_rows
from ..maps import FeatureMap
from ..objective import Posterior
from ..solvers import Run, SolverResult
from .observer import Observer, Trial

PATH_START, PATH_FACTOR = 0.1, 10**0.5
PATH_LEAST, PATH_MOST = 1e-4, 1e4
PATH_TOLERANCE, PATH_PASSES = 1e-2, 300
# A step for one term alone must gain this part of the log-probability: larger variances are harder to certify.
LEAST_GAIN = 0.002
# Positions that the search looks at: all of a small corpus, a part of a large one.
SEARCH_POSITIONS, SEARCH_SHARE = 40_000, 0.1
ENOUGH_HELD_OUT = 200  # sequences
LEAST_POSITIONS = 10  # of either part

ALL_TERMS = "all"


@dataclass(frozen=True)
class Choice:
    sigma2: dict[str, float]  # of each term that had none
    theta: np.ndarray  # a start for the final fit
    tried: tuple[Trial, ...]


def choose_prior(
    problem: Problem,
    maps: Sequence[FeatureMap],
    scales: dict[str, float],  # mean k(x, x) of each term whose sigma2 is to be chosen
    posterior: Callable[..., Posterior],  # of variances, a problem, its maps, and their columns where these are some
    solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
    seed: int,
    observer: Observer,
    interrupted: Callable[[], bool],
) -> Choice | None:
    """The prior variances that predict held-out sequences best; None where there are too few sequences."""
    fit_part, held_part = _held_out(problem, seed)
    if fit_part is None:
        return None
    fit_rows, held_rows = (sequence_rows(problem.offsets, part) for part in (fit_part, held_part))
    # Columns that the sample lacks would stay at zero: left out, they cost nothing.
    fit_maps = [feature_map.subset(fit_rows) for feature_map in maps]
    used = [feature_map.used_columns() for feature_map in fit_maps]
    narrowed = [m.narrow(columns) for m, columns in zip(fit_maps, used, strict=True)]
    held = [m.subset(held_rows).narrow(columns) for m, columns in zip(maps, used, strict=True)]
    observer.note(
        f"choosing sigma2 on {len(held_part):,} held-out sequences, fits on {len(fit_part):,} "
        f"of {len(problem.offsets) - 1:,}"
    )
    fit_problem, held_problem = problem.subset(fit_part), problem.subset(held_part)
    search = _Search(
        scales,
        lambda values: posterior(values, fit_problem, narrowed, used),
        lambda values: posterior(values, held_problem, held, used),
        solve,
        observer,
        interrupted,
    )
    search.run()
    sigma2 = {name: _rounded(value) for name, value in search.values.items()}
    for name, value in search.values.items():
        if not PATH_LEAST * PATH_FACTOR < value * scales[name] < PATH_MOST / PATH_FACTOR:
            observer.note(f"sigma2 of {name} is near the end of the range searched: it may want more")
    theta = _widened(posterior(sigma2, problem, maps), search.fitted(sigma2), used, search.theta)
    return Choice(sigma2, theta, tuple(search.tried))


def _widened(full: Posterior, narrow: Posterior, used: Sequence[np.ndarray], theta: np.ndarray) -> np.ndarray:
    """Parameters over used columns as parameters over all of them."""
    out = np.zeros(full.size)
    columns = iter(used)
    for j, term in enumerate(full.terms):
        if not term.clique.mapped:
            out[full.blocks[j]] = theta[narrow.blocks[j]]
        else:
            weights = np.zeros((term.rows, term.columns))
            weights[next(columns)] = narrow.weights_of(theta, j)
            out[full.blocks[j]] = full.block_of(weights, j)
    return out


def _rounded(value: float) -> float:
    """Three digits, so that what is stored and printed is the very number that is used."""
    return float(f"{value:.3g}")


class _Search:
    """The best setting so far, and the steps away from it."""

    def __init__(
        self,
        scales: dict[str, float],
        fitted: Callable[[dict[str, float]], Posterior],
        held: Callable[[dict[str, float]], Posterior],
        solve: Callable[[Posterior, np.ndarray, Run], SolverResult],
        observer: Observer,
        interrupted: Callable[[], bool],
    ):
        self.scales, self.fitted, self.held, self.solve = scales, fitted, held, solve
        self.observer, self.interrupted = observer, interrupted
        self.values = {name: PATH_START / scale for name, scale in scales.items()}
        self.theta = np.zeros(fitted(self.values).size)
        self.log_probability = -np.inf
        self.tried: list[Trial] = []

    def run(self) -> None:
        free = list(self.scales)
        self._attempt(ALL_TERMS, free, 1.0)
        self._line(ALL_TERMS, free)
        if len(free) > 1:
            # Transitions first: they come last in the list of terms, and mostly they want it most.
            for name in reversed(free):
                self._line(name, [name])

    def _line(self, label: str, names: Sequence[str]) -> None:
        """Up while that helps; down where the first step up did not."""
        if self._attempt(label, names, PATH_FACTOR):
            while self._attempt(label, names, PATH_FACTOR):
                pass
        else:
            while self._attempt(label, names, 1 / PATH_FACTOR):
                pass

    def _attempt(self, label: str, names: Sequence[str], factor: float) -> bool:
        """Fit and judge one setting; whether it is the best so far, which it then becomes."""
        if self.tried and self.interrupted():
            return False
        values = {name: value * factor if name in names else value for name, value in self.values.items()}
        used = {name: _rounded(value) for name, value in values.items()}
        if any(not PATH_LEAST <= values[name] * self.scales[name] <= PATH_MOST * 1.01 for name in names):
            return False
        variance = _rounded(values[names[0]] * self.scales[names[0]])
        self.observer.stage(f"score variance {variance:g} of {label}")
        run = Run(PATH_TOLERANCE, PATH_PASSES, self.observer.passed, self.interrupted)
        theta = self.solve(self.fitted(used), self.theta, run).theta
        held = self.held(used)
        trial = Trial(label, variance, used, held.engine.mean_label_log_probability(theta), held.engine.accuracy(theta))
        self.tried.append(trial)
        self.observer.tried(trial)
        needed = self.log_probability
        if label != ALL_TERMS:
            needed += LEAST_GAIN * abs(self.log_probability)
        if trial.log_probability <= needed:
            return False
        self.values, self.theta, self.log_probability = values, theta, trial.log_probability
        return True


def _held_out(problem: Problem, seed: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Sequences to fit on and to judge by: a tenth of the positions is held out, of a sample where there are many.

    Of few sequences up to a quarter, since a comparison on a handful of them is mostly chance. Sequences without
    weight have no say. None where either part would be too small to tell anything.
    """
    lengths = np.diff(problem.offsets)
    order = np.random.default_rng([seed, 1]).permutation(np.flatnonzero((problem.weights > 0) & (lengths > 0)))
    wanted = max(SEARCH_POSITIONS, SEARCH_SHARE * problem.positions)
    order = order[: int(np.searchsorted(np.cumsum(lengths[order]), wanted)) + 1]
    total = int(lengths[order].sum())
    share = min(max(ENOUGH_HELD_OUT / max(len(order), 1), 0.1), 0.25)
    held, reached = [], 0
    for sequence in order.tolist():
        # One that is too long for the share is fitted on, whatever the order.
        if reached < share * total and reached + lengths[sequence] <= total / 2:
            held.append(sequence)
            reached += int(lengths[sequence])
    if min(reached, total - reached) < LEAST_POSITIONS:
        return None, None
    return np.sort(np.setdiff1d(order, held)), np.sort(np.array(held, dtype=np.int64))
