"""Prior variances chosen on held-out data, by the metric and by log p of single labels.

A setting gives sigma2 of each term that has none, on a grid of half decades. The search begins at c2 = 1 and moves all
of these terms together, then each of them but the first alone, in the way that helps, unless it shares the sigma2 of
the first. Of the settings whose metric is within one paired standard error of the best, those whose log p is within one
of the best are alike. With accuracy, which counts the same labels with more noise and depends on the decoder, and with
log-loss, log p alone decides, within two standard errors. The search takes the one nearest to where it began, then the
one with the smaller variances. F1 of spans is that with a bonus for spans (`scoring.costs`), unless a decoder is given:
without one, it depends on how cautious probabilities are.

The same data give the same choice on every machine and engine: fits are in double precision and begin anew at rounded
parameters after some passes, so that rounding errors, which grow a thousandfold in 30 passes, are lost in time; and
figures are rounded before they are compared.
Work is counted in passes times positions, never in time; `plan_splits` makes a search cheaper than the final fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..errors import Interrupted
from ..objective import Objective, ObjectiveTerm, Vector
from ..objective.solvers import ALL_TERMS, PASSES, Stage, Trial, variances_text
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick, span_bonuses
from ..system import counted, hand_back
from .folds import fold_of
from .held_out import (
    BLOCKS,
    BONUS,
    DIGITS,
    HANDFUL,
    VITERBI,
    DecoderChoice,
    HoldOut,
    Split,
    Splits,
    choose_decoder,
    make_splits,
    right_sequences,
    try_bonus,
)
from .task import Minimiser, TrainingTask

# The grid of sigma2: 0.5, which is c2 = 1 in the terms of CRFsuite, times powers of this factor.
GRID_ORIGIN, GRID_FACTOR = 0.5, 10**0.5
# The search begins at the origin, as long as the variance of scores, sigma2 times the mean of k(x, x), is within this.
FIRST_LEAST, FIRST_MOST = 0.5, 50.0
LEAST_VARIANCE, MOST_VARIANCE = 1e-4, 1e4
# Grid steps of a single term, and how many of them: the data say little about its variance.
STRIDE, MOST_STRIDES = 2, 2
# Fits to a part of the data: the gap of P, the most passes, and those after which parameters are rounded.
PATH_TOLERANCE, PATH_PASSES, ROUNDED_AFTER = 3e-3, 120, 60
# Bits of their root mean square that rounded parameters have.
START_BITS = 4
# Standard errors within which settings are alike, and those where log p alone decides: of the several settings that a
# search compares, one is often better than the beginning by one standard error by chance.
ERRORS, ERRORS_OF_LOG_P = 1.0, 2.0

# Passes that a search takes over its sample: for the common variance, and for each other term.
PASSES_OF_PATH, PASSES_PER_TERM = 120, 60
# Budget of the search, as a part of the final fit: its passes are about those of the path from zero to the choice. Some
# operations, a few seconds, are always granted.
WORK_SHARE, FREE_OPERATIONS = 0.8, 2e9
# Positions that the search fits to: those of a small corpus, a part of a large one.
SEARCH_POSITIONS, SEARCH_SHARE = 40_000, 0.1
MOST_FOLDS = 5
# What is taken for granted where operations are counted: features of a sparse row, and what exponentials cost.
SPARSE_ROW, EXPONENTIALS = 32, 100

# Settings that a search takes as a rule: all terms together, and each other term.
USUAL_PATH, USUAL_PER_TERM = 4, 2

# The variance of scores where too little can be held out to choose one.
FALLBACK_VARIANCE = 1.0


@dataclass(frozen=True)
class Prior:
    """Prior variances, and what the search for them found."""

    sigma2: dict[str, float]  # of each term, in the order of the task
    theta: Vector | None = None  # a start for the final fit, where there was a search
    tried: tuple[Trial, ...] = ()
    held_out: HeldOut | None = None  # figures of held-out data for them; None where none was

    @property
    def judged(self) -> HeldOut:
        """Figures of held-out data, where there was some."""
        assert self.held_out is not None
        return self.held_out


@dataclass(frozen=True)
class HeldOut:
    """Figures of held-out data for the prior variances that were chosen."""

    splits: Splits
    yardstick: Yardstick  # of labels
    counts: dict[str, np.ndarray]  # [units, k] of the yardstick, by decoder
    log_counts: np.ndarray  # [units, 2] of the log-loss
    log_probability: float  # mean of log p(y_t | x)
    decoder: DecoderChoice
    work: float  # passes times positions of the search
    whole: bool = True  # False if the clock ended the search

    def to_dict(self) -> dict[str, Any]:
        of, log_probability = self.splits, self.log_probability
        return {"held_out": of.kind, "units": of.units, "folds": len(of.splits), "gap": of.gap,
                "log_probability": log_probability, "work": self.work}  # fmt: skip


def choose_prior(
    task: TrainingTask,
    given: Mapping[str, float | None],  # sigma2 of terms; None is to be chosen
    splits: Splits | None,
    yardstick: Yardstick,
    minimiser: Minimiser,
    *,
    decoder: DecoderChoice | None = None,  # that the yardstick looks at; None: the better one
    start: Mapping[str, float] | None = None,  # sigma2 to begin with
    judged: bool = False,  # True if given values are to be judged, too, where none is to be chosen
    together: bool = False,  # True if free terms only move together, which takes far fewer settings
    enough: Callable[[], bool] = lambda: False,  # ends the search once a setting has been judged
    positions: int = 0,  # of all data that the final fit has; 0: of the task
) -> Prior:
    """Return the given prior variances and, for terms that have none, those that predict held-out data best."""
    terms = {term.config.name: term for term in task.terms}
    given = {**given, **{name: given[name] or given[task.terms[0].config.name] for name in _tied(task)}}
    fixed = {name: value for name in terms if (value := given[name]) is not None}
    scales = {name: term.mean_diagonal for name, term in terms.items() if given[name] is None}
    if not scales and not judged:
        return Prior(fixed)
    if splits is None:
        why = "there is too little data to hold some out"
        minimiser.observer.report(f"sigma2 is not searched for: {why}")
        chosen = fixed | {name: _rounded(FALLBACK_VARIANCE / scale) for name, scale in scales.items()}
        return Prior({name: chosen[name] for name in terms})
    about = decoder, start or {}, enough, positions
    return _Search(task, splits, yardstick, fixed, scales, minimiser, *about).run(together)


def plan_splits(task: TrainingTask, free: int, wishes: HoldOut, seed: int, reach: int) -> Splits | None:
    """Plan what a search with so many free terms fits to and holds out, such that it stays within its budget.

    Small data is held out in folds. Else the search fits once to a part of at most a third, and holds out the rest of
    its sample.
    """
    problem = task.problem
    N = problem.positions
    passes = PASSES_OF_PATH + PASSES_PER_TERM * (free - 1)
    allowed = max(N / 3, FREE_OPERATIONS / operations(task) / passes)  # positions of all fits of a setting
    folds = min(int(1 + allowed // max(N, 1)), MOST_FOLDS)
    sample = None if folds > 1 else int(3 * min(allowed, max(SEARCH_POSITIONS, SEARCH_SHARE * N)))
    return make_splits(problem, seed=seed, wishes=wishes, reach=reach, folds=folds, most_positions=sample)


def operations(task: TrainingTask) -> float:
    """Return about how many multiplications a pass takes at one position."""
    Y = task.problem.label_count
    second = any(term.config.clique.second_order for term in task.terms)
    total = float(EXPONENTIALS + (Y**3 if second else Y**2))
    for term in task.terms:
        if term.map is not None:
            row = term.map.size if term.map.nested else max(term.map.dense_size, SPARSE_ROW)
            total += row * term.config.clique.columns(Y)
    return total


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _beginnings(task: TrainingTask, scales: Mapping[str, float]) -> dict[str, float]:
    """Return sigma2 to begin with, on the grid, of terms with these means of k(x, x).

    Scores of all terms begin with the same variance: that of the first linear term at the origin, or else of the first
    one. Terms with pivots beside linear ones begin one grid step above: linear weights know the words of the training
    data well, and a kernel is there for others (WNUT-17 with embeddings). Transitions begin with the sigma2 of the
    first term, or with a tenth if there are pivots alone, where they would learn what the sequences of the sample have
    in common (OCR and batteryless_adl).
    """
    mapped = [(term.config.name, term.map) for term in task.terms if term.map is not None]
    linear = [name for name, own in mapped if not own.nested]
    first = (linear or [name for name, _ in mapped] or [""])[0]
    variance = min(max(GRID_ORIGIN * scales.get(first, 1.0), FIRST_LEAST), FIRST_MOST)

    def on_grid(scale: float, above: int = 0) -> float:
        step = round(math.log(variance / scale / GRID_ORIGIN, GRID_FACTOR)) if scale > 0 else 0
        return GRID_ORIGIN * GRID_FACTOR ** (step + above)

    of_transitions = on_grid(scales.get(first, 1.0)) / (10 if mapped and not linear else 1)
    above = {name: int(own.nested and bool(linear)) for name, own in mapped}
    return {name: on_grid(scale, above[name]) if name in above else of_transitions for name, scale in scales.items()}


def _tied(task: TrainingTask) -> set[str]:
    """Return the names of terms that share the sigma2 of the first one."""
    return {term.config.name for term in task.terms if term.config.shared}


Labeller: TypeAlias = Callable[[np.ndarray], np.ndarray]  # from bonuses of spans to the best labels
Steps = tuple[int, ...]  # how many times each free term has gone up by GRID_FACTOR from where the search began


def preferred(metric: Yardstick, counts: Mapping[Steps, np.ndarray], logs: Mapping[Steps, np.ndarray]) -> Steps:
    """Return the setting nearest to (0, ..., 0), then the smaller variances, of those that are alike.

    They are within one standard error of the best by the metric, and of these by log p, in paired differences of
    units; with accuracy or log-loss, within two by log p. `counts` are those of the metric, `logs` those of log p.

    >>> import numpy as np
    >>> from kcrf_core.scoring import choose_yardstick
    >>> from kcrf_core.training.prior_search import preferred
    >>> right = {(0,): [4, 4, 4, 4], (1,): [8, 8, 9, 9], (2,): [9, 9, 9, 8]}  # of ten positions in each of four units
    >>> counts = {steps: np.array([[each, 10] for each in units]) for steps, units in right.items()}
    >>> logs = {(0,): [-3, -3, -3, -3], (1,): [-1, -2, -1, -2], (2,): [-2, -1, -2, -1]}
    >>> logs = {steps: np.array([[each, 10] for each in units]) for steps, units in logs.items()}
    >>> preferred(choose_yardstick(["a", "b"]), counts, logs)
    (1,)
    """
    log_loss = choose_yardstick(metric.labels, "log-loss")
    if metric.name in ("accuracy", "log-loss"):
        alike = _alike(log_loss, logs, ERRORS_OF_LOG_P)
    else:
        alike = _alike(log_loss, {steps: logs[steps] for steps in _alike(metric, counts, ERRORS)}, ERRORS)
    return min(alike, key=lambda steps: (sum(map(abs, steps)), steps))


def _alike(yardstick: Yardstick, counts: Mapping[Steps, np.ndarray], errors: float) -> list[Steps]:
    """Return the settings within so many standard errors of the best."""
    best = max(counts, key=lambda steps: round(yardstick.value(counts[steps]), DIGITS))
    alike = []
    for steps, own in counts.items():
        difference, error = yardstick.difference(counts[best], own)
        if steps == best or round(difference - errors * error, DIGITS) <= 0:
            alike.append(steps)
    return alike


class _Fold:
    """A part to fit on, a part to judge by, and the parameters of the fits that there were."""

    def __init__(self, task: TrainingTask, split: Split):
        self.pieces = split.held
        fold = fold_of(task, split)
        self.used = fold.columns
        self.sample, self.held = fold.sample.in_double(), fold.held_out.in_double()
        self.fits: dict[Steps, list[np.ndarray]] = {}  # blocks of each term

    def by_unit(self, counts: np.ndarray) -> np.ndarray:
        """Return sums over the pieces of each unit, of rows that are those of pieces or, added up already, of units."""
        numbers, number = np.unique(self.pieces.unit, return_inverse=True)
        if len(counts) != len(number):
            return counts
        totals = np.zeros((len(numbers), counts.shape[1]))
        np.add.at(totals, number, counts)
        return totals

    def nearest(self, steps: Steps) -> Steps | None:
        """Return the nearest setting that was fitted, of equals the last one; None where there is none."""
        return min(reversed(self.fits), key=lambda fitted: np.abs(np.subtract(fitted, steps)).sum(), default=None)

    def start(self, steps: Steps, objective: Objective) -> Vector | None:
        """Return parameters to begin with: those of the nearest setting, rounded."""
        near = self.nearest(steps)
        return None if near is None else objective.vector({j: _coarse(own) for j, own in enumerate(self.fits[near])})


def _spread(block: np.ndarray, part: ObjectiveTerm, columns: np.ndarray, whole: ObjectiveTerm) -> np.ndarray:
    """Return parameters of a term of a fold as those of the whole, of which its map has these columns.

    Parameters that the fold lacks are zero there.
    """
    width, out = whole.columns, np.zeros(whole.size)
    numbers = np.arange(len(block)) if part.places is None else part.places.kept
    places = columns[numbers // width] * width + numbers % width
    if whole.places is None:
        out[places] = block
        return out
    known = np.isin(places, whole.places.kept, assume_unique=True)
    out[np.searchsorted(whole.places.kept, places[known])] = block[known]
    return out


def _coarse(block: np.ndarray) -> np.ndarray:
    """Round parameters to multiples of a power of two, such that rounding errors of the fit are lost."""
    size = math.sqrt(float(np.square(block).mean())) if block.size else 0.0
    if not size:
        return block
    unit = 2.0 ** (math.floor(math.log2(size)) - START_BITS)
    return np.round(block / unit) * unit


@dataclass
class _Found:
    """One setting on all folds: counts of each unit, one fold after another."""

    trial: Trial
    logs: np.ndarray  # [units, 2] of the log-loss
    counts: dict[str, np.ndarray]  # [units, k] of the yardstick, by decoder
    bonus: float  # of spans, among these decoders
    sequences: dict[str, np.ndarray]  # of `right_sequences`, by decoder


class _Search:
    """Settings that were tried, and the way from one to the next."""

    def __init__(
        self, task: TrainingTask, splits: Splits, yardstick: Yardstick,
        fixed: dict[str, float],  # sigma2 of terms that have one
        scales: dict[str, float],  # mean k(x, x) of each term whose sigma2 is to be chosen
        minimiser: Minimiser, decoder: DecoderChoice | None, start: Mapping[str, float], enough: Callable[[], bool],
        positions: int,
    ):  # fmt: skip
        self._task, self._splits, self._fixed, self._scales = task, splits, fixed, scales
        self._names, self._decoder, self._note = list(scales), decoder, minimiser.observer.note
        self._found: dict[Steps, _Found] = {}
        found = self._found  # functions that refer to the search would be a cycle, in which its folds outlive it
        self._enough = may_end = lambda: bool(found) and enough()
        self._minimiser = replace(minimiser, interrupted=lambda: minimiser.interrupted() or may_end())
        self._metric, self._yardstick = yardstick, yardstick.of_labels
        self._log_loss = choose_yardstick(yardstick.labels, "log-loss")
        own = {name: start.get(name, value) for name, value in _beginnings(task, scales).items()}
        self._start = own | {name: next(iter(own.values())) for name in own.keys() & _tied(task)}
        self._folds = [_Fold(task, split) for split in splits.splits]
        self._decisive = splits.fits_most(positions or task.problem.positions)
        self._work = 0.0
        self._passes: dict[Steps, float] = {}  # from zero to each setting, over its sample
        self._ended = self._cut_short = False
        self._note(
            f"choosing sigma2 on {splits.describe()}, fits on {splits.splits[0].fit.positions:,} "
            f"of {task.problem.positions:,} positions"
        )
        if splits.kind == BLOCKS:
            minimiser.observer.report("blocks of sequences are held out: differences between sequences are not seen")
        if splits.units < HANDFUL:
            minimiser.observer.report(
                f"warning: the choice of sigma2 rests on {counted(splits.units, splits.kind.rstrip('s'))}: "
                "other data may well want other values"
            )

    def run(self, together: bool) -> Prior:
        """Move all terms together, then each but the first alone unless they stay `together`."""
        every, fixed = range(len(self._names)), self._names if together else {*self._names[:1], *_tied(self._task)}
        alone = [j for j in reversed(every) if self._names[j] not in fixed]
        self._usual = (USUAL_PATH if self._names else 1) + USUAL_PER_TERM * len(alone)
        self._look((0,) * len(self._names), ALL_TERMS)
        if self._names:
            self._walk(every, (1, -1), ALL_TERMS)
        # Transitions first: they come last in the list of terms, and mostly they want it most. Downwards is cheaper.
        for j in alone:
            self._walk([j], (-STRIDE, STRIDE), self._names[j])
        return self._prior()

    def _walk(self, which: Sequence[int], ways: Sequence[int], label: str) -> None:
        """Move some terms one way while log p rises or the choice moves with them, else the other way."""
        begun = self._choice()
        for way in ways:
            here = begun
            while (after := self._moved(here, which, way)) is not None:
                if after not in self._found and not self._look(after, label):
                    break
                rises = self._log_p(after) > self._log_p(here)
                if not rises and self._choice() != after:
                    break
                here = after
            if self._choice() != begun:
                break

    def _choice(self) -> Steps:
        """Return the setting that is preferred among those tried."""
        logs = {steps: found.logs for steps, found in self._found.items()}
        return preferred(self._metric, {steps: self._counts(steps) for steps in self._found}, logs)

    def _log_p(self, steps: Steps) -> float:
        return round(self._found[steps].trial.log_probability, DIGITS)

    def _counts(self, steps: Steps) -> np.ndarray:
        found = self._found[steps]
        if self._metric.by_probability:
            return found.logs
        if self._decoder is None:
            return found.counts.get(BONUS, found.counts[VITERBI])
        return found.counts[self._decoder.decode]

    def _prior(self) -> Prior:
        """Return the setting chosen, with the mean of the folds' parameters as a start for all data."""
        best = self._choice()
        for name, value in self._values(best).items():
            if not LEAST_VARIANCE * GRID_FACTOR < value * self._scales[name] < MOST_VARIANCE / GRID_FACTOR:
                near = f"sigma2 of {name} is near the end of the range searched: the best value may lie beyond it"
                self._minimiser.observer.report(near)
        if self._ended:
            self._note(f"sigma2 search stopped after {counted(len(self._found), 'setting')} (budget reached)")
        chosen, found = self._fixed | self._values(best), self._found[best]
        sigma2 = {term.config.name: chosen[term.config.name] for term in self._task.terms}
        whole = None if self._splits.kind == BLOCKS else found.sequences
        about = self._yardstick, found.counts, "held-out", found.bonus, whole
        decoder = choose_decoder(*about, self._decisive)
        judged = self._splits, self._yardstick, found.counts, found.logs, found.trial.log_probability
        held_out = HeldOut(*judged, self._decoder or decoder, self._work, not self._cut_short)
        full, blocks = self._task.objective(sigma2), {}
        for j, term in enumerate(full.terms):
            parts: list[np.ndarray] = []
            for fold in self._folds:
                part, columns = fold.fits[best][j], fold.used[j]
                if columns is not None:
                    part = _spread(part, fold.sample.terms[j], columns, term)
                parts.append(part)
            blocks[j] = sum(parts, np.zeros_like(parts[0])) / len(parts)
        return Prior(sigma2, full.vector(blocks), tuple(each.trial for each in self._found.values()), held_out)

    def _values(self, steps: Steps) -> dict[str, float]:
        """Return sigma2 in three digits, so that the number stored and printed is the very number that is used."""
        at = zip(self._start.items(), steps, strict=True)
        return {name: _rounded(value * GRID_FACTOR**step) for (name, value), step in at}

    def _moved(self, steps: Steps, which: Sequence[int], way: int) -> Steps | None:
        """Return the setting with some terms moved; None where one would leave the range, or the first one behind."""
        after = tuple(step + way if j in which else step for j, step in enumerate(steps))
        if any(abs(step - after[0]) > STRIDE * MOST_STRIDES for step in after):
            return None
        values = self._values(after)
        moved = [values[self._names[j]] * self._scales[self._names[j]] for j in which]
        return after if all(LEAST_VARIANCE <= variance <= MOST_VARIANCE for variance in moved) else None

    def _look(self, steps: Steps, label: str) -> bool:
        """Fit and judge a setting. Return False where the budget of the search is spent."""
        if self._found:
            positions = max(self._task.problem.positions, 3 * self._splits.fitted)  # as if a third was fitted on
            fit = WORK_SHARE * positions * self._passes[self._choice()]
            if self._work >= max(fit, FREE_OPERATIONS / operations(self._task)):
                self._ended = True
                return False
        try:
            self._minimiser.check_interrupted()
            found = self._looked(steps, label)
        except Interrupted:
            if not self._enough():
                raise
            self._ended = self._cut_short = True
            return False
        self._found[steps] = found
        self._minimiser.observer.tell(found.trial)
        return True

    def _looked(self, steps: Steps, label: str) -> _Found:
        """Fit and judge a setting on all folds."""
        logs: list[np.ndarray] = []
        counts: dict[str, list[np.ndarray]] = {name: [] for name in DECODINGS}
        sequences = {name: np.zeros(2) for name in DECODINGS}
        variance, values, folds = 0.0, self._values(steps), len(self._folds)
        sigma2 = self._fixed | values
        if self._names:  # that of the term that has moved, or of the first one where all have
            name = label if label in self._names else self._names[0]
            variance = _rounded(values[name] * self._scales[name])
        fitted: list[tuple[_Fold, Labeller]] = []
        near = self._folds[0].nearest(steps)
        self._passes[steps] = 0.0 if near is None else self._passes[near]
        tried, about = len(self._found), max(len(self._found) + 1, self._usual)
        for number, fold in enumerate(self._folds):
            step = f"setting {tried + 1} of about {about}: sigma2 {variances_text(values)}"
            share = (tried + number / folds) / about
            self._minimiser.observer.tell(Stage("sigma2 search", f"{step}, fold {number + 1} of {folds}", share))
            objective = fold.sample.objective(sigma2)
            theta = self._fit(fold, steps, objective)
            self._work += 2 * fold.held.problem.positions
            held = fold.held.objective(sigma2)
            fitted.append((fold, partial(held.engine.best_labels, theta)))
            own = held.engine.predictions(theta)
            self._judge(fold, own.labels, own.gold, counts, logs)
            problem = fold.held.problem
            for name, labels in own.labels.items():
                sequences[name] += right_sequences(problem.labels, labels, problem.offsets, problem.weights)
        all_logs, pooled = np.concatenate(logs), {name: np.concatenate(each) for name, each in counts.items()}
        counted = partial(self._with_bonus, fitted)
        if self._decoder is None:
            bonus = try_bonus(self._yardstick, pooled, counted)
        elif bonus := self._decoder.span_bonus:
            pooled[VITERBI] = counted(bonus)
        figures = {name: self._yardstick.value(each) for name, each in pooled.items()}
        log_probability, metric = self._log_loss.value(all_logs), self._yardstick.name
        trial = Trial(label, variance, values, log_probability, metric, figures)
        return _Found(trial, all_logs, pooled, bonus, sequences)

    def _fit(self, fold: _Fold, steps: Steps, objective: Objective) -> Vector:
        """Fit a setting on a fold, with parameters rounded now and then."""
        theta, passes = fold.start(steps, objective), 0
        while True:
            result = self._minimiser.prepare(objective, theta, PATH_TOLERANCE, ROUNDED_AFTER)
            fold.fits[steps] = [objective.block(result.theta, j) for j in range(len(objective.terms))]
            self._work += result.work * fold.sample.problem.positions
            self._passes[steps] += result.passes / len(self._folds)
            passes += result.passes
            if result.reason != PASSES or passes >= PATH_PASSES:
                hand_back()
                return result.theta
            theta = fold.start(steps, objective)

    def _with_bonus(self, fitted: Sequence[tuple[_Fold, Labeller]], span_bonus: float) -> np.ndarray:
        """Return counts of all units, by Viterbi decoding with a bonus for spans."""
        counts, bonuses = [], span_bonuses(self._metric.labels, span_bonus)
        for fold, labelled in fitted:
            problem = fold.held.problem
            self._work += problem.positions
            own = self._yardstick.counts(problem.labels, labelled(bonuses), None, problem.offsets, problem.weights)
            counts.append(fold.by_unit(own))
        return np.concatenate(counts)

    def _judge(
        self, fold: _Fold, predicted: Mapping[str, np.ndarray], gold: np.ndarray, counts: dict[str, list[np.ndarray]],
        logs: list[np.ndarray],
    ) -> None:  # fmt: skip
        """Add the counts of the units of one fold, of log p and by decoder."""
        problem = fold.held.problem
        gold = np.log(np.maximum(gold.astype(np.float64), SMALLEST_PROBABILITY))
        units = problem.offsets, problem.weights
        logs.append(fold.by_unit(self._log_loss.counts(problem.labels, None, gold, *units)))
        for name, labels in predicted.items():
            counts[name].append(fold.by_unit(self._yardstick.counts(problem.labels, labels, gold, *units)))
