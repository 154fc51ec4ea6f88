"""Thresholds for review and sets of labels: what they guarantee, on losses of a known distribution, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.corpora import CodedColumn
from kcrf_core.errors import DataError
from kcrf_core.scoring import Guarantee, Items, Labelling, confidences, find_guarantee
from kcrf_core.scoring.guarantees import controlled_threshold, proven_threshold


def drawn(rng, n):
    """Sequences of 3 to 20 positions, some harder than others; models are a little too confident."""
    lengths = rng.integers(3, 21, n)
    sequence = np.repeat(np.arange(n), lengths)
    hard = rng.uniform(0.2, 1.0, n)[sequence]
    confidence = np.round(1 - 0.7 * hard * rng.random(len(sequence)) ** 6, 9)
    wrong = rng.random(len(sequence)) < np.minimum(1.4 * (1 - confidence) + 0.001, 1)
    return Items(confidence, wrong, sequence)


@pytest.fixture(scope="module")
def curve():
    """Risk, share not marked, and share of all items marked at many thresholds, for the whole distribution."""
    items = drawn(np.random.default_rng(99), 40_000)
    order = np.argsort(items.confidence, kind="stable")
    share = items.share[order] / items.sequences
    left = share[::-1].cumsum()[::-1] - share  # with a larger confidence than this
    risk = (share * items.wrong[order])[::-1].cumsum()[::-1] - share * items.wrong[order]
    at = np.linspace(0, len(order) - 1, 20_000).astype(int)
    return items.confidence[order][at], risk[at], left[at]


def at_threshold(curve, threshold, column):
    return float(np.interp(threshold, curve[0], curve[column]))


@pytest.mark.parametrize("n, level", [(200, 0.02), (400, 0.05)])
def test_expected_risk_of_simulated_guarantees(curve, n, level):
    """One thousand of them: the mean risk is at most the level, and little more is marked than has to be."""
    rng = np.random.default_rng(n)
    found = [controlled_threshold(drawn(rng, n), level) for _ in range(1000)]
    risks = np.array([at_threshold(curve, threshold, 1) for threshold in found])
    assert risks.mean() <= level + 2 * risks.std() / np.sqrt(len(risks))
    assert risks.mean() > level - 2 / (n + 1)
    assert (risks > level).mean() > 0.05  # it holds in expectation, and not each time
    marked = 1 - np.mean([at_threshold(curve, threshold, 2) for threshold in found])
    best = 1 - curve[2][np.argmax(curve[1] <= level)]
    assert best < marked <= 1.5 * best


@pytest.mark.parametrize("repetitions", [20, pytest.param(400, marks=pytest.mark.slow)])
def test_share_among_unmarked_of_simulated_guarantees(curve, repetitions):
    n, level, rng = 1000, 0.02, np.random.default_rng(5)
    found = [proven_threshold(drawn(rng, n), level) for _ in range(repetitions)]
    assert None not in found
    among = np.array([at_threshold(curve, t, 1) / at_threshold(curve, t, 2) for t in found])
    assert np.mean(among > level) <= 0.1
    marked = 1 - np.mean([at_threshold(curve, threshold, 2) for threshold in found])
    best = 1 - curve[2][np.argmax(curve[1] <= level * curve[2])]
    assert best < marked <= 1.5 * best


def test_the_threshold_is_the_smallest_one():
    """By enumeration, with ties and sequences of different lengths."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        n = int(rng.integers(4, 30))
        sequence = np.concatenate([np.arange(n), rng.integers(0, n, 3 * n)])
        confidence = np.round(rng.random(4 * n), 1)
        items = Items(confidence, rng.random(4 * n) < 0.3, rng.permutation(sequence))
        level = float(rng.uniform(1 / (n + 1), 0.4))
        bound = {t: (n * items.risk(t) + 1) / (n + 1) for t in [0.0, *confidence.tolist()]}
        assert controlled_threshold(items, level) == min(t for t, value in bound.items() if value <= level)
    assert controlled_threshold(Items(np.array([0.9]), np.array([False]), np.array([0])), 0.6) == 0.0


def test_a_proven_threshold_does_not_go_past_a_candidate_that_fails():
    """Bolder candidates are not tried, although some of them may pass."""
    n, rng = 3000, np.random.default_rng(0)
    sequence = np.repeat(np.arange(n), 4)
    confidence = np.tile([0.5, 0.7, 0.8, 0.9], n) + 0.01 * rng.random(4 * n)
    wrong = np.tile([1, 0, 1, 0], n) * (rng.random(4 * n) < 0.2)
    found = proven_threshold(Items(confidence, wrong > 0, sequence), 0.05)
    assert 0.8 < found < 0.91  # 0.7 is right, and lies behind
    assert proven_threshold(Items(confidence, wrong == 0, sequence), 0.05) is None
    assert proven_threshold(Items(confidence, np.zeros(4 * n, bool), sequence), 0.05) == 0.0


@pytest.mark.parametrize(
    "kind, level, needed", [("risk", 0.02, 49), ("sets", 0.05, 19), ("risk", 0.5, 1), ("among-unmarked", 0.05, 63)]
)
def test_too_few_sequences_are_refused_with_the_number_needed(kind, level, needed):
    def items(n):
        return Items(np.full(n, -0.5 if kind == "sets" else 0.9), np.zeros(n, bool), np.arange(n))

    with pytest.raises(DataError, match=f"{needed - 1} sequences?, and a level of {level:g} needs at least {needed}"):
        find_guarantee(items(needed - 1), kind, "position", level)
    assert find_guarantee(items(needed), kind, "position", level).sequences == needed


def test_sets_hold_the_predicted_label_and_all_that_are_probable_enough():
    marginals = np.array([[0.7, 0.2, 0.1], [0.04, 0.06, 0.9], [0.5, 0.3, 0.2]])
    rule = Guarantee("sets", "position", 0.05, 0.1, 100)
    assert rule.label_sets(np.array([0, 1, 0]), marginals).tolist() == [
        [True, True, True],
        [False, True, True],
        [True, True, True],
    ]
    assert confidences(marginals, np.array([0, 1, 0])).tolist() == [0.7, 0.06, 0.5]


def test_a_label_that_is_unknown_is_never_covered():
    confidence = np.where(np.arange(100) < 10, np.inf, -0.3)
    items = Items(confidence, np.ones(100, bool), np.arange(100))
    with pytest.raises(DataError, match="10 % of the labels are unknown to the model: no sets of labels can have 95 %"):
        find_guarantee(items, "sets", "position", 0.05)
    assert find_guarantee(items, "sets", "position", 0.2).threshold == 0.3


def test_spans_are_as_sure_as_their_least_sure_position():
    names, gold = ("B-X", "I-X", "O"), ["B-X", "I-X", "O", "B-X", "O", "O", "B-X"]
    labels, offsets = np.array([0, 1, 2, 0, 1, 2, 2]), np.array([0, 5, 6, 7])
    confidence = np.array([0.9, 0.8, 0.1, 0.7, 0.6, 0.2, 0.0])
    labelling = Labelling("", gold, CodedColumn(list(names), labels), offsets, np.arange(7))
    items = Items.spans(labelling, confidence)
    assert items.confidence.tolist() == [0.8, 0.6] and items.wrong.tolist() == [False, True]
    assert items.sequences == 1 and items.share.tolist() == [0.5, 0.5]
    marginals = np.full((7, 3), 0.5)
    marginals[np.arange(7), labels] = confidence
    marked = Guarantee("risk", "span", 0.02, 0.6, 50).marked(names, labels, offsets, marginals)
    assert np.flatnonzero(marked).tolist() == [3, 4]
    marked = Guarantee("risk", "position", 0.02, 0.6, 50).marked(names, labels, offsets, marginals)
    assert np.flatnonzero(marked).tolist() == [2, 4, 5, 6]
