"""Scores of lists of lists of labels. The functions have the names of those in `sklearn_crfsuite.metrics`.

Figures are those of scikit-learn for all labels end to end, and 0 where they are 0 / 0.

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

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ..errors import ConfigError
from .evaluation import Evaluation, evaluate
from .spans import Score, ratio

Labels = Sequence[Sequence[object]]

FIGURES = ("precision", "recall", "f1")
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
    """Compute the share of sequences without a wrong label, 0 if there are none."""
    none = not len(y_true) and not len(y_pred)
    return 0.0 if none else evaluate_sequences(y_true, y_pred, None).sequence_accuracy


def flat_precision_score(
    y_true: Labels, y_pred: Labels, average: str | None = "weighted", labels: Sequence[object] | None = None
) -> Any:
    """Compute the precision of labels at positions; see `flat_f1_score`."""
    return _figure("precision", _scores(y_true, y_pred, labels), average)


def flat_recall_score(
    y_true: Labels, y_pred: Labels, average: str | None = "weighted", labels: Sequence[object] | None = None
) -> Any:
    """Compute the recall of labels at positions; see `flat_f1_score`."""
    return _figure("recall", _scores(y_true, y_pred, labels), average)


def flat_f1_score(
    y_true: Labels, y_pred: Labels, average: str | None = "weighted", labels: Sequence[object] | None = None
) -> Any:
    """Compute F1 of labels at positions.

    `average` is "weighted" for the mean weighted by gold counts, "macro" for the plain mean, "micro" for the figure of
    the summed counts, or None for an array with that of each label. `labels` are the labels to include; all by default.
    """
    return _figure("f1", _scores(y_true, y_pred, labels), average)


def span_f1_score(y_true: Labels, y_pred: Labels, scheme: str = "auto") -> float:
    """Compute F1 of spans as conlleval counts them."""
    spans = evaluate_sequences(y_true, y_pred, scheme).spans
    if spans is None:
        raise ValueError("these labels are of no scheme of spans (B-X, I-X, O); flat_f1_score takes any")
    return spans.total.f1


def flat_classification_report(
    y_true: Labels, y_pred: Labels, labels: Sequence[object] | None = None, *, digits: int = 2
) -> str:
    """Make a table with precision, recall, F1 and gold counts ("support") of each label, and their means.

    It is the text that scikit-learn's `classification_report` gives for all labels end to end. Accuracy stands in the
    place of the micro average where all labels are included.
    """
    scores = _scores(y_true, y_pred, labels)
    rows = {score.name: [getattr(score, figure) for figure in FIGURES] for score in scores}
    means = {f"{average} avg": [_figure(figure, scores, average) for figure in FIGURES] for average in AVERAGES}
    complete = {str(label) for label in chain.from_iterable(chain(y_true, y_pred))} <= rows.keys()
    width = max(*map(len, (*rows, *means)), digits)
    lines = [
        " " * width + " " + "".join(f" {heading:>9}" for heading in ("precision", "recall", "f1-score", "support"))
    ]
    supports = [*(score.gold for score in scores), *[sum(score.gold for score in scores)] * len(means)]
    for (name, figures), support in zip((rows | means).items(), supports, strict=True):
        lines += [""] if name == "micro avg" or len(lines) == 1 else []
        cells = [f"{figure:9.{digits}f}" for figure in figures]
        if name == "micro avg" and complete:
            name, cells = "accuracy", [" " * 9, " " * 9, cells[2]]
        lines.append(f"{name:>{width}}  {' '.join(cells)} {support:9d}")
    return "\n".join([*lines, ""])


def _scores(y_true: Labels, y_pred: Labels, labels: Sequence[object] | None) -> list[Score]:
    """Return counts of the labels to include, in the order of scikit-learn."""
    known = {score.name: score for score in evaluate_sequences(y_true, y_pred, None).labels}
    if labels is None:
        every = set(chain.from_iterable(chain(y_true, y_pred)))
        labels = list(known) if any(isinstance(label, str) for label in every) else np.sort(list(every)).tolist()
    return [known.get(str(label), Score(str(label), 0, 0, 0)) for label in labels]


def _figure(figure: str, scores: Sequence[Score], average: str | None) -> Any:
    """Return the mean of a figure over labels, or an array with that of each."""
    figures = [getattr(score, figure) for score in scores]
    if average is None:
        return np.array(figures)
    if average not in AVERAGES:
        raise ConfigError(f"average={average!r}: there are {', '.join(AVERAGES)} and None")
    if average == "micro":
        counts = (sum(getattr(score, count) for score in scores) for count in ("gold", "predicted", "correct"))
        return getattr(Score("", *counts), figure)
    weights = [score.gold if average == "weighted" else 1 for score in scores]
    return ratio(math.fsum(map(math.prod, zip(weights, figures, strict=True))), sum(weights))
