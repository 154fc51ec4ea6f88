"""Choosing prior variances by the held-out log-probability of single labels.

The mean of log p(y_t | x) follows accuracy more closely than log p(y | x) of whole sequences, which would choose
stiffer transitions (OCR small, poly-3: 13.4 % letter error by the latter, 13.1 % by the former), and it is far less
noisy than accuracy itself.

The search first moves one variance of scores, sigma2 times the mean of k(x, x), for all terms that have no sigma2 of
their own. Then it moves each of those terms by itself, since a variance that suits the inputs need not suit the
transitions (OCR small, linear: 21.5 % letter error with one value for both, 18.3 % with two). Each fit starts from the
best one before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..chains import Problem
from ..objective import Posterior, Vector
from ..system import counted
from .observer import ALL_TERMS, Trial
from .task import Minimiser, TrainingTask

PATH_START, PATH_FACTOR = 0.1, 10**0.5
PATH_LEAST, PATH_MOST = 1e-4, 1e4
PATH_TOLERANCE, PATH_PASSES = 1e-2, 300
# A step for one term alone must gain this part of the log-probability: larger variances are harder to certify.
LEAST_GAIN = 0.002
# Positions that the search looks at: all of a small corpus, a part of a large one.
SEARCH_POSITIONS, SEARCH_SHARE = 40_000, 0.1
ENOUGH_HELD_OUT = 200  # sequences
LEAST_POSITIONS = 10  # of either part

# The variance of scores where too little can be held out to choose one.
FALLBACK_VARIANCE = 1.0


@dataclass(frozen=True)
class Prior:
    """Prior variances, and what the search for them found."""

    sigma2: dict[str, float]  # of each term, in the order of the task
    theta: Vector | None = None  # a start for the final fit, where there was a search
    tried: tuple[Trial, ...] = ()


def choose_prior(task: TrainingTask, given: Mapping[str, float | None], seed: int, minimiser: Minimiser) -> Prior:
    """The given prior variances and, for terms that have none, those that predict held-out sequences best."""
    fixed = {term.name: given[term.name] for term in task.terms if given[term.name] is not None}
    scales = {term.name: term.score_scale() for term in task.terms if given[term.name] is None}
    if not scales:
        return Prior(fixed)
    parts = held_out_parts(task.problem, seed)
    if parts is None:
        minimiser.observer.note(f"score variance {FALLBACK_VARIANCE:g}: there is too little data to hold some out")
        chosen = {name: _rounded(FALLBACK_VARIANCE / scale) for name, scale in scales.items()}
        return Prior(_in_order(task, fixed | chosen))
    search = _Search(task, *parts, fixed, scales, minimiser)
    search.run()
    return search.prior()


def _in_order(task: TrainingTask, sigma2: Mapping[str, float]) -> dict[str, float]:
    return {term.name: sigma2[term.name] for term in task.terms}


def _rounded(value: float) -> float:
    """Three digits, so that the number stored and printed is the very number that is used."""
    return float(f"{value:.3g}")


class _Search:
    """The best setting so far, and the steps away from it."""

    def __init__(
        self,
        task: TrainingTask,
        fit_part: np.ndarray,  # sequences to fit on
        held_part: np.ndarray,  # sequences to judge by
        fixed: dict[str, float],  # sigma2 of terms that have one
        scales: dict[str, float],  # mean k(x, x) of each term whose sigma2 is to be chosen
        minimiser: Minimiser,
    ):
        self._task, self._fixed, self._scales, self._minimiser = task, fixed, scales, minimiser
        # Columns that the sample lacks would stay at zero: left out, they cost nothing.
        sample = task.subset(fit_part)
        self._used = sample.used_columns()
        self._sample, self._held = sample.narrow(self._used), task.subset(held_part).narrow(self._used)
        minimiser.observer.note(
            f"choosing sigma2 on {counted(len(held_part), 'held-out sequence')}, fits on {len(fit_part):,} "
            f"of {len(task.problem.offsets) - 1:,}"
        )
        self._values = {name: PATH_START / scale for name, scale in scales.items()}
        self._theta = self._sample.posterior(fixed | self._values).vectors.zeros()
        self._log_probability = -np.inf
        self._tried: list[Trial] = []

    def run(self) -> None:
        free = list(self._scales)
        self._attempt(ALL_TERMS, free, 1.0)
        self._line(ALL_TERMS, free)
        if len(free) > 1:
            # Transitions first: they come last in the list of terms, and mostly they want it most.
            for name in reversed(free):
                self._line(name, [name])

    def prior(self) -> Prior:
        """The best setting, with the parameters that it was found with as a start for all data."""
        for name, value in self._values.items():
            if not PATH_LEAST * PATH_FACTOR < value * self._scales[name] < PATH_MOST / PATH_FACTOR:
                self._minimiser.observer.note(
                    f"sigma2 of {name} is near the end of the range searched: it may want more"
                )
        chosen = {name: _rounded(value) for name, value in self._values.items()}
        sigma2 = _in_order(self._task, self._fixed | chosen)
        theta = self._widened(self._sample.posterior(sigma2), self._task.posterior(sigma2))
        return Prior(sigma2, theta, tuple(self._tried))

    def _widened(self, narrow: Posterior, full: Posterior) -> Vector:
        """The parameters over used columns as parameters over all of them."""
        blocks = {}
        for j, (term, columns) in enumerate(zip(full.terms, self._used, strict=True)):
            if columns is None:
                blocks[j] = narrow.block(self._theta, j)
            else:
                weights = np.zeros((term.rows, term.columns))
                weights[columns] = narrow.weights_of(self._theta, j)
                blocks[j] = full.block_of(weights, j)
        return full.vector(blocks)

    def _line(self, label: str, names: Sequence[str]) -> None:
        """Step up while that helps; step down where the first step up did not."""
        if self._attempt(label, names, PATH_FACTOR):
            while self._attempt(label, names, PATH_FACTOR):
                pass
        else:
            while self._attempt(label, names, 1 / PATH_FACTOR):
                pass

    def _attempt(self, label: str, names: Sequence[str], factor: float) -> bool:
        """Fit and judge one setting; whether it is the best so far, which it then becomes."""
        values = {name: value * factor if name in names else value for name, value in self._values.items()}
        if any(not PATH_LEAST <= values[name] * self._scales[name] <= PATH_MOST * 1.01 for name in names):
            return False
        used = {name: _rounded(value) for name, value in values.items()}
        variance = _rounded(values[names[0]] * self._scales[names[0]])
        self._minimiser.observer.stage(f"score variance {variance:g} of {label}")
        posterior = self._sample.posterior(self._fixed | used)
        theta = self._minimiser.minimise(posterior, self._theta, PATH_TOLERANCE, PATH_PASSES)
        held = self._held.posterior(self._fixed | used)
        trial = Trial(label, variance, used, held.engine.mean_label_log_probability(theta), held.engine.accuracy(theta))
        self._tried.append(trial)
        self._minimiser.observer.tell(trial)
        needed = self._log_probability
        if label != ALL_TERMS:
            needed += LEAST_GAIN * abs(self._log_probability)
        if trial.log_probability <= needed:
            return False
        self._values, self._theta, self._log_probability = values, theta, trial.log_probability
        return True


def held_out_parts(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
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
        return None
    return np.sort(np.setdiff1d(order, held)), np.sort(np.array(held, dtype=np.int64))
