"""Prior variances chosen on held-out data: by the log-probability of single labels first, then by the yardstick.

1. One variance of scores, sigma2 times the mean of k(x, x), moves for all terms that have no sigma2 of their own.
2. Each of those terms moves by itself. Steps that gain little are taken on trial, and judged together in the end.
3. Of the settings that log p cannot tell from its best one, that with the best figure is taken where it is better by
   more than one standard error; from there all variances move upwards together as long as the figure gains more than
   that. Fits that end before they come within their tolerance have no say there: they are smoother than the final one.

Work is counted in passes times positions, never in time. `plan_splits` makes the search cost about twice the final fit
at most, and the search ends where that budget is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import Interrupted
from ..objective import Vector, Vectors
from ..objective.solvers import ALL_TERMS, Stage, Trial
from ..scoring import DECODINGS, SMALLEST_PROBABILITY, Yardstick, choose_yardstick
from ..system import counted
from .held_out import HANDFUL, DecoderChoice, HoldOut, Split, Splits, choose_decoder, make_splits
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

# Budget of the search, in passes over all data: twice what a final fit takes, 60 to 190 of them as a rule.
MOST_WORK = 200
# The share of it that parts 1 and 2 may take, where the figure is asked after them.
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

# Settings that parts of a search take as a rule: all terms together, each term by itself, and upwards by the figure.
USUAL_PATH, USUAL_PER_TERM, USUAL_UPWARDS = 4, 3, 2

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
        splits = self.splits
        return {
            "held_out": splits.kind,
            "units": splits.units,
            "folds": len(splits.splits),
            "gap": splits.gap,
            "log_probability": self.log_probability,
            "work": self.work,
        }


def choose_prior(
    task: TrainingTask,
    given: Mapping[str, float | None],  # sigma2 of terms; None is to be chosen
    splits: Splits | None,
    yardstick: Yardstick,
    minimiser: Minimiser,
    *,
    decode: str | None = None,  # the decoder that the yardstick looks at; None: the better one
    start: Mapping[str, float] | None = None,  # sigma2 to begin with
    judged: bool = False,  # True if given values are to be judged, too, where none is to be chosen
    together: bool = False,  # True if free terms only move together, which takes far fewer settings
    enough: Callable[[], bool] = lambda: False,  # ends the search once a setting has been judged
) -> Prior:
    """Return the given prior variances and, for terms that have none, those that predict held-out data best."""
    terms = {term.config.name: term for term in task.terms}
    fixed = {name: value for name in terms if (value := given[name]) is not None}
    # The mean of k(x, x): sigma2 times this is the prior variance of a score.
    scales = {
        name: 1.0 if term.map is None else term.map.mean_diagonal()
        for name, term in terms.items()
        if given[name] is None
    }
    if not scales and not judged:
        return Prior(fixed)
    if splits is None:
        minimiser.observer.report(f"score variance {FALLBACK_VARIANCE:g}: there is too little data to hold some out")
        chosen = fixed | {name: _rounded(FALLBACK_VARIANCE / scale) for name, scale in scales.items()}
        return Prior({name: chosen[name] for name in terms})
    return _Search(task, splits, yardstick, fixed, scales, minimiser, decode, start or {}, enough).run(together)


def plan_splits(task: TrainingTask, free: int, wishes: HoldOut, seed: int, reach: int) -> Splits | None:
    """Plan folds and a sample for a search with so many free terms, such that it stays within its budget."""
    problem = task.problem
    N = problem.positions
    passes = PASSES_OF_PATH + PASSES_PER_TERM * free
    allowed = max(MOST_WORK * N, FREE_OPERATIONS / operations(task)) / passes  # positions of all fits of a setting
    folds = int(np.clip(1 + allowed // max(N, 1), FEWEST_FOLDS, MOST_FOLDS))
    sample = int(min(allowed / (folds - 1), max(SEARCH_POSITIONS, SEARCH_SHARE * N)))
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
    """Return three digits, so that the number stored and printed is the very number that is used."""
    return float(f"{value:.3g}")


Steps = tuple[int, ...]  # how many times each free term has gone up by PATH_FACTOR from where the search began


class _Fold:
    """A part to fit on, a part to judge by, and the fits that there were."""

    def __init__(self, task: TrainingTask, split: Split):
        self.pieces = split.held
        # Columns that the sample lacks would stay at zero: left out, they cost nothing.
        sample = task.pieces(split.fit)
        self.used = [None if term.map is None else term.map.used_columns() for term in sample.terms]
        self.sample, self.held = sample.narrow(self.used), task.pieces(split.held).narrow(self.used)
        self.fits: dict[Steps, Vector] = {}

    def start(self, steps: Steps, vectors: Vectors) -> Vector:
        """Return parameters to begin with: those of the nearest setting that was fitted, of equals the last one.

        Where the step there was the same as the step from there, parameters are taken to go on as they went.
        """
        at = {fitted: number for number, fitted in enumerate(self.fits)}
        near = min(at, key=lambda fitted: (np.abs(np.subtract(fitted, steps)).sum(), -at[fitted]))
        before = tuple((2 * np.array(near) - steps).tolist())
        if before == near or before not in self.fits:
            return self.fits[near]
        change = vectors.stepped(self.fits[near], -1.0, self.fits[before])
        return vectors.stepped(self.fits[near], GOES_ON, change)


@dataclass
class _Found:
    """One setting on some folds: counts of each unit, one fold after another."""

    trial: Trial
    logs: np.ndarray  # [units, 2] of the log-loss
    counts: dict[str, np.ndarray]  # [units, k] of the yardstick, by decoder
    finished: bool  # True if all fits came within their tolerance


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
        self._names, self._decode, self._note = list(scales), decode, minimiser.observer.note
        self._found: dict[Steps, _Found] = {}  # on all folds
        self._enough = lambda: bool(self._found) and enough()
        self._minimiser = replace(minimiser, interrupted=lambda: minimiser.interrupted() or self._enough())
        self._by_figure, self._yardstick = not yardstick.by_probability, yardstick.of_labels
        self._log_loss = choose_yardstick(yardstick.labels, "log-loss")
        self._start = {name: start.get(name, PATH_START / scale) for name, scale in scales.items()}
        self._folds = [_Fold(task, split) for split in splits.splits]
        self._hopeless: set[Steps] = set()  # on some folds
        self._tried: list[Trial] = []
        self._work = 0.0
        self._most_work = max(MOST_WORK * task.problem.positions, FREE_OPERATIONS / operations(task))
        self._ended = self._cut_short = False
        self._note(
            f"choosing sigma2 on {splits.describe()}, fits on {splits.splits[0].fit.positions:,} "
            f"of {task.problem.positions:,} positions"
        )
        if splits.units < HANDFUL:
            minimiser.observer.report(
                f"warning: the choice of sigma2 rests on {counted(splits.units, splits.kind.rstrip('s'))}: "
                "other data may well want other values"
            )

    def run(self, together: bool) -> Prior:
        """Search all terms together, then each by itself unless they stay `together`, then upwards by the figure."""
        best, terms = (0,) * len(self._scales), 0 if together or len(self._scales) < 2 else len(self._scales)
        self._expect(USUAL_PATH if self._scales else 1, terms)
        self._look(best, ALL_TERMS)
        if self._scales:
            best = self._common_path(best)
            if terms:
                best = self._single_terms(best)
            if self._by_figure:
                best = self._upwards(best)
        return self._prior(best)

    def _expect(self, settings: int, terms: int) -> None:
        """Expect so many more settings, and those of so many terms, before the last part of the search."""
        last = USUAL_UPWARDS if self._by_figure and self._scales else 0
        self._expected = len(self._tried) + settings + USUAL_PER_TERM * terms + last

    def _about(self) -> int:
        """Return about how many settings there will be: as many as usual, within the budget."""
        tried = len(self._tried)
        room = (self._most_work - self._work) * tried / self._work if tried else self._expected
        return tried + max(math.ceil(min(self._expected - tried, room)), 1)

    def _common_path(self, best: Steps) -> Steps:
        """Move all terms together, upwards while that helps, else downwards."""
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
        """Move each term by itself, upwards while that helps, else downwards; small steps are taken on trial."""
        kept = best = begun
        # Transitions first: they come last in the list of terms, and mostly they want it most.
        for j in reversed(range(len(self._names))):
            self._expect(0, j + 1)
            for way in (1, -1):
                here, on_trial = best, 0
                while on_trial < ON_TRIAL and (after := self._moved(here, [j], way)) is not None:
                    if not self._look(after, self._names[j], here) or self._gain(after, here)[0] <= 0:
                        break
                    here, on_trial = after, on_trial + 1
                    gain, error = self._gain(here, kept)
                    least = LEAST_GAIN * abs(self._found[kept].trial.log_probability)
                    if gain > max(least, LEAST_ERRORS * error):
                        kept, on_trial = here, 0
                if here != best:
                    best = here
                    break
        return kept

    def _upwards(self, by_log: Steps) -> Steps:
        """Move all terms together upwards as long as the figure rises; return the best by the figure."""
        self._expect(0, 0)
        found = self._found
        decode = self._decode or choose_decoder(self._yardstick, found[by_log].counts, "held-out").decode

        def figure(steps: Steps) -> float:
            return self._yardstick.value(found[steps].counts[decode])

        def gain(steps: Steps, other: Steps) -> tuple[float, float]:
            return self._yardstick.difference(found[steps].counts[decode], found[other].counts[decode])

        def is_better(steps: Steps, other: Steps) -> bool:
            """Return True beyond one standard error: half of one lets noise alone go far up."""
            difference, error = gain(steps, other)
            return difference > error

        def alike(steps: Steps) -> bool:
            difference, error = self._gain(by_log, steps)
            return found[steps].finished and difference <= max(error, 1e-300)

        best = max([by_log, *filter(alike, found)], key=figure)  # the first of equals
        if not is_better(best, by_log):
            best = by_log
        here, on_trial = best, 0
        while on_trial < ON_TRIAL and (after := self._moved(here, range(len(here)), 1)) is not None:
            if not self._look(after, ALL_TERMS, best, decode) or not found[after].finished:
                break
            here, on_trial = after, on_trial + 1
            if is_better(here, best):
                best, on_trial = here, 0
        if best != by_log:
            own, other = (self._yardstick.number(figure(steps)) for steps in (best, by_log))
            difference, error = gain(best, by_log)
            self._note(
                f"sigma2 by {self._yardstick.title}: {own}, {other} where log p is best, "
                f"difference {100 * difference:.2f} +- {100 * error:.2f}"
            )
        return best

    def _prior(self, best: Steps) -> Prior:
        """Return the setting chosen, with the mean of the folds' parameters as a start for all data."""
        for name, value in self._values(best).items():
            if not PATH_LEAST * PATH_FACTOR < value * self._scales[name] < PATH_MOST / PATH_FACTOR:
                near = f"sigma2 of {name} is near the end of the range searched: the best value may lie beyond it"
                self._minimiser.observer.report(near)
        if self._ended:
            self._note(f"sigma2 search stopped after {counted(len(self._tried), 'setting')} (budget reached)")
        chosen, found = self._fixed | self._used(best), self._found[best]
        sigma2 = {term.config.name: chosen[term.config.name] for term in self._task.terms}
        decoder = choose_decoder(self._yardstick, found.counts, "held-out")
        held_out = HeldOut(
            self._splits,
            self._yardstick,
            found.counts,
            found.logs,
            found.trial.log_probability,
            decoder if self._decode is None else DecoderChoice(self._decode),
            self._work,
            not self._cut_short,
        )
        full, blocks = self._task.objective(sigma2), {}
        for j, term in enumerate(full.terms):
            parts: list[np.ndarray] = []
            for fold in self._folds:
                narrow, columns = fold.sample.objective(sigma2), fold.used[j]
                if columns is None:
                    parts.append(narrow.block(fold.fits[best], j))
                else:  # parameters of columns that a fold lacks are zero there
                    weights = np.zeros((term.rows, term.columns))
                    weights[columns] = narrow.weights_of(fold.fits[best], j)
                    parts.append(full.block_of(weights, j))
            blocks[j] = sum(parts, np.zeros_like(parts[0])) / len(parts)
        return Prior(sigma2, full.vector(blocks), tuple(self._tried), held_out)

    def _values(self, steps: Steps) -> dict[str, float]:
        return {name: value * PATH_FACTOR**step for (name, value), step in zip(self._start.items(), steps, strict=True)}

    def _used(self, steps: Steps) -> dict[str, float]:
        return {name: _rounded(value) for name, value in self._values(steps).items()}

    def _moved(self, steps: Steps, which: Sequence[int], way: int) -> Steps | None:
        """Return the setting one step further for some terms; None where one of them would leave the range."""
        after = tuple(step + way if j in which else step for j, step in enumerate(steps))
        values = self._values(after)
        moved = [values[self._names[j]] * self._scales[self._names[j]] for j in which]
        return after if all(PATH_LEAST * 0.99 <= variance <= PATH_MOST * 1.01 for variance in moved) else None

    def _gain(self, steps: Steps, other: Steps) -> tuple[float, float]:
        """Return the difference in log p of two settings, and its standard error."""
        return self._log_loss.difference(self._found[steps].logs, self._found[other].logs)

    def _look(self, steps: Steps, label: str, rival: Steps | None = None, decode: str | None = None) -> bool:
        """Fit and judge a setting, unless it was. Return False where the budget of the search is spent.

        Return False, too, where some folds show already that it is worse than a rival: by log p, or by the figure with
        a decoder where one is given.
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
            found = self._looked(steps, label, rival, decode)
        except Interrupted:
            if not self._enough():
                raise
            self._ended = self._cut_short = True
            return False
        self._tried.append(found.trial)
        self._minimiser.observer.tell(found.trial)
        return steps in self._found

    def _looked(self, steps: Steps, label: str, rival: Steps | None, decode: str | None) -> _Found:
        """Fit and judge a setting on all folds, or on some where those show that it is worse than a rival."""
        logs: list[np.ndarray] = []
        counts: dict[str, list[np.ndarray]] = {name: [] for name in DECODINGS}
        finished, variance, used = True, 0.0, self._used(steps)
        sigma2 = self._fixed | used
        if self._names:  # that of the term that has moved, or of the first one where all have
            name = label if label in self._names else self._names[0]
            variance = _rounded(self._values(steps)[name] * self._scales[name])
        tried, about, folds = len(self._tried), self._about(), len(self._folds)
        for number, fold in enumerate(self._folds):
            step = f"setting {tried + 1} of about {about}: score variance {variance:g} of {label}"
            share = (tried + number / folds) / about
            self._minimiser.observer.tell(Stage("sigma2 search", f"{step}, fold {number + 1} of {folds}", share))
            objective = fold.sample.objective(sigma2)
            theta = fold.start(steps, objective.vectors) if fold.fits else None
            result = self._minimiser.prepare(objective, theta, PATH_TOLERANCE, PATH_PASSES)
            fold.fits[steps] = result.theta
            finished &= result.passes < PATH_PASSES
            self._work += result.work * fold.sample.problem.positions + 2 * fold.held.problem.positions
            self._judge(fold, fold.held.objective(sigma2).engine.predictions(result.theta), logs, counts)
            all_logs, pooled = np.concatenate(logs), {name: np.concatenate(each) for name, each in counts.items()}
            figures = {name: self._yardstick.value(each) for name, each in pooled.items()}
            log_probability, metric = self._log_loss.value(all_logs), self._yardstick.name
            trial = Trial(label, variance, used, log_probability, metric, figures, number + 1, folds)
            found = _Found(trial, all_logs, pooled, finished)
            units = len(all_logs)
            if number + 1 < folds and rival is not None and units >= ENOUGH_UNITS:
                other = self._found[rival]
                if decode is None:
                    gain, error = self._log_loss.difference(all_logs, other.logs[:units])
                else:
                    own = pooled[decode]
                    gain, error = self._yardstick.difference(own, other.counts[decode][: len(own)])
                if gain < -HOPELESS * error:
                    self._hopeless.add(steps)
                    return found
        self._found[steps] = found
        return found

    def _judge(self, fold: _Fold, found: Any, logs: list[np.ndarray], counts: dict[str, list[np.ndarray]]) -> None:
        """Add the counts of the units of one fold, of log p and by decoder."""
        problem = fold.held.problem
        gold = np.log(np.maximum(found.gold.astype(np.float64), SMALLEST_PROBABILITY))
        units = problem.offsets, problem.weights
        of_pieces = [(logs, self._log_loss.counts(problem.labels, None, gold, *units))]
        for name, labels in found.labels.items():
            of_pieces.append((counts[name], self._yardstick.counts(problem.labels, labels, gold, *units)))
        numbers, number = np.unique(fold.pieces.unit, return_inverse=True)
        for out, each in of_pieces:
            totals = each  # added up over neighbours already, unless there is a row for each piece
            if len(each) == len(number):
                totals = np.zeros((len(numbers), each.shape[1]))
                np.add.at(totals, number, each)
            out.append(totals)
