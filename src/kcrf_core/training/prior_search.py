"""Choosing prior variances on held-out data: by the log-probability of single labels first, then by the yardstick.

The mean of log p(y_t | x) follows accuracy more closely than log p(y | x) of whole sequences, which would choose
stiffer transitions (OCR small, poly-3: 13.4 % letter error by the latter, 13.1 % by the former), and it is far less
noisy than accuracy itself. The search has three parts; every fit starts from the nearest one before it.

1. One variance of scores, sigma2 times the mean of k(x, x), moves for all terms that have no sigma2 of their own.
2. Each of those terms moves by itself, since a variance that suits the inputs need not suit the transitions (OCR small,
   linear: 21.5 % letter error with one value for both, 18.3 % with two). Steps that gain little are taken on trial, and
   all of them are judged together in the end, by the standard error of what they gained.
3. Of the settings that log p cannot tell from its best one, that with the best figure is taken where it is better by
   more than one standard error. From there all variances move upwards together as long as the figure gains more than
   that, since log p tires of large variances before span F1 does (WNUT 2017: F1 wants sigma2 some 30 times larger).
   Fits that end before they come within their tolerance have no say there: what stops early is smoother than what the
   final fit will find (CoNLL-2000 with pairs went up to a sigma2 of 3,160 by such, with a final fit of 1,000 passes).

Work is counted in passes times positions, never in time. `plan_splits` sees to it that the search costs about twice the
final fit at most, and the search ends where it has cost that much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import Interrupted
from ..objective import Objective, Vector
from ..objective.solvers import ALL_TERMS, Trial
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick
from ..system import counted
from .decoder_choice import DecoderChoice, choose_decoder
from .held_out import HANDFUL, HoldOut, Split, Splits, describe_units, make_splits
from .task import Minimiser, TrainingTask

PATH_START, PATH_FACTOR = 10**-0.5, 10**0.5
PATH_LEAST, PATH_MOST = 1e-4, 1e4
PATH_TOLERANCE, PATH_PASSES = 1e-2, 100
# Steps of single terms are kept once they have gained this part of log p, and this part of their standard error: fits
# are rough, and larger variances are harder to certify.
LEAST_GAIN, LEAST_ERRORS = 0.001, 0.5
# Steps that may be taken on trial, one after another, before they have to have gained that.
ON_TRIAL = 2
# A setting that is worse by so many standard errors, on some folds with so many units, is not tried on the others.
HOPELESS, ENOUGH_UNITS = 3.0, 100

# How much of the last change of parameters the next one is taken to begin with.
GOES_ON = 1.0

# What the search may cost, in passes over all data: twice what a final fit takes, 60 to 190 of them as a rule.
MOST_WORK = 200
# The part of it that parts 1 and 2 may take, where the figure is asked after them.
FOR_LOG_P = 0.6
# So many operations are always granted: some seconds.
FREE_OPERATIONS = 6e9
# Passes that a search takes over each of its folds: for a path of its own, and for each term.
PASSES_OF_PATH, PASSES_PER_TERM = 150, 75
# Positions that the search looks at: all of a small corpus, a part of a large one.
SEARCH_POSITIONS, SEARCH_SHARE = 40_000, 0.1
FEWEST_FOLDS, MOST_FOLDS = 2, 5
# What is taken for granted where operations are counted: features of a sparse row, and what exponentials cost.
SPARSE_ROW, EXPONENTIALS = 32, 100

# The variance of scores where too little can be held out to choose one.
FALLBACK_VARIANCE = 1.0


@dataclass(frozen=True)
class Prior:
    """Prior variances, and what the search for them found."""

    sigma2: dict[str, float]  # of each term, in the order of the task
    theta: Vector | None = None  # a start for the final fit, where there was a search
    tried: tuple[Trial, ...] = ()
    held_out: HeldOut | None = None  # what held-out data says of them; None where none was

    @property
    def judged(self) -> HeldOut:
        """The figures of held-out data, where there was some."""
        assert self.held_out is not None
        return self.held_out


@dataclass(frozen=True)
class HeldOut:
    """What held-out data says of the prior variances that were chosen."""

    splits: Splits
    yardstick: Yardstick  # of labels
    counts: dict[str, np.ndarray]  # [units, k] of the yardstick, by decoder
    log_counts: np.ndarray  # [units, 2] of the log-loss
    log_probability: float  # mean of log p(y_t | x)
    decoder: DecoderChoice
    work: float  # passes times positions of the search
    scales: dict[str, float]  # mean of k(x, x) of each term whose sigma2 was chosen
    whole: bool = True  # the search was not cut short by the clock

    def to_dict(self) -> dict[str, Any]:
        return {**describe_units(self.splits), "log_probability": self.log_probability, "work": self.work}


def choose_prior(
    task: TrainingTask,
    given: Mapping[str, float | None],  # sigma2 of terms; None is to be chosen
    splits: Splits | None,
    yardstick: Yardstick,
    minimiser: Minimiser,
    *,
    decode: str | None = None,  # the decoder that the yardstick looks at; None: the better one
    start: Mapping[str, float] | None = None,  # sigma2 to begin with
    judged: bool = False,  # whether given values are to be judged, too, where none is to be chosen
    together: bool = False,  # whether free terms only move together, which takes far fewer settings
    enough: Callable[[], bool] = lambda: False,  # ends the search once a setting has been judged
) -> Prior:
    """The given prior variances and, for terms that have none, those that predict held-out data best."""
    fixed = {term.name: value for term in task.terms if (value := given[term.name]) is not None}
    scales = {term.name: term.score_scale() for term in task.terms if given[term.name] is None}
    if not scales and not judged:
        return Prior(fixed)
    if splits is None:
        minimiser.observer.note(f"score variance {FALLBACK_VARIANCE:g}: there is too little data to hold some out")
        chosen = {name: _rounded(FALLBACK_VARIANCE / scale) for name, scale in scales.items()}
        return Prior(_in_order(task, fixed | chosen))
    return _Search(task, splits, yardstick, fixed, scales, minimiser, decode, start or {}, enough).run(together)


def plan_splits(task: TrainingTask, free: int, wishes: HoldOut, seed: int, reach: int) -> Splits | None:
    """Folds and a sample for a search with so many free terms, such that it costs what it may."""
    problem = task.problem
    N = problem.positions
    passes = PASSES_OF_PATH + PASSES_PER_TERM * free
    allowed = max(MOST_WORK * N, FREE_OPERATIONS / operations(task)) / passes  # positions of all fits of a setting
    folds = int(np.clip(1 + allowed // max(N, 1), FEWEST_FOLDS, MOST_FOLDS))
    sample = int(min(allowed / (folds - 1), max(SEARCH_POSITIONS, SEARCH_SHARE * N)))
    return make_splits(problem, seed=seed, wishes=wishes, reach=reach, folds=folds, most_positions=sample)


def operations(task: TrainingTask) -> float:
    """Multiplications at one position of a pass, about."""
    Y = task.problem.label_count
    second = any(term.config.clique.second_order for term in task.terms)
    total = float(EXPONENTIALS + (Y**3 if second else Y**2))
    for term in task.terms:
        if term.map is not None:
            row = term.map.size if term.map.nested else max(term.map.dense_size, SPARSE_ROW)
            total += row * term.config.clique.columns(Y)
    return total


def _in_order(task: TrainingTask, sigma2: Mapping[str, float]) -> dict[str, float]:
    return {term.name: sigma2[term.name] for term in task.terms}


def _rounded(value: float) -> float:
    """Three digits, so that the number stored and printed is the very number that is used."""
    return float(f"{value:.3g}")


Steps = tuple[int, ...]  # how many times each free term has gone up by PATH_FACTOR from where the search began


class _Fold:
    """A part to fit on, a part to judge by, and the fits that there were."""

    def __init__(self, task: TrainingTask, split: Split):
        self.pieces = split.held
        # Columns that the sample lacks would stay at zero: left out, they cost nothing.
        sample = task.pieces(split.fit)
        self.used = sample.used_columns()
        self.sample, self.held = sample.narrow(self.used), task.pieces(split.held).narrow(self.used)
        self.fits: dict[Steps, Vector] = {}

    def start(self, steps: Steps, objective: Objective) -> Vector:
        """Parameters to begin with: those of the nearest setting that was fitted, of equals the last one.

        Where the step there was the same as the step from there, parameters are taken to go on as they went.
        """
        vectors = objective.vectors
        if not self.fits:
            return vectors.zeros()
        at = {fitted: number for number, fitted in enumerate(self.fits)}
        near = min(at, key=lambda fitted: (np.abs(np.subtract(fitted, steps)).sum(), -at[fitted]))
        before = tuple((2 * np.array(near) - steps).tolist())
        if before == near or before not in self.fits:
            return self.fits[near]
        change = vectors.stepped(self.fits[near], -1.0, self.fits[before])
        return vectors.stepped(self.fits[near], GOES_ON, change)


@dataclass
class _Found:
    """One setting on all folds: counts of each unit, one fold after another."""

    trial: Trial
    logs: np.ndarray  # [units, 2] of the log-loss
    counts: dict[str, np.ndarray] = field(default_factory=dict)  # [units, k] of the yardstick, by decoder
    finished: bool = True  # whether all fits came within their tolerance


class _Search:
    """Settings that were tried, and the way from one to the next."""

    def __init__(
        self,
        task: TrainingTask,
        splits: Splits,
        yardstick: Yardstick,
        fixed: dict[str, float],  # sigma2 of terms that have one
        scales: dict[str, float],  # mean k(x, x) of each term whose sigma2 is to be chosen
        minimiser: Minimiser,
        decode: str | None,
        start: Mapping[str, float],
        enough: Callable[[], bool],
    ):
        self._task, self._splits, self._fixed, self._scales = task, splits, fixed, scales
        self._enough, self._decode = enough, decode
        self._minimiser = replace(minimiser, interrupted=lambda: minimiser.interrupted() or self._is_enough())
        self._by_figure, self._yardstick = not yardstick.by_probability, yardstick.of_labels
        self._log_loss = choose_yardstick(yardstick.labels, "log-loss")
        self._start = {name: start.get(name, PATH_START / scale) for name, scale in scales.items()}
        self._folds = [_Fold(task, split) for split in splits.splits]
        self._found: dict[Steps, _Found] = {}  # on all folds
        self._hopeless: set[Steps] = set()  # on some
        self._tried: list[Trial] = []
        self._work = 0.0
        self._most_work = max(MOST_WORK * task.problem.positions, FREE_OPERATIONS / operations(task))
        self._ended = self._cut_short = False
        minimiser.observer.note(
            f"choosing sigma2 on {splits.describe()}, fits on {splits.splits[0].fit.positions:,} "
            f"of {task.problem.positions:,} positions"
        )
        if splits.units < HANDFUL:
            minimiser.observer.note(
                f"warning: the choice of sigma2 rests on {counted(splits.units, splits.kind.rstrip('s'))}: "
                "other data may well want other values"
            )

    def run(self, together: bool) -> Prior:
        best = (0,) * len(self._scales)
        self._look(best, ALL_TERMS)
        if self._scales:
            best = self._common_path(best)
            if not together:
                best = self._single_terms(best)
            best = self._upwards(best)
        return self._prior(best)

    def _is_enough(self) -> bool:
        return bool(self._found) and self._enough()

    # What the parts of the search do.

    def _common_path(self, best: Steps) -> Steps:
        """All terms together, upwards while that helps, else downwards."""
        for way in (1, -1):
            begun = best
            while (after := self._moved(best, range(len(best)), way)) is not None:
                if not self._look(after, ALL_TERMS, best) or self._gain(after, best)[0] <= 0:
                    break
                best = after
            if best != begun:
                break
        return best

    def _single_terms(self, begun: Steps) -> Steps:
        """Each term by itself, upwards while that helps, else downwards.

        Small steps are taken on trial: they are kept where they have gained enough together, those of other terms
        included.
        """
        names = list(self._scales)
        if len(names) == 1:
            return begun
        kept = best = begun
        # Transitions first: they come last in the list of terms, and mostly they want it most.
        for j in reversed(range(len(names))):
            for way in (1, -1):
                here, on_trial = best, 0
                while on_trial < ON_TRIAL and (after := self._moved(here, [j], way)) is not None:
                    if not self._look(after, names[j], here) or self._gain(after, here)[0] <= 0:
                        break
                    here, on_trial = after, on_trial + 1
                    if self._has_gained(here, kept):
                        kept, on_trial = here, 0
                if here != best:
                    best = here
                    break
        return kept

    def _upwards(self, by_log: Steps) -> Steps:
        """All terms together upwards as long as the figure rises, then the best by the figure."""
        if not self._by_figure:
            return by_log
        decode = self._decoder(by_log)
        alike = [
            steps for steps, found in self._found.items() if found.finished and self._told_apart(by_log, steps) <= 1
        ]
        best = max([by_log, *alike], key=lambda steps: self._figure(steps, decode))  # the first of equals
        if not self._is_better(best, by_log, decode):
            best = by_log
        here, on_trial = best, 0
        while on_trial < ON_TRIAL and (after := self._moved(here, range(len(here)), 1)) is not None:
            if not self._look(after, ALL_TERMS, best, decode) or not self._found[after].finished:
                break
            here, on_trial = after, on_trial + 1
            if self._is_better(here, best, decode):
                best, on_trial = here, 0
        if best == by_log:
            return by_log
        gain, error = self._yardstick.difference(self._found[best].counts[decode], self._found[by_log].counts[decode])
        own, other = (self._yardstick.number(self._figure(steps, decode)) for steps in (best, by_log))
        self._minimiser.observer.note(
            f"sigma2 by {self._yardstick.title}: {own}, {other} where log p is best, "
            f"difference {100 * gain:.2f} +- {100 * error:.2f}"
        )
        return best

    def _prior(self, best: Steps) -> Prior:
        """The setting chosen, with the mean of the folds' parameters as a start for all data."""
        note = self._minimiser.observer.note
        for name, value in self._values(best).items():
            if not PATH_LEAST * PATH_FACTOR < value * self._scales[name] < PATH_MOST / PATH_FACTOR:
                note(f"sigma2 of {name} is near the end of the range searched: it may want more")
        if self._ended:
            note(f"the search for sigma2 ends after {counted(len(self._tried), 'setting')}: it has cost what it may")
        sigma2 = _in_order(self._task, self._fixed | self._used(best))
        found = self._found[best]
        decoder = choose_decoder(self._yardstick, found.counts, "held-out")
        held_out = HeldOut(
            self._splits,
            self._yardstick,
            found.counts,
            found.logs,
            found.trial.log_probability,
            decoder if self._decode is None else DecoderChoice(self._decode),
            self._work,
            self._scales,
            not self._cut_short,
        )
        return Prior(sigma2, self._mean_parameters(best, sigma2), tuple(self._tried), held_out)

    def _mean_parameters(self, best: Steps, sigma2: dict[str, float]) -> Vector:
        """The mean over folds of parameters, those of columns that a fold lacks being zero there."""
        full = self._task.objective(sigma2)
        blocks = {}
        for j, term in enumerate(full.terms):
            parts: list[np.ndarray] = []
            for fold in self._folds:
                narrow, columns = fold.sample.objective(sigma2), fold.used[j]
                if columns is None:
                    parts.append(narrow.block(fold.fits[best], j))
                else:
                    weights = np.zeros((term.rows, term.columns))
                    weights[columns] = narrow.weights_of(fold.fits[best], j)
                    parts.append(full.block_of(weights, j))
            blocks[j] = sum(parts, np.zeros_like(parts[0])) / len(parts)
        return full.vector(blocks)

    # Settings and what is known of them.

    def _values(self, steps: Steps) -> dict[str, float]:
        return {name: value * PATH_FACTOR**step for (name, value), step in zip(self._start.items(), steps, strict=True)}

    def _used(self, steps: Steps) -> dict[str, float]:
        return {name: _rounded(value) for name, value in self._values(steps).items()}

    def _moved(self, steps: Steps, which: Sequence[int], way: int) -> Steps | None:
        """The setting one step further for some terms; None where one of them would leave the range."""
        after = tuple(step + way if j in which else step for j, step in enumerate(steps))
        values, names = self._values(after), list(self._scales)
        for j in which:
            if not PATH_LEAST * 0.99 <= values[names[j]] * self._scales[names[j]] <= PATH_MOST * 1.01:
                return None
        return after

    def _gain(self, steps: Steps, other: Steps) -> tuple[float, float]:
        """By how much log p is better, and the standard error of that."""
        return self._log_loss.difference(self._found[steps].logs, self._found[other].logs)

    def _has_gained(self, steps: Steps, other: Steps) -> bool:
        """Whether log p is better by more than what rough fits and chance may do."""
        gain, error = self._gain(steps, other)
        return gain > max(LEAST_GAIN * abs(self._found[other].trial.log_probability), LEAST_ERRORS * error)

    def _is_better(self, steps: Steps, other: Steps, decode: str) -> bool:
        """Whether the figure is better by more than one standard error: half of one lets chance alone go far up."""
        gain, error = self._yardstick.difference(self._found[steps].counts[decode], self._found[other].counts[decode])
        return gain > error

    def _told_apart(self, best: Steps, other: Steps) -> float:
        """By how many standard errors log p of the best is better than that of another."""
        gain, error = self._gain(best, other)
        return 0.0 if best == other or gain <= 0 else gain / max(error, 1e-300)

    def _decoder(self, steps: Steps) -> str:
        return self._decode or choose_decoder(self._yardstick, self._found[steps].counts, "held-out").decode

    def _figure(self, steps: Steps, decode: str) -> float:
        return self._yardstick.value(self._found[steps].counts[decode])

    def _look(self, steps: Steps, label: str, rival: Steps | None = None, decode: str | None = None) -> bool:
        """Fit and judge a setting, unless it was. False where the search has cost what it may.

        False, too, where some folds show already that it is worse than a rival: by log p, or by the figure with a
        decoder where one is given.
        """
        if steps in self._found:
            return True
        if steps in self._hopeless and decode is None:  # what log p gives up may be good by the figure
            return False
        share = FOR_LOG_P if decode is None and self._by_figure else 1.0
        if self._found and self._work >= share * self._most_work:
            self._ended = True
            return False
        try:
            self._minimiser.check_interrupted()
            return self._looked(steps, label, rival, decode)
        except Interrupted:
            if not self._is_enough():
                raise
            self._ended = self._cut_short = True
            return False

    def _looked(self, steps: Steps, label: str, rival: Steps | None, decode: str | None) -> bool:
        """Fit and judge a setting on all folds, or on some where those show that it is worse than a rival."""
        logs: list[np.ndarray] = []
        counts: dict[str, list[np.ndarray]] = {name: [] for name in DECODINGS}
        finished = True
        for number in range(len(self._folds)):
            more_logs, more_counts, within = self._fitted(steps, label, number)
            finished &= within
            logs.append(more_logs)
            for name, each in more_counts.items():
                counts[name].append(each)
            found = self._pooled(steps, label, logs, counts)
            if number + 1 < len(self._folds) and rival is not None and self._is_hopeless(found, rival, decode):
                self._hopeless.add(steps)
                break
        else:
            found.finished = finished
            self._found[steps] = found
        self._tried.append(found.trial)
        self._minimiser.observer.tell(found.trial)
        return steps in self._found

    def _is_hopeless(self, found: _Found, rival: Steps, decode: str | None) -> bool:
        units, other = len(found.logs), self._found[rival]
        if units < ENOUGH_UNITS:
            return False
        if decode is None:
            gain, error = self._log_loss.difference(found.logs, other.logs[:units])
        else:
            own = found.counts[decode]
            gain, error = self._yardstick.difference(own, other.counts[decode][: len(own)])
        return gain < -HOPELESS * error

    def _fitted(self, steps: Steps, label: str, number: int) -> tuple[np.ndarray, dict[str, np.ndarray], bool]:
        """Counts of the units of one fold, of log p and of the yardstick by decoder; whether the fit was finished."""
        fold, sigma2 = self._folds[number], self._fixed | self._used(steps)
        self._minimiser.observer.stage(
            f"score variance {self._variance(steps, label):g} of {label}, fold {number + 1} of {len(self._folds)}"
        )
        objective = fold.sample.objective(sigma2)
        result = self._minimiser.fitted(objective, fold.start(steps, objective), PATH_TOLERANCE, PATH_PASSES)
        fold.fits[steps] = result.theta
        problem, by_unit = fold.held.problem, fold.pieces.by_unit
        self._work += result.work * fold.sample.problem.positions + 2 * problem.positions
        found = fold.held.objective(sigma2).engine.predictions(result.theta)
        gold = np.log(np.maximum(found.gold.astype(np.float64), SMALLEST_PROBABILITY))
        units = problem.offsets, problem.weights
        counts = {
            name: by_unit(self._yardstick.counts(problem.labels, labels, gold, *units))
            for name, labels in found.labels.items()
        }
        logs = by_unit(self._log_loss.counts(problem.labels, None, gold, *units))
        return logs, counts, result.passes < PATH_PASSES

    def _pooled(self, steps: Steps, label: str, logs: list[np.ndarray], counts: dict[str, list[np.ndarray]]) -> _Found:
        """One setting on some folds together."""
        all_logs, pooled = np.concatenate(logs), {name: np.concatenate(parts) for name, parts in counts.items()}
        figures = {name: self._yardstick.value(each) for name, each in pooled.items()}
        variance, log_probability = self._variance(steps, label), self._log_loss.value(all_logs)
        trial = Trial(
            label,
            variance,
            self._used(steps),
            log_probability,
            self._yardstick.name,
            figures,
            len(logs),
            len(self._folds),
        )
        return _Found(trial, all_logs, pooled)

    def _variance(self, steps: Steps, label: str) -> float:
        """The variance of scores of the term that has moved, or of the first one where all have."""
        names = list(self._scales)
        if not names:
            return 0.0
        name = label if label in names else names[0]
        return _rounded(self._values(steps)[name] * self._scales[name])
