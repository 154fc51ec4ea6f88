"""Scores of lists of labels: the same as scikit-learn's on all labels laid end to end."""

from __future__ import annotations

from itertools import chain

import pytest

from kcrf_core.scoring import metrics

LABELS = ["B-X", "B-Y", "I-X", "O"]


@pytest.fixture
def pair(rng):
    lengths = rng.integers(1, 9, 40)
    return [[list(rng.choice(LABELS, length)) for length in lengths] for _ in range(2)]


@pytest.mark.parametrize("figure", ["precision", "recall", "f1"])
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
@pytest.mark.parametrize("labels", [None, ["B-X", "I-X"]])
def test_as_scikit_learn(pair, figure, average, labels):
    peer = pytest.importorskip("sklearn.metrics")
    gold, found = (list(map(str, chain.from_iterable(y))) for y in pair)
    expected = getattr(peer, f"{figure}_score")(gold, found, average=average, labels=labels, zero_division=0)
    ours = getattr(metrics, f"flat_{figure}_score")(*pair, average=average, labels=labels)
    assert ours == pytest.approx(expected, rel=1e-12)


def test_accuracies():
    gold, found = [["a", "b"], ["a"], ["b", "b"]], [["a", "b"], ["a"], ["b", "a"]]
    assert metrics.flat_accuracy_score(gold, found) == 4 / 5
    assert metrics.sequence_accuracy_score(gold, found) == 2 / 3 and metrics.sequence_accuracy_score([], []) == 0


def test_spans_need_a_scheme():
    assert metrics.span_f1_score([["B-X", "I-X", "O"]], [["B-X", "I-X", "B-X"]]) == 2 / 3
    with pytest.raises(ValueError, match="no scheme"):
        metrics.span_f1_score([["a"]], [["a"]])


def test_numbers_are_labels_too():
    assert metrics.flat_f1_score([[0, 1, 1]], [[0, 1, 0]], labels=[1]) == 2 / 3


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="length"):
        metrics.flat_accuracy_score([["a", "b"]], [["a"]])
    with pytest.raises(ValueError, match="average='mean'"):
        metrics.flat_f1_score([["a"]], [["a"]], average="mean")


@pytest.mark.parametrize("labels", [None, ["B-X", "I-X"], ["none"], [*LABELS, "only gold", "only predicted"]])
def test_reports_and_what_0_by_0_is(pair, labels):
    """The report is that of scikit-learn to the letter."""
    peer = pytest.importorskip("sklearn.metrics")
    pair[0][0][0], pair[1][1][0] = "only gold", "only predicted"
    flat = [list(map(str, chain.from_iterable(y))) for y in pair]
    text = metrics.flat_classification_report(*pair, labels=labels, digits=3)
    assert text == peer.classification_report(*flat, labels=labels, digits=3, zero_division=0)


def test_reports_of_numbers():
    report = metrics.flat_classification_report([[2, 10, 10], [1]], [[2, 10, 2], [1]])
    assert [line.split()[0] for line in report.split("\n") if line][:5] == ["precision", "1", "2", "10", "accuracy"]
