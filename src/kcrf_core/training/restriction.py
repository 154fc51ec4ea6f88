"""Settings by which data decides on weights, values, transitions and labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import HALF_KNOWN, Problem
from ..config import Config
from ..encoding import UNKNOWN, Dataset, Encoding, RareValues
from ..features import FittedTerm, frequent_only, observed_only
from ..objective.solvers import Observer
from ..scoring import Transitions
from ..system import Workers
from .problems import allowed_by, problem_of


@dataclass(frozen=True, eq=False)
class Restriction:
    """Settings that look at labels or counts, and the data of a task."""

    encoding: Encoding
    dataset: Dataset  # with the positions of the task
    config: Config
    least: float | None = None  # sum of the values of a feature with a label, for a weight

    def terms(
        self, fitted: Sequence[FittedTerm], problem: Problem, workers: Workers, observer: Observer
    ) -> tuple[FittedTerm, ...]:
        """Return terms with weights for pairs of a feature and a label that the problem has."""
        terms = list(fitted)
        if self.config.training.observed_features:
            terms = observed_only(terms, problem, workers, observer)
        if self.least is not None:
            terms = frequent_only(terms, problem, self.least, workers)
        return tuple(terms)

    def transitions(self, problem: Problem) -> Transitions:
        """Return the transitions that some data allows, none of them with a label that it lacks."""
        allowed, seen = allowed_by(self.encoding, problem, self.config.training, False), _seen_labels(problem)
        first, last = (ends & seen if (ends & seen).any() else seen for ends in (allowed.first, allowed.last))
        return Transitions(allowed.pairs & seen & seen[:, None], first, last)

    def rare_values(self, rows: np.ndarray) -> RareValues | None:
        """Return values that are too rare at some positions; None if no value can be."""
        return RareValues.of(self.encoding, self.dataset, rows, self.config.min_count)


def divided(
    encoding: Encoding, dataset: Dataset, rest: np.ndarray, test: np.ndarray, min_count: int
) -> tuple[Dataset, Dataset]:
    """Return two parts, sequences by number, both with values and labels of the first.

    Labels that it lacks are unknown in the second.
    """
    training, held_out = dataset.subset(rest), dataset.subset(test)
    rare = RareValues.of(encoding, training, np.arange(training.positions), min_count)
    if rare is not None:
        training, held_out = rare.left_out_of(training), rare.left_out_of(held_out)
    seen, labels = _seen_labels(problem_of(encoding, training)), held_out.known_labels
    unknown = (labels >= 0) & ~seen[np.maximum(labels, 0)]
    return training, replace(held_out, labels=np.where(unknown, np.int32(UNKNOWN), labels))


def _seen_labels(problem: Problem) -> np.ndarray:
    """Return True for labels that are observed or half known, [Y]; for all if none is."""
    labels, seen = problem.labels, np.zeros(problem.label_count, dtype=bool)
    seen[labels[labels >= 0]] = True
    if problem.half_known is not None:
        rows = np.unique(HALF_KNOWN - labels[labels <= HALF_KNOWN])
        seen |= (problem.half_known.weights[rows] > 0).any(axis=0)
    return seen if seen.any() else np.ones_like(seen)
