"""Scores of lists of lists of labels. The functions have the names of those in `sklearn_crfsuite.metrics`.

>>> from kcrf_core import metrics
>>> gold, found = [["B-A", "I-A", "O"], ["O", "B-B"]], [["B-A", "I-A", "O"], ["O", "B-A"]]
>>> metrics.flat_accuracy_score(gold, found)
0.8
>>> metrics.span_f1_score(gold, found)
0.5
>>> round(metrics.flat_f1_score(gold, found, average="weighted", labels=["B-A", "B-B", "I-A"]), 4)
0.5556
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol, overload

import numpy as np

from ..errors import ConfigError
from .evaluation import Evaluation, evaluate
from .spans import Score, mean_figure

Labels = Sequence[Sequence[object]]

AVERAGES = ("micro", "macro", "weighted")


def evaluate_sequences(y_true: Labels, y_pred: Labels, scheme: str | None = "auto") -> Evaluation:
    """Compute everything that `kcrf evaluate` computes."""
    lengths = [len(labels) for labels in y_true]
    if lengths != [len(labels) for labels in y_pred]:
        raise ValueError("y_true and y_pred differ in the number of sequences, or in the length of one")
    gold, predicted = (list(map(str, chain.from_iterable(y))) for y in (y_true, y_pred))
    return evaluate(gold, predicted, np.concatenate([[0], np.cumsum(lengths)]), scheme)


def flat_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Compute the share of positions with the right label."""
    return evaluate_sequences(y_true, y_pred, None).accuracy


def sequence_accuracy_score(y_true: Labels, y_pred: Labels) -> float:
    """Compute the share of sequences without a wrong label."""
    return evaluate_sequences(y_true, y_pred, None).sequence_accuracy


class FlatScore(Protocol):
    """A figure of labels at positions.

    `average` is "weighted" for the mean weighted by gold counts, "macro" for the plain mean, "micro" for the figure of
    the summed counts, or None for an array with that of each label. `labels` are the labels to include; all by default.
    """

    @overload
    def __call__(
        self, y_true: Labels, y_pred: Labels, average: str = "weighted", labels: Sequence[object] | None = None
    ) -> float: ...
    @overload
    def __call__(
        self, y_true: Labels, y_pred: Labels, average: None, labels: Sequence[object] | None = None
    ) -> np.ndarray: ...


def _flat_score(figure: str, name: str) -> FlatScore:
    def score(
        y_true: Labels, y_pred: Labels, average: str | None = "weighted", labels: Sequence[object] | None = None
    ) -> Any:
        scores = _scores(y_true, y_pred, labels)
        if average is None:
            return np.array([getattr(score, figure) for score in scores])
        return _mean(figure, scores, average)

    score.__name__ = score.__qualname__ = f"flat_{figure}_score"
    score.__doc__ = f"Compute {name} of labels at positions.\n{(FlatScore.__doc__ or '').partition(chr(10))[2]}"
    return score


flat_precision_score = _flat_score("precision", "the precision")
flat_recall_score = _flat_score("recall", "the recall")
flat_f1_score = _flat_score("f1", "F1")


def span_f1_score(y_true: Labels, y_pred: Labels, scheme: str = "auto") -> float:
    """Compute F1 of spans as conlleval counts them."""
    spans = evaluate_sequences(y_true, y_pred, scheme).spans
    if spans is None:
        raise ValueError("these labels are of no scheme of spans (B-X, I-X, O); flat_f1_score takes any")
    return spans.total.f1


def flat_classification_report(
    y_true: Labels, y_pred: Labels, labels: Sequence[object] | None = None, digits: int = 3
) -> str:
    """Make a table with precision, recall, F1 and gold counts of each label, and their means."""
    scores = _scores(y_true, y_pred, labels)
    rows = [[score.name, score.precision, score.recall, score.f1, score.gold] for score in scores]
    total = sum(score.gold for score in scores)
    for average in AVERAGES:
        means = [_mean(figure, scores, average) for figure in ("precision", "recall", "f1")]
        rows.append([f"{average} mean", *means, total])
    width = max(len(str(row[0])) for row in rows)
    lines = [f"{'':{width}}  precision     recall         F1     gold"]
    for name, *figures, gold in rows:
        lines.append(f"{name:>{width}}  " + "  ".join(f"{figure:9.{digits}f}" for figure in figures) + f"  {gold:7,}")
    return "\n".join(lines)


def _scores(y_true: Labels, y_pred: Labels, labels: Sequence[object] | None) -> list[Score]:
    found = {score.name: score for score in evaluate_sequences(y_true, y_pred, None).labels}
    names = list(found) if labels is None else [str(label) for label in labels]
    return [found.get(name, Score(name, 0, 0, 0)) for name in names]


def _mean(figure: str, scores: Sequence[Score], average: str) -> float:
    if average == "micro":
        total = Score("", *(sum(getattr(score, key) for score in scores) for key in ("gold", "predicted", "correct")))
        return getattr(total, figure)
    if average in ("macro", "weighted"):
        return mean_figure(scores, figure, average == "weighted")
    raise ConfigError(f"average={average!r}: there are {', '.join(AVERAGES)} and None")
