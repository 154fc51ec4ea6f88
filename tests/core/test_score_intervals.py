"""Intervals of bins and labels: they contain the figures, narrow with data, and know spans."""

from __future__ import annotations

import numpy as np

from kcrf_core.scoring import JudgementOptions, Labelling, bin_intervals, f1_intervals, judge
from kcrf_core.scoring.calibration import from_marginals

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
    )


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
