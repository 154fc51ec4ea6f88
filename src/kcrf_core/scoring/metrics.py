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

import math
import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ..errors import ConfigError
from .evaluation import Evaluation, evaluate

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


_MORE = """

    `average` is "weighted" for the mean weighted by gold counts, "macro" for the plain mean, "micro" for the figure of
    the summed counts, "binary" for the figure of the label `pos_label`, or None for an array with that of each label.
    `labels` are the labels to include; all by default. `zero_division` (0, 1 or NaN, which means leave out) stands for
    a figure that is 0 / 0; "warn" is 0 with a warning.
    """


class FlatScore(Protocol):
    """A figure of labels at positions."""

    def __call__(
        self,
        y_true: Labels,
        y_pred: Labels,
        average: str | None = "weighted",
        labels: Sequence[object] | None = None,
        *,
        pos_label: object = 1,
        zero_division: float | str = 0.0,
    ) -> Any: ...


def _flat_score(figure: str, name: str) -> FlatScore:
    def score(y_true: Labels, y_pred: Labels, average: Any = "weighted", labels: Any = None, **more: Any) -> Any:
        return _flat_figure(FIGURES.index(figure), y_true, y_pred, average, labels, **more)

    score.__name__ = score.__qualname__ = f"flat_{figure}_score"
    score.__doc__ = f"Compute {name} of labels at positions.{_MORE}"
    return score


flat_precision_score = _flat_score("precision", "the precision")
flat_recall_score = _flat_score("recall", "the recall")
flat_f1_score = _flat_score("f1", "F1")


def flat_fbeta_score(
    y_true: Labels,
    y_pred: Labels,
    beta: float,
    average: str | None = "weighted",
    labels: Sequence[object] | None = None,
    *,
    pos_label: object = 1,
    zero_division: float | str = 0.0,
) -> Any:
    """Compute F-beta of labels at positions: recall counts beta times as much as precision; `flat_f1_score` has 1."""
    return _flat_figure(2, y_true, y_pred, average, labels, pos_label, zero_division, beta)


def span_f1_score(y_true: Labels, y_pred: Labels, scheme: str = "auto") -> float:
    """Compute F1 of spans as conlleval counts them."""
    spans = evaluate_sequences(y_true, y_pred, scheme).spans
    if spans is None:
        raise ValueError("these labels are of no scheme of spans (B-X, I-X, O); flat_f1_score takes any")
    return spans.total.f1


def flat_classification_report(
    y_true: Labels,
    y_pred: Labels,
    labels: Sequence[object] | None = None,
    *,
    target_names: Sequence[str] | None = None,
    digits: int = 2,
    output_dict: bool = False,
    zero_division: float | str = 0.0,
) -> Any:
    """Make a table with precision, recall, F1 and gold counts ("support") of each label, and their means.

    It is the text that scikit-learn's `classification_report` gives for all labels end to end, or with `output_dict` a
    dictionary of dictionaries. Accuracy stands in the place of the micro average where all labels are included.
    `target_names` are other names for the labels, in their order.
    """
    found = evaluate_sequences(y_true, y_pred, None)
    names, counts = _counts(found, y_true, y_pred, labels)
    complete = {score.name for score in found.labels}.issubset(names)
    titles = names if target_names is None else list(target_names)
    if len(titles) != len(names):
        raise ValueError(f"{len(titles):,} target_names, but {len(names):,} labels")
    gold = int(counts[:, 0].sum())
    rows: dict[str, list[float]] = {}
    for title, figures, support in zip(titles, _figures(counts, zero_division), counts[:, 0], strict=True):
        rows[title] = [*figures.tolist(), float(support)]
    for average in AVERAGES:
        rows[f"{average} avg"] = [*_mean(counts, average, zero_division).tolist(), float(gold)]
    if complete:
        rows = {("accuracy" if name == "micro avg" else name): row for name, row in rows.items()}
    headings = ("precision", "recall", "f1-score", "support")
    if output_dict:
        every: dict[str, Any] = {name: dict(zip(headings, row, strict=True)) for name, row in rows.items()}
        return every | ({"accuracy": found.accuracy} if complete else {})
    width = max(*map(len, rows), digits)
    lines = [" " * width + " " + "".join(f" {heading:>9}" for heading in headings), ""]
    for name, row in rows.items():
        lines += [""] * (name in ("accuracy", "micro avg"))
        cells = [f"{figure:9.{digits}f}" for figure in row[:3]]
        if name == "accuracy":
            cells = [" " * 9, " " * 9, f"{found.accuracy:9.{digits}f}"]
        lines.append(f"{name:>{width}}  {' '.join(cells)} {row[3]:9.0f}")
    return "\n".join([*lines, ""])


def _flat_figure(
    figure: int,
    y_true: Labels,
    y_pred: Labels,
    average: str | None,
    labels: Sequence[object] | None,
    pos_label: object = 1,
    zero_division: float | str = 0.0,
    beta: float = 1.0,
) -> Any:
    """Compute a figure by its place in FIGURES."""
    if not beta >= 0:
        raise ConfigError(f"beta={beta!r}: a number of at least 0 is needed")
    if average == "binary":
        labels, average = [pos_label], "micro"
    counts = _counts(evaluate_sequences(y_true, y_pred, None), y_true, y_pred, labels)[1]
    if average is None:
        return _figures(counts, zero_division, beta)[:, figure]
    return float(_mean(counts, average, zero_division, beta)[figure])


def _counts(
    found: Evaluation, y_true: Labels, y_pred: Labels, labels: Sequence[object] | None
) -> tuple[list[str], np.ndarray]:
    """Return names of labels, and their counts [Y, 3] in gold, predicted and both."""
    known = {score.name: (score.gold, score.predicted, score.correct) for score in found.labels}
    if labels is None:
        every = set(chain.from_iterable(chain(y_true, y_pred)))
        labels = list(known) if any(isinstance(label, str) for label in every) else np.sort(list(every)).tolist()
    names = [str(label) for label in labels]
    return names, np.array([known.get(name, (0, 0, 0)) for name in names], dtype=np.int64).reshape(-1, 3)


def _figures(counts: np.ndarray, zero_division: float | str, beta: float = 1.0) -> np.ndarray:
    """Return precision, recall and F-beta [Y, 3] of counts in gold, predicted and both."""
    nothing = 0.0 if zero_division == "warn" else zero_division
    if isinstance(nothing, str) or not (nothing in (0, 1) or np.isnan(nothing)):
        raise ConfigError(f"zero_division={zero_division!r}: there are 0, 1, NaN and 'warn'")
    gold, predicted, correct = counts.T.astype(np.float64)
    below = np.stack([predicted, gold, predicted + beta**2 * gold], axis=1)
    above = np.stack([correct, correct, (1 + beta**2) * correct], axis=1)
    if np.isinf(beta):
        below[:, 2], above[:, 2] = gold, correct
    if zero_division == "warn" and not below.all():
        warnings.warn("a figure that is 0 / 0 is set to 0 (zero_division)", UserWarning, stacklevel=4)
    return np.divide(above, below, out=np.full_like(below, float(nothing)), where=below > 0)


def _mean(counts: np.ndarray, average: str, zero_division: float | str, beta: float = 1.0) -> np.ndarray:
    """Return means of precision, recall and F-beta, [3]; figures that are NaN are left out."""
    if average not in AVERAGES:
        raise ConfigError(f"average={average!r}: there are {', '.join(AVERAGES)}, binary and None")
    if average == "micro":
        return _figures(counts.sum(axis=0, keepdims=True), zero_division, beta)[0]
    figures = _figures(counts, zero_division, beta)
    out = []
    for column in figures.T:
        there = ~np.isnan(column)
        weights = counts[there, 0] if average == "weighted" and counts[there, 0].any() else np.ones(int(there.sum()))
        nothing = np.nan if len(column) else 0.0
        out.append(math.fsum(column[there] * weights) / weights.sum() if there.any() else nothing)
    return np.array(out)
