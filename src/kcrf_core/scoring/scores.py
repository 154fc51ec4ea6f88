"""Precision, recall and F1, of positions and of spans.

With g gold items, p predicted ones and c correct ones (positions of one label, or spans of one type),

    precision = c / p,   recall = c / g,   F1 = 2 c / (g + p),

each 0 where its denominator is. A span is correct if start, end and type are.

The figures over all spans come from the summed counts, as in conlleval (micro average); `macro_f1` is the plain mean
of F1 over types, those that occur in gold or prediction. Spans are conlleval's, or with a strict scheme only those
that are written as the scheme demands (see `schemes`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .spans import SpanFinder, Spans


@dataclass(frozen=True)
class Score:
    """Counts for one label, for one span type, or for all of them, and the three figures."""

    name: str  # the label or type; empty for a bare type and for totals
    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        return ratio(2 * self.correct, self.gold + self.predicted)

    def to_dict(self) -> dict:
        keys = ("gold", "predicted", "correct", "precision", "recall", "f1")
        return {key: getattr(self, key) for key in keys}


def score_rows(names: Sequence[str], gold: np.ndarray, predicted: np.ndarray, correct: np.ndarray) -> tuple[Score, ...]:
    """Make one score for each name, from counts in the order of the names."""
    rows = zip(names, gold.tolist(), predicted.tolist(), correct.tolist(), strict=True)
    return tuple(Score(*row) for row in rows)


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def mean_figure(scores: Sequence[Score], figure: str = "f1", weighted: bool = False) -> float:
    """Return the plain mean of a figure over scores (macro average), or the mean weighted by gold counts."""
    weights = [score.gold if weighted else 1 for score in scores]
    pairs = zip(weights, scores, strict=True)
    return ratio(math.fsum(weight * getattr(score, figure) for weight, score in pairs), sum(weights))


@dataclass(frozen=True)
class SpanScores:
    """Scores of spans: over all of them, and by type (sorted; those in gold or prediction)."""

    total: Score
    types: tuple[Score, ...]

    @property
    def macro_f1(self) -> float:
        return mean_figure(self.types)

    @property
    def weighted_f1(self) -> float:
        return mean_figure(self.types, weighted=True)

    def to_dict(self) -> dict:
        return {
            **self.total.to_dict(),
            "macro_f1": self.macro_f1,
            "weighted_f1": self.weighted_f1,
            "types": [{"type": score.name, **score.to_dict()} for score in self.types],
        }


class SpanMatches:
    """The gold, predicted and correct spans of two labellings of N positions.

    With `strict`, a scheme, spans that are not written as the scheme demands do not count.
    """

    def __init__(self, finder: SpanFinder, gold: Spans, predicted: Spans, N: int, strict: str | None = None):
        if strict is not None:
            gold, predicted = gold.well_formed(strict), predicted.well_formed(strict)
        # Spans of one labelling do not overlap, so a start names at most one of them: the gold span that begins where
        # a predicted one does is looked up by it.
        number_at = np.full(N, -1, dtype=np.int32)  # [N] of the gold span that begins there
        number_at[gold.starts] = np.arange(len(gold.starts), dtype=np.int32)
        rivals = number_at[predicted.starts]
        both = np.flatnonzero(rivals >= 0)
        rivals = rivals[both]
        right = both[(gold.ends[rivals] == predicted.ends[both]) & (gold.kinds[rivals] == predicted.kinds[both])]
        self.types = finder.types
        # Starts and types of gold, predicted and correct spans.
        self.items = [(gold.starts, gold.kinds), (predicted.starts, predicted.kinds),
                      (predicted.starts[right], predicted.kinds[right])]  # fmt: skip

    @classmethod
    def between(
        cls, alphabet: Sequence[str], gold: np.ndarray, predicted: np.ndarray, offsets: np.ndarray,
        strict: str | None = None,
    ) -> SpanMatches:  # fmt: skip
        """Match two labellings [N], which number the labels of `alphabet`; sequences have the offsets [S+1]."""
        finder = SpanFinder(alphabet)
        return cls(finder, finder.find(gold, offsets), finder.find(predicted, offsets), len(gold), strict)

    def scores(self) -> SpanScores:
        counts = [np.bincount(kinds, minlength=len(self.types)) for _, kinds in self.items]
        return SpanScores(Score("", *(int(count.sum()) for count in counts)), score_rows(self.types, *counts))

    def by_unit(self, units: np.ndarray) -> np.ndarray:
        """Count gold, predicted and correct spans [U, 3] that begin in each unit; `units` [U+1] are offsets."""
        # Starts are in order: those of a unit stand between the first from its beginning and from that of the next.
        return np.stack([np.diff(np.searchsorted(starts, units)) for starts, _ in self.items], axis=1)
