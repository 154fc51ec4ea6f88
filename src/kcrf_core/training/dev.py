"""Held-out data that is scored while training goes on, and the parameters that do best on it.

How often it is scored depends on the sizes of the data and on P alone, never on the clock, so that what is kept is
the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..chains import Problem
from ..encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from ..model import Model
from ..objective import Posterior, Vector
from ..scoring import SMALLEST_PROBABILITY, detect_scheme, span_scores
from ..solvers import BEST, Progress, moved
from ..system import Workers
from .observer import DevProgress, DevScore, Observer
from .task import Solution, TrainingTask

# Work on held-out data is at most this part of all work, counted in positions.
LARGEST_SHARE = 1 / 3


@dataclass(frozen=True)
class DevReport:
    """How well the parameters that were kept label the held-out data."""

    score: DevScore
    positions: int
    unknown_gold: int  # positions whose label the training data lacks
    keep: str  # last or best
    best: DevScore  # of all scores that were taken
    best_pass: int  # after which pass it was

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self.score),
            "positions": self.positions,
            "unknown_gold": self.unknown_gold,
            "keep": self.keep,
            "best": {**asdict(self.best), "pass": self.best_pass},
        }


class DevData:
    """Labelled held-out data, and scores of labellings of it."""

    def __init__(self, dataset: Dataset, labels: Sequence[str]):
        self.dataset = dataset
        self.known = dataset.labels >= 0  # [N]
        self._gold = np.maximum(dataset.labels, 0)  # [N]; what stands for an unknown label is never looked at
        self._observed = dataset.labels != UNOBSERVED  # [N]; the others have no say, and leave spans open
        # A label that the model does not know gets a name that fits the scheme and equals no other.
        spans = detect_scheme(labels) is not None and self._observed.all()
        self._alphabet = (*labels, "B-<unknown>") if spans else None
        self._span_gold = np.where(self.known, dataset.labels, len(labels)).astype(np.int64)  # [N]

    @property
    def unknown(self) -> int:
        """Positions whose label the model does not know."""
        return int(np.count_nonzero(self.dataset.labels == UNKNOWN))

    def problem(self, label_count: int) -> Problem:
        return Problem(self._gold, self.dataset.offsets, np.ones(self.dataset.sequences), label_count)

    def score(self, best: np.ndarray, probability: np.ndarray) -> DevScore:
        """Score the best labels [N] and the probabilities [N] that gold labels have."""
        right = (best == self._gold) & self.known
        logs = np.log(np.maximum(probability[self.known].astype(np.float64), SMALLEST_PROBABILITY))
        f1 = None
        if self._alphabet is not None:
            predicted = best.astype(np.int64)
            f1 = span_scores(self._alphabet, self._span_gold, predicted, np.unique(self.dataset.offsets)).total.f1
        return DevScore(float(right[self._observed].mean()), float(logs.mean()) if len(logs) else 0.0, f1)

    def score_model(self, model: Model, workers: Workers) -> DevScore:
        """Score a finished model, exactly as it will label."""

        def of_gold(part: Dataset, best: np.ndarray, marginals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return best, marginals[np.arange(len(best)), np.maximum(part.labels, 0)]

        best, probability = zip(*model.tag_with_marginals(self.dataset, of_gold, workers), strict=True)
        return self.score(np.concatenate(best), np.concatenate(probability))


class Watch:
    """Scores held-out data whenever P has come down and enough passes have gone by."""

    def __init__(
        self,
        dataset: Dataset,
        keep: str,
        encoding: Encoding,
        task: TrainingTask,  # of training
        sigma2: Mapping[str, float],
        observer: Observer,
    ):
        self._data, self._encoding, self._sigma2 = DevData(dataset, encoding.labels), encoding, sigma2
        self._posterior = self._of_data(task)
        self._keep, self._observer = keep, observer
        # One score takes about a pass over the held-out data.
        cost = dataset.positions / task.problem.positions
        self._interval = max(1, math.ceil(cost * (1 / LARGEST_SHARE - 1)))
        self._last: float | None = None
        self._seen: Vector | None = None  # where the last score was taken
        self._best: tuple[DevScore, Vector, int] | None = None  # the best score, where, and after which pass

    def _of_data(self, task: TrainingTask) -> Posterior:
        """P of the held-out data, with the terms of training."""
        dataset, terms = self._data.dataset, []
        for term in task.terms:
            if term.map is not None:
                inputs = self._encoding.inputs(dataset, term.features)
                term = replace(term, map=term.map_of(inputs, task.workers, task.dtype))
            terms.append(term)
        problem = self._data.problem(task.problem.label_count)
        return replace(task, problem=problem, terms=tuple(terms)).posterior(self._sigma2)

    def widen(self, task: TrainingTask, share: float) -> None:
        """Go on with more columns of the maps, of which the old ones are the first and `share` is their part."""
        before, self._posterior = self._posterior, self._of_data(task)
        self._seen = None
        if self._best is not None:
            score, theta, passes = self._best
            self._best = (score, self._posterior.vectors.widened(theta, before.vectors), passes)
        if self._last is not None:
            self._last *= share  # as the run counts its work

    def passed(self, progress: Progress) -> None:
        """Score the point of one more pass, if it is time; one of another size belongs to a part of the problem."""
        self._observer.tell(progress)
        theta, work = progress.theta, progress.work
        if theta is None or theta is self._seen or self._posterior.vectors.length(theta) != self._posterior.size:
            return
        if self._last is None or work - self._last >= self._interval:
            self._last, self._seen = work, theta
            self._look(theta, progress.passes)

    def _look(self, theta: Vector, passes: int) -> None:
        """Score these parameters, and keep them if they are the best so far."""
        score = self._score(theta)
        better = score.better_than(None if self._best is None else self._best[0])
        if better:
            self._best = (score, theta, passes)
        self._observer.tell(DevProgress(passes, score, better))

    def kept(self, solution: Solution, tolerance: float) -> Solution:
        """The solution, or with `keep` "best" the best parameters on the way to it.

        Those come with their own P, against the best lower bound of all: they count as certified only where it
        proves that they are.
        """
        result = solution.result
        if result.theta is not self._seen:
            self._look(result.theta, result.passes)
        theta = self._best[1]
        if self._keep != "best" or theta is result.theta:
            return solution
        return replace(solution, result=moved(result, solution.posterior, theta, tolerance, BEST))

    def report(self, model: Model, workers: Workers) -> DevReport:
        """Score the model that is made of the parameters kept."""
        score, _, passes = self._best
        data = self._data
        final = data.score_model(model, workers)
        return DevReport(final, data.dataset.positions, data.unknown, self._keep, score, passes)

    def _score(self, theta: Vector) -> DevScore:
        found = self._posterior.engine.predictions(theta)
        return self._data.score(found.labels["viterbi"], found.gold)
