"""Curves of labels against counts by hand, and intervals of bins and labels against resamples taken one by one."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.scoring import (
    JudgementOptions,
    Labelling,
    LabelProbabilities,
    bin_intervals,
    f1_intervals,
    from_marginals,
    judge,
    label_curves,
)

LABELS = ("a", "b")


def drawn(sequences=40, seed=0):
    """Labels of short sequences with probabilities that are right about as often as they say."""
    generator = np.random.default_rng(seed)
    N = 5 * sequences
    p = generator.uniform(0.05, 0.95, N)
    marginals = np.stack([p, 1 - p], axis=1)
    gold = [LABELS[int(u > q)] for u, q in zip(generator.uniform(size=N), p, strict=True)]
    predicted = [LABELS[int(q < 0.5)] for q in p]
    return Labelling(
        source="drawn",
        gold=gold,
        predicted=predicted,
        offsets=np.arange(0, N + 1, 5),
        lines=np.arange(N),
        probabilities=from_marginals(marginals, LABELS, gold, predicted),
        marginals=LabelProbabilities(LABELS, marginals.astype(np.float32)),
    )


def test_curve_of_a_label_by_hand():
    marginals = LabelProbabilities(LABELS, np.array([[0.9, 0.1], [0.8, 0.2], [0.8, 0.2], [0.1, 0.9]], dtype=np.float32))
    (curve, _) = label_curves(marginals, ["a", "b", "a", "b"], most=2)
    assert (curve.label, curve.gold) == ("a", 2)
    assert curve.recall.tolist() == [0.5, 1, 1]  # the two of equal probability come together
    assert curve.precision.tolist() == pytest.approx([1, 2 / 3, 0.5], rel=1e-12)
    assert curve.false_alarms.tolist() == [0, 0.5, 1]
    assert curve.average_precision == pytest.approx(0.5 + 0.5 * 2 / 3, rel=1e-12)


def test_curves_of_types_add_the_probabilities_of_their_labels():
    labels = ("B-X", "I-X", "B-Y", "O")
    values = np.array([[0.5, 0.1, 0.3, 0.1], [0.25, 0.5, 0, 0.25], [0.1, 0.1, 0.6, 0.2], [0.375, 0.375, 0.25, 0]])
    gold = ["B-X", "I-X", "B-Y", "O"]
    x, y = label_curves(LabelProbabilities(labels, values.astype(np.float32)), gold, most=8, spans=True)
    assert (x.label, x.gold, y.label, y.gold) == ("X", 2, "Y", 1)
    assert x.recall.tolist() == [0.5, 1, 1]  # two of equal probability come together
    assert x.precision.tolist() == pytest.approx([0.5, 2 / 3, 0.5], rel=1e-6)
    assert y.average_precision == 1


def test_area_is_the_probability_of_the_right_order():
    labelling = drawn()
    curve = next(one for one in label_curves(labelling.marginals, labelling.gold, 2) if one.label == "a")
    values = labelling.marginals.values[:, 0]
    has = np.array(labelling.gold) == "a"
    pairs = values[has][:, None] - values[~has]
    assert curve.area == pytest.approx(np.mean(pairs > 0) + 0.5 * np.mean(pairs == 0), rel=1e-9)


def test_labels_that_no_position_or_every_position_has_make_no_curve():
    marginals = LabelProbabilities(("a", "b", "c"), np.full((3, 3), 1 / 3, dtype=np.float32))
    assert label_curves(marginals, ["a", "a", "a"], 8) == []


def test_intervals_hold_what_is_observed_and_narrow_with_data():
    widths = []
    for sequences in (40, 640):
        labelling = drawn(sequences)
        found = judge(labelling, None, JudgementOptions(resamples=300, bins=5))
        bins, labels = bin_intervals(found, labelling), f1_intervals(found, labelling)
        assert len(bins) == len(found.calibration.bins) and labels.keys() == {"a", "b"}
        for one, interval in zip(found.calibration.bins, bins, strict=True):
            assert interval.low <= one.accuracy <= interval.high
        for score in found.scores.labels:
            assert labels[score.name].low < score.f1 < labels[score.name].high
        widths.append(labels["a"].high - labels["a"].low)
    assert widths[1] < 0.5 * widths[0]


def test_intervals_of_span_types():
    gold = ["B-X", "O", "B-Y", "I-Y"] * 30
    predicted = ["B-X", "O", "B-Y", "O"] * 15 + ["B-X", "O", "B-Y", "I-Y"] * 15
    labelling = Labelling("drawn", gold, predicted, np.arange(0, 121, 4), np.arange(120))
    found = judge(labelling, None, JudgementOptions(resamples=300))
    intervals = f1_intervals(found, labelling)
    assert (intervals["X"].low, intervals["X"].high) == (1, 1)
    assert 0.2 < intervals["Y"].low < 0.5 < intervals["Y"].high < 0.8
    assert f1_intervals(judge(labelling, None, JudgementOptions()), labelling) == {}
    assert bin_intervals(found, labelling) == []  # no probabilities
