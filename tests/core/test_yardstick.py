"""The yardstick: against the scores of `evaluate`, leaving out units one by one, and drawing them anew."""

import numpy as np
import pytest

from kcrf_core.errors import ConfigError
from kcrf_core.scoring import METRICS, choose_yardstick, evaluate, yardstick as module

SPANS = ("B-a", "B-b", "I-a", "I-b", "O")
PLAIN = ("noun", "verb", "x")


def drawn(rng, labels, units=60, accuracy=0.7):
    """Gold and predicted labels, log-probabilities and offsets, one of the units empty."""
    lengths = rng.integers(1, 12, size=units)
    lengths[units // 2] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gold = rng.integers(len(labels), size=offsets[-1])
    predicted = np.where(rng.random(len(gold)) < accuracy, gold, rng.integers(len(labels), size=len(gold)))
    return gold, predicted, np.log(rng.random(len(gold))), offsets


def expected(metric, labels, gold, predicted, logs, offsets):
    """The figure by `evaluate`, larger being better."""
    if metric == "log-loss":
        return float(logs.mean())
    names = np.array([*labels, "B-<unknown>"])
    scores = evaluate(names[gold].tolist(), names[predicted].tolist(), offsets, known_labels=labels)
    if metric == "accuracy":
        return scores.accuracy
    if metric == "f1":
        return scores.spans.total.f1
    return scores.macro_f1 if scores.spans is None else scores.spans.macro_f1


@pytest.mark.parametrize(
    ("metric", "labels"), [*((name, SPANS) for name in METRICS), *((name, PLAIN) for name in METRICS if name != "f1")]
)
def test_value_is_that_of_the_evaluation(rng, metric, labels):
    data = drawn(rng, labels)
    yardstick = choose_yardstick(labels, metric)
    counts = yardstick.counts(*data)
    assert len(counts) == 60
    assert yardstick.value(counts) == pytest.approx(expected(metric, labels, *data), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_standard_errors_are_those_of_the_jackknife(rng, metric):
    gold, predicted, logs, offsets = drawn(rng, SPANS, units=400)
    yardstick = choose_yardstick(SPANS, metric)
    first = yardstick.counts(gold, predicted, logs, offsets)
    better = np.where(rng.random(len(gold)) < 0.3, gold, predicted)
    second = yardstick.counts(gold, better, logs / 2, offsets)

    def jackknife(figure):
        left_out = np.array([figure(np.delete(np.arange(400), u)) for u in range(400)])
        return np.sqrt(399 / 400 * ((left_out - left_out.mean()) ** 2).sum())

    assert yardstick.standard_error(first) == pytest.approx(jackknife(lambda u: yardstick.value(first[u])), rel=0.02)
    difference, error = yardstick.difference(second, first)
    assert difference == pytest.approx(yardstick.value(second) - yardstick.value(first), rel=1e-12)
    assert difference > 0
    alone = jackknife(lambda u: yardstick.value(second[u]) - yardstick.value(first[u]))
    assert error == pytest.approx(alone, rel=0.02)
    assert error < np.hypot(yardstick.standard_error(first), yardstick.standard_error(second))


def test_standard_error_is_that_of_drawing_anew(rng):
    yardstick = choose_yardstick(SPANS)
    values, errors = [], []
    for _ in range(400):
        counts = yardstick.counts(*drawn(rng, SPANS, units=80))
        values.append(yardstick.value(counts))
        errors.append(yardstick.standard_error(counts))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_pooling_is_concatenation(rng):
    yardstick = choose_yardstick(SPANS, "macro-f1")
    gold, predicted, logs, offsets = drawn(rng, SPANS)
    whole = yardstick.counts(gold, predicted, logs, offsets)
    cut = int(offsets[20])
    parts = [
        yardstick.counts(gold[:cut], predicted[:cut], logs[:cut], offsets[:21]),
        yardstick.counts(gold[cut:], predicted[cut:], logs[cut:], offsets[20:] - cut),
    ]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_repetitions(rng, metric):
    gold, predicted, logs, offsets = drawn(rng, SPANS, units=8)
    times = np.array([1, 2, 0, 3, 1, 1, 0, 2])
    yardstick = choose_yardstick(SPANS, metric)
    weighted = yardstick.counts(gold, predicted, logs, offsets, times)
    repeated = yardstick.counts(gold, predicted, logs, offsets)[np.repeat(np.arange(8), times)]
    assert yardstick.value(weighted) == pytest.approx(yardstick.value(repeated), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_unobserved_labels_have_no_say(rng, metric):
    yardstick = choose_yardstick(SPANS, metric)
    gold, predicted, logs, offsets = drawn(rng, SPANS)
    hidden = rng.random(len(gold)) < 0.2
    partly = np.where(hidden, -1, gold)
    found = yardstick.counts(partly, predicted, np.where(hidden, np.nan, logs), offsets)
    other = np.where(hidden, rng.integers(len(SPANS), size=len(gold)), predicted)
    assert np.array_equal(yardstick.counts(partly, other, np.where(hidden, -np.inf, logs), offsets), found)
    # A position with O on both sides ends spans as one without a label does; it is no label to be right about.
    if metric == "f1":
        outside = SPANS.index("O")
        filled = [np.where(hidden, outside, labels) for labels in (gold, predicted)]
        assert np.array_equal(yardstick.counts(*filled, logs, offsets), found)
    if metric == "accuracy":
        assert found[:, 1].sum() == (~hidden).sum()


@pytest.mark.parametrize("metric", METRICS)
def test_a_label_that_is_not_known_counts_as_wrong(rng, metric):
    yardstick = choose_yardstick(SPANS, metric)
    gold, predicted, logs, offsets = drawn(rng, SPANS)
    unknown = rng.random(len(gold)) < 0.2
    gold = np.where(unknown, len(SPANS), gold)
    found = yardstick.value(yardstick.counts(gold, predicted, logs, offsets))
    known_logs = logs[~unknown] if metric == "log-loss" else logs
    assert found == pytest.approx(expected(metric, SPANS, gold, predicted, known_logs, offsets), rel=1e-12)


def test_hopeless_positions_do_not_decide_alone():
    yardstick = choose_yardstick(PLAIN, "log-loss")
    counts = yardstick.counts(np.array([0, 1]), None, np.array([-np.inf, -0.5]), np.array([0, 1, 2]))
    assert yardstick.value(counts) == pytest.approx((np.log(1e-30) - 0.5) / 2, rel=1e-12)


def test_nothing_is_worse_than_something():
    for metric in METRICS:
        yardstick = choose_yardstick(SPANS, metric)
        counts = yardstick.counts(np.array([-1, -1]), np.array([0, 1]), np.zeros(2), np.array([0, 1, 2]))
        assert (yardstick.value(counts), yardstick.standard_error(counts)) == (0.0, 0.0)
        one = yardstick.counts(np.array([0]), np.array([0]), np.zeros(1), np.array([0, 1]))
        assert yardstick.standard_error(one) == np.inf  # a single unit says nothing of its like
        assert yardstick.difference(one, one)[1] == np.inf


def test_many_labels_in_many_units_take_bounded_memory(rng, monkeypatch):
    yardstick = choose_yardstick(PLAIN, "macro-f1")
    data = drawn(rng, PLAIN, units=301)
    weights = rng.random(301)
    whole = yardstick.counts(*data, weights)
    monkeypatch.setattr(module, "MOST_CELLS", 1000)
    bundled = yardstick.counts(*data, weights)
    assert whole.size > 1000 >= bundled.size
    assert yardstick.value(bundled) == pytest.approx(yardstick.value(whole), rel=1e-12)
    assert yardstick.standard_error(bundled) == pytest.approx(yardstick.standard_error(whole), rel=0.25)


def test_choice_of_the_yardstick():
    assert choose_yardstick(SPANS).name == "f1"
    assert choose_yardstick(PLAIN).name == "accuracy"
    assert choose_yardstick(SPANS, "accuracy").name == "accuracy"
    assert choose_yardstick(SPANS, "log-loss").of_labels == choose_yardstick(SPANS)
    with pytest.raises(ConfigError, match="macro-f1"):
        choose_yardstick(PLAIN, "f1")
    with pytest.raises(ConfigError, match="f1, macro-f1, accuracy, log-loss"):
        choose_yardstick(PLAIN, "f2")


def test_figures_as_text():
    assert choose_yardstick(SPANS).text(0.4567) == "span F1 45.67"
    assert choose_yardstick(PLAIN).text(0.5) == "accuracy 50.00 %"
    assert choose_yardstick(PLAIN, "macro-f1").text(0.5) == "macro F1 of labels 50.00"
    loss = choose_yardstick(PLAIN, "log-loss")
    assert (loss.text(-0.25), loss.figure(-0.25), loss.figure(0.0)) == ("log-loss 0.2500", 0.25, 0.0)
