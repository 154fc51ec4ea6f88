"""Data of plots of an evaluation: intervals of bins and of labels, curves of each label.

Intervals are those of the bootstrap over the units of the judgement, sequences or blocks. A curve takes one label
against all others and predicts it where its probability is at least c, for every c:

    precision       share of predicted positions that have the label
    recall          share of positions with the label that are predicted
    false alarms    share of positions without the label that are predicted (false positive rate)

`average_precision` is the sum of precision times the step in recall; `area` is the AUC, the area under recall against
false alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import CodedColumn
from .blocks import unit_offsets
from .judgement import Judgement
from .labelling import Labelling, LabelProbabilities
from .significance import Interval, bootstrap
from .spans import Score
from .yardstick import Yardstick

MOST_POINTS = 400  # of a curve: more cannot be seen


@dataclass(frozen=True, eq=False)
class LabelCurve:
    """One label against all others, [P] points in the order of falling probability."""

    label: str
    gold: int  # positions that have it
    precision: np.ndarray
    recall: np.ndarray
    false_alarms: np.ndarray
    average_precision: float
    area: float


def bin_intervals(found: Judgement, labelling: Labelling) -> list[Interval]:
    """Return intervals of the accuracy in each bin of the calibration, in its order; empty without resamples."""
    units, resamples = _units(found, labelling)
    if found.calibration is None or labelling.probabilities is None or not resamples:
        return []
    B, U = found.options.bins, len(units) - 1
    which = np.minimum((labelling.probabilities.predicted * B).astype(np.int64), B - 1)
    cells = np.repeat(np.arange(U), np.diff(units)) * B + which
    hits = np.bincount(cells, labelling.right, minlength=U * B).reshape(U, B)
    positions = np.bincount(cells, minlength=U * B).reshape(U, B)
    taken = np.flatnonzero(positions.any(axis=0))
    return _ratio_intervals(hits[:, taken], positions[:, taken], found)


def f1_intervals(found: Judgement, labelling: Labelling) -> dict[str, Interval]:
    """Return intervals of F1 of each type of span, or of each label without spans; empty without resamples."""
    units, resamples = _units(found, labelling)
    if not resamples:
        return {}
    spans = found.spans
    labels = tuple(score.name for score in found.scores.labels)
    yardstick = Yardstick("macro-f1", labels, spans is not None, found.headline.yardstick.strict)
    gold, predicted = (CodedColumn.of(own).numbered(labels, 0) for own in (labelling.gold, labelling.predicted))
    counts = yardstick.counts(gold, predicted, None, units, sequences=np.unique(labelling.offsets))
    K = counts.shape[1] // 2
    names = yardstick.classes
    kept = [k for k in range(K) if names[k] in {score.name for score in scores_shown(found)}]
    intervals = _ratio_intervals(counts[:, kept], counts[:, [K + k for k in kept]], found)
    return {names[k]: interval for k, interval in zip(kept, intervals, strict=True)}


def scores_shown(found: Judgement) -> tuple[Score, ...]:
    """Return scores by type of span, or by label without spans."""
    return found.scores.labels if found.spans is None else found.spans.types


def label_curves(marginals: LabelProbabilities, gold: Sequence[str], most: int) -> list[LabelCurve]:
    """Return curves of the labels with most gold positions, those that some but not all positions have."""
    column = CodedColumn.of(gold)
    counts = dict(zip(column.values, np.bincount(column.codes, minlength=len(column.values)).tolist(), strict=True))
    drawn = [y for y, label in enumerate(marginals.labels) if 0 < counts.get(label, 0) < len(gold)]
    drawn.sort(key=lambda y: (-counts[marginals.labels[y]], y))
    return [_curve(marginals, y, column) for y in drawn[:most]]


def _curve(marginals: LabelProbabilities, y: int, gold: CodedColumn) -> LabelCurve:
    label = marginals.labels[y]
    has = gold.codes == gold.values.index(label)
    values = marginals.values[:, y]
    order = np.argsort(-values, kind="stable")
    # Positions of equal probability are predicted together.
    last = np.append(np.flatnonzero(np.diff(values[order])), len(values) - 1)
    right = np.cumsum(has[order])[last]
    asked = last + 1
    total, others = int(has.sum()), int((~has).sum())
    precision, recall, false_alarms = right / asked, right / total, (asked - right) / others
    average_precision = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    heights = recall - np.diff(recall, prepend=0.0) / 2  # in the middle of each step
    area = float(np.sum(np.diff(false_alarms, prepend=0.0) * heights))
    # As many points along recall as along false alarms: one curve is steep where the other is flat.
    some = [np.searchsorted(each, np.linspace(0, 1, MOST_POINTS // 2)) for each in (recall, false_alarms)]
    points = np.unique(np.minimum(np.concatenate([[0], *some, [len(recall) - 1]]), len(recall) - 1))
    return LabelCurve(label, total, precision[points], recall[points], false_alarms[points], average_precision, area)


def _units(found: Judgement, labelling: Labelling) -> tuple[np.ndarray, int]:
    """Return offsets of the units to resample, and the number of resamples; 0 for a single unit."""
    codes = CodedColumn.of(labelling.gold).codes
    units = unit_offsets(codes, np.asarray(labelling.offsets, dtype=np.int64), found.options.block)
    return units, found.options.resamples if len(units) > 2 else 0


def _ratio_intervals(above: np.ndarray, below: np.ndarray, found: Judgement) -> list[Interval]:
    """Return intervals of K ratios of sums over units, from [units, K] each."""
    K = above.shape[1]
    observed = above.sum(axis=0) / np.maximum(below.sum(axis=0), 1)

    def ratios(totals: np.ndarray) -> dict[str, np.ndarray]:
        # A resample without anything to divide by gets the observed ratio.
        parts = ((totals[..., k], totals[..., K + k], observed[k]) for k in range(K))
        return {str(k): np.where(of > 0, part / np.maximum(of, 1), usual) for k, (part, of, usual) in enumerate(parts)}

    options = found.options
    drawn = bootstrap(np.hstack([above, below]), ratios, options.resamples, options.confidence, options.seed)
    return [drawn[str(k)] for k in range(K)]
