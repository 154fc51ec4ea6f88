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

TypedSpans = tuple[np.ndarray, np.ndarray, np.ndarray]  # starts, ends and types


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


def mean_f1(scores: Sequence[Score]) -> float:
    """Average F1 over scores, whatever their counts (macro average)."""
    return math.fsum(score.f1 for score in scores) / len(scores) if scores else 0.0


def weighted_f1(scores: Sequence[Score]) -> float:
    """Average F1 over scores, each by its gold count."""
    return ratio(math.fsum(score.gold * score.f1 for score in scores), sum(score.gold for score in scores))


@dataclass(frozen=True)
class SpanScores:
    """Scores of spans: over all of them, and by type (sorted; those in gold or prediction)."""

    total: Score
    types: tuple[Score, ...]

    @property
    def macro_f1(self) -> float:
        return mean_f1(self.types)

    @property
    def weighted_f1(self) -> float:
        return weighted_f1(self.types)

    def to_dict(self) -> dict:
        return {
            **self.total.to_dict(),
            "macro_f1": self.macro_f1,
            "weighted_f1": self.weighted_f1,
            "types": [{"type": score.name, **score.to_dict()} for score in self.types],
        }


class SpanMatches:
    """The spans of two labellings [N], and which predicted spans are correct.

    Sequence s is positions offsets[s]:offsets[s+1], none of them empty.
    """

    def __init__(self, names: Sequence[str], gold: TypedSpans, predicted: TypedSpans, offsets: np.ndarray):
        (gold_starts, gold_ends, gold_types), (starts, ends, types) = gold, predicted
        # Spans of one labelling do not overlap, so a start names at most one of them: the gold span that begins where
        # a predicted one does is looked up by it.
        number_at = np.full(int(offsets[-1]), -1, dtype=np.int32)  # [N] of the gold span that begins there
        number_at[gold_starts] = np.arange(len(gold_starts), dtype=np.int32)
        rivals = number_at[starts]
        both = np.flatnonzero(rivals >= 0)
        rivals = rivals[both]
        right = both[(gold_ends[rivals] == ends[both]) & (gold_types[rivals] == types[both])]
        self._names, self._offsets = names, offsets
        # Gold, predicted, correct: where they begin, and their types.
        self._starts = (gold_starts, starts, starts[right])
        self._types = (gold_types, types, types[right])

    @property
    def predicted(self) -> tuple[np.ndarray, np.ndarray]:
        """Where predicted spans begin, and which of them are correct, bool."""
        starts, right = self._starts[1:]
        return starts, np.isin(starts, right)

    @classmethod
    def between(
        cls,
        alphabet: Sequence[str],
        gold_codes: np.ndarray,
        predicted_codes: np.ndarray,
        offsets: np.ndarray,
        strict: str | None = None,  # a scheme that spans have to be written in
    ) -> SpanMatches:
        """Those of two labellings, whose codes number the labels of `alphabet`."""
        finder = SpanFinder(alphabet)
        found = finder.find(gold_codes, offsets), finder.find(predicted_codes, offsets)
        return cls.of(finder, *found, offsets) if strict is None else cls.strictly(finder, *found, offsets, strict)

    @classmethod
    def of(cls, finder: SpanFinder, gold: Spans, predicted: Spans, offsets: np.ndarray) -> SpanMatches:
        """Those of all spans of two labellings."""
        gold_spans, predicted_spans = ((found.starts, found.ends, found.kinds) for found in (gold, predicted))
        return cls(finder.types, gold_spans, predicted_spans, offsets)

    @classmethod
    def strictly(
        cls, finder: SpanFinder, gold: Spans, predicted: Spans, offsets: np.ndarray, scheme: str
    ) -> SpanMatches:
        """Those of spans that a scheme would write like this."""
        return cls(finder.types, gold.well_formed(scheme), predicted.well_formed(scheme), offsets)

    def scores(self) -> SpanScores:
        counts = [np.bincount(which, minlength=len(self._names)) for which in self._types]
        return SpanScores(
            total=Score("", *(int(count.sum()) for count in counts)),
            types=score_rows(self._names, *counts),
        )

    def by_sequence(self, units: np.ndarray | None = None) -> np.ndarray:
        """Count gold, predicted and correct spans of each sequence, [S, 3], or of those that begin in each unit.

        `units` [U+1] are offsets, too; a span goes on beyond the unit that it begins in.
        """
        # Starts are in order: those of a unit stand between the first from its beginning and from that of the next.
        borders = self._offsets if units is None else units
        return np.stack([np.diff(np.searchsorted(starts, borders)) for starts in self._starts], axis=1)

    @property
    def types(self) -> int:
        """How many types there are."""
        return len(self._names)

    def items(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Where spans begin and the numbers of their types: of gold, predicted and correct ones."""
        return list(zip(self._starts, self._types, strict=True))
