"""Precision, recall and F1 of one kind of thing.

With g gold items, p predicted ones and c correct ones (positions of one label, or spans of one type),

    precision = c / p,   recall = c / g,   F1 = 2 c / (g + p),

each 0 where its denominator is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Score:
    """Counts for one label, one span type, or all of them, and the three figures they give."""

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
        return {
            "gold": self.gold,
            "predicted": self.predicted,
            "correct": self.correct,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


def score_rows(names: Sequence[str], gold: np.ndarray, predicted: np.ndarray, correct: np.ndarray) -> tuple[Score, ...]:
    """One score for each name, from counts in the order of the names."""
    rows = zip(names, gold.tolist(), predicted.tolist(), correct.tolist(), strict=True)
    return tuple(Score(*row) for row in rows)


def ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else 0.0


def mean_f1(scores: Sequence[Score]) -> float:
    """The plain mean over scores, whatever their counts (macro average)."""
    return sum(score.f1 for score in scores) / len(scores) if scores else 0.0
