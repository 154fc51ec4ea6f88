"""Scores of lists of labels: the same as scikit-learn's on all labels laid end to end."""

from __future__ import annotations

import warnings
from itertools import chain, product

import numpy as np
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


BETAS = (0, 0.5, 2.0, np.inf)


@pytest.mark.parametrize("nothing", [0, 1, np.nan, "warn"])
@pytest.mark.parametrize("labels", [None, ["B-X", "I-X"], ["none"], [*LABELS, "only gold", "only predicted"]])
def test_reports_and_what_0_by_0_is(pair, labels, nothing):
    """The report is that of scikit-learn to the letter, as text and as a dictionary, and F-beta is its F-beta."""
    peer = pytest.importorskip("sklearn.metrics")
    pair[0][0][0], pair[1][1][0] = "only gold", "only predicted"
    flat = [list(map(str, chain.from_iterable(y))) for y in pair]
    options = {"labels": labels, "zero_division": nothing}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        text = metrics.flat_classification_report(*pair, digits=3, **options)
        assert any("0 / 0" in str(one.message) for one in heard) == (nothing == "warn" and labels != ["B-X", "I-X"])
        assert text == peer.classification_report(*flat, digits=3, **options)
        ours = metrics.flat_classification_report(*pair, output_dict=True, **options)
        theirs = peer.classification_report(*flat, output_dict=True, **options)
        assert list(ours) == list(theirs)
        for name, row in theirs.items():
            assert ours[name] == pytest.approx(row, rel=1e-12, nan_ok=True)
        for beta, average in product(BETAS, [*metrics.AVERAGES, None]):
            found = metrics.flat_fbeta_score(*pair, beta, average, **options)
            expected = peer.fbeta_score(*flat, beta=beta, average=average, **options)
            assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_reports_of_numbers_and_of_one_label():
    gold, found = [[2, 10, 10], [1]], [[2, 10, 2], [1]]
    assert list(metrics.flat_classification_report(gold, found, output_dict=True))[:4] == ["1", "2", "10", "accuracy"]
    report = metrics.flat_classification_report(gold, found, target_names=["one", "two", "ten"])
    assert report.split()[:4] == ["precision", "recall", "f1-score", "support"] and " ten  " in report
    assert metrics.flat_recall_score(gold, found, average="binary", pos_label=10) == 0.5
    with pytest.raises(ValueError, match="2 target_names, but 3 labels"):
        metrics.flat_classification_report(gold, found, target_names=["one", "two"])
    with pytest.raises(ValueError, match="zero_division='none'"):
        metrics.flat_f1_score(gold, found, zero_division="none")
    with pytest.raises(ValueError, match="beta=-1"):
        metrics.flat_fbeta_score(gold, found, -1)
