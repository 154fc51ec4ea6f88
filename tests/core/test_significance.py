"""Intervals and p-values: against enumeration, drawing sequence by sequence, and by how often they are right."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest

from kcrf_core.errors import DataError
from kcrf_core.scoring import JudgementOptions, Labelling, choose_yardstick, evaluate, judge
from kcrf_core.scoring.significance import (
    bootstrap,
    correlation_length,
    differences,
    expanded_tail,
    figures,
    unit_offsets,
)


def labelling(sequences, predicted, source="data", gap=1):
    """Of sequences of labels; `gap` lines between sequences."""
    lengths = [len(labels) for labels in sequences]
    lines = np.concatenate(
        [
            np.arange(n) + 1 + before
            for n, before in zip(lengths, itertools.accumulate([0, *[n + gap for n in lengths[:-1]]]), strict=True)
        ]
    )
    return Labelling(
        source, list(itertools.chain(*sequences)), list(itertools.chain(*predicted)), np.cumsum([0, *lengths]), lines
    )


def random_system(rng, gold, accuracy):
    alphabet = sorted(set(itertools.chain(*gold)))
    return [[g if rng.random() < accuracy else str(rng.choice(alphabet)) for g in labels] for labels in gold]


def random_gold(rng, sequences):
    alphabet = ["O", "O", "B-x", "I-x", "B-y"]
    return [rng.choice(alphabet, size=rng.integers(1, 9)).tolist() for _ in range(sequences)]


def scored(gold, predicted):
    data = labelling(gold, predicted)
    return evaluate(data.gold, data.predicted, data.offsets, "iob2")


def test_figures_are_those_of_the_evaluation(rng):
    gold = random_gold(rng, 30)
    found = scored(gold, random_system(rng, gold, 0.7))
    for strict, spans in ((False, found.spans), (True, found.strict_spans)):
        values = figures((found.strict_counts if strict else found.unit_counts).sum(axis=0))
        assert values == {
            "accuracy": found.accuracy,
            "sequence_accuracy": found.sequence_accuracy,
            "precision": spans.total.precision,
            "recall": spans.total.recall,
            "f1": spans.total.f1,
        }
    plain = evaluate(list("abab"), list("abba"), [0, 2, 4])
    assert figures(plain.unit_counts.sum(axis=0)) == {"accuracy": 0.5, "sequence_accuracy": 0.5}
    assert figures(np.zeros(7))["f1"] == 0


def test_bootstrap_against_drawing_sequence_by_sequence(rng):
    gold = random_gold(rng, 40)
    counts = scored(gold, random_system(rng, gold, 0.7)).unit_counts
    found = bootstrap(counts, figures, 20_000, 0.9, seed=1)
    drawn = figures(counts[rng.integers(len(counts), size=(20_000, len(counts)))].sum(axis=1))
    for name, interval in found.items():
        low, high = np.quantile(drawn[name], [0.05, 0.95])
        assert interval.low == pytest.approx(low, abs=0.01) and interval.high == pytest.approx(high, abs=0.01)
        assert interval.low < figures(counts.sum(axis=0))[name] < interval.high


def test_quantiles_of_few_units_are_as_far_out_as_those_of_student():
    """Hesterberg's table of expanded percentiles, and the usual ones of many units."""
    assert expanded_tail(0.95, 20) == pytest.approx(0.0159, abs=1e-4)
    assert expanded_tail(0.95, 10) == pytest.approx(0.0086, abs=1e-4)
    assert expanded_tail(0.9, 1_000_000) == pytest.approx(0.05, rel=1e-4)
    assert 0 < expanded_tail(0.95, 2) < 1e-30 and expanded_tail(0.95, 1) == pytest.approx(0.025, rel=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_the_correlation_length_of_a_process_is_known(rng, share):
    """Of x_t = a x_(t-1) + noise it is (1 + a) / (1 - a), in one sequence and in several."""
    series = rng.normal(size=40_000)
    for t in range(1, len(series)):
        series[t] += share * series[t - 1]
    for offsets in ([0, 40_000], [0, 15_000, 16_000, 40_000]):
        found = correlation_length(series, np.array(offsets))
        assert found == pytest.approx((1 + share) / (1 - share), rel=0.15)
    assert correlation_length(np.ones(50), np.array([0, 50])) == 1.0


def test_blocks_are_longer_where_errors_are_correlated(rng):
    offsets, labels = np.array([0, 2000, 4000]), rng.integers(0, 2, 4000)
    single, together = rng.random(4000) < 0.2, np.repeat(rng.random(200) < 0.2, 20)
    short, length = unit_offsets(labels, offsets, None, [single])
    assert len(short) - 1 == 40 and length < 2
    long, length = unit_offsets(labels, offsets, None, [single, together])
    assert 10 <= len(long) - 1 < 36 and 12 < length < 30
    assert np.diff(long).min() > 5 * length
    given, length = unit_offsets(labels, offsets, 50, [together])
    assert len(given) - 1 == 80 and length > 15
    many, length = unit_offsets(labels, np.arange(0, 4001, 100), None, [together])
    assert len(many) - 1 == 40 and length == 0.0  # sequences


@pytest.mark.parametrize(
    ("sequences", "block", "said"),
    [
        (29, None, "29 sequences, and fewer than 30 are few"),
        (30, None, None),
        (
            1,
            20,
            r"errors are correlated over about \d\d positions, and blocks of 20 are short for that",
        ),
        (1, 300, "10 blocks, and fewer than 30 are few"),
        (1, None, r"warning: \d\d blocks, and fewer than 30 are few"),
    ],
)
def test_units_that_are_few_or_short_are_doubted(sequences, block, said):
    rng = np.random.default_rng(5)
    gold = rng.choice(["a", "b"], 2900 if sequences == 1 else sequences * 8).tolist()
    wrong = np.repeat(rng.random(len(gold) // 20 + 1) < 0.2, 20)[: len(gold)]
    predicted = ["ab".replace(label, "") if error else label for label, error in zip(gold, wrong, strict=True)]
    offsets = np.linspace(0, len(gold), sequences + 1).astype(np.int64)
    found = Labelling("data", gold, predicted, offsets, np.arange(len(gold)))
    doubt = judge(found, None, JudgementOptions(block=block)).units.doubt
    assert doubt is None if said is None else re.search(said, doubt)


def test_intervals_cover_the_truth_about_as_often_as_they_say(rng):
    truth, covered = 0.8, 0
    for trial in range(200):
        lengths = rng.integers(1, 30, size=100)
        correct = rng.binomial(lengths, truth)
        counts = np.column_stack([lengths, correct, np.ones_like(lengths), correct == lengths])
        found = bootstrap(counts, figures, 500, 0.9, seed=trial)["accuracy"]
        covered += found.low <= truth <= found.high
    assert 165 <= covered <= 195


def test_randomisation_against_all_exchanges(rng):
    gold = random_gold(rng, 9)
    systems = [scored(gold, random_system(rng, gold, accuracy)).unit_counts for accuracy in (0.85, 0.6)]
    found = differences(*systems, draws=40_000, resamples=0, confidence=0.95, seed=0)
    masks = np.array(list(itertools.product([0, 1], repeat=9)))  # every way to exchange sequences
    moved = masks @ (systems[1] - systems[0])
    ours, theirs = (figures(systems[0].sum(axis=0) + moved), figures(systems[1].sum(axis=0) - moved))
    assert {entry.figure for entry in found} == {"accuracy", "sequence_accuracy", "precision", "recall", "f1"}
    for entry in found:
        gaps = np.abs(ours[entry.figure] - theirs[entry.figure])
        exact = np.mean(gaps >= abs(entry.difference) - 1e-12)
        assert entry.p_value == pytest.approx(exact, abs=0.01)
        assert entry.interval is None


def test_systems_that_are_alike_and_systems_that_are_not(rng):
    gold = random_gold(rng, 200)
    good, bad = random_system(rng, gold, 0.9), random_system(rng, gold, 0.6)
    options = JudgementOptions(draws=999, resamples=300)
    same = judge(labelling(gold, good), labelling(gold, good), options).comparison
    assert all(entry.p_value == 1 and entry.difference == 0 for entry in same.differences)
    assert same.only_first == same.only_second == 0
    found = judge(labelling(gold, good), labelling(gold, bad), options).comparison
    for entry in found.differences:
        assert entry.p_value == 1 / 1000 and entry.interval.low > 0
    assert found.both_right + found.only_first + found.only_second + found.both_wrong == sum(map(len, gold))
    turned = judge(labelling(gold, bad), labelling(gold, good), options).comparison
    assert [-entry.difference for entry in turned.differences] == [entry.difference for entry in found.differences]
    assert (turned.only_first, turned.only_second) == (found.only_second, found.only_first)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_the_difference_is_that_of_the_figures_shown(rng, metric, strict):
    """Of a system, too, whose labels the other one and the data do not have; its longer spans are one each."""
    gold = random_gold(rng, 30)
    good = random_system(rng, gold, 0.9)
    strange = [["B-z", "I-z", *labels[2:]] if len(labels) > 3 else labels for labels in good]
    found = judge(labelling(gold, good), labelling(gold, strange), JudgementOptions(metric=metric, strict=strict))
    other = found.comparison
    if metric == "accuracy":
        values = found.scores.accuracy, other.scores.accuracy
    else:
        spans = [each.strict_spans if strict else each.spans for each in (found.scores, other.scores)]
        values = [each.total.f1 for each in spans]
    assert [found.headline.value, other.headline.value] == pytest.approx(values)
    assert other.difference == pytest.approx(values[0] - values[1])


@pytest.mark.slow
def test_under_no_difference_small_p_values_are_as_rare_as_they_should_be(rng):
    small = 0
    for trial in range(200):
        gold = random_gold(rng, 30)
        systems = [scored(gold, random_system(rng, gold, 0.7)).unit_counts for _ in range(2)]
        found = {entry.figure: entry for entry in differences(*systems, 199, 0, 0.95, seed=trial)}
        small += found["accuracy"].p_value <= 0.1
    assert small <= 34  # 20 expected; a binomial is above with probability 0.001


def test_the_seed_decides(rng):
    gold = random_gold(rng, 60)
    first, second = (labelling(gold, random_system(rng, gold, accuracy)) for accuracy in (0.8, 0.75))

    def found(seed):
        return judge(first, second, JudgementOptions(resamples=100, draws=200, seed=seed)).to_dict()

    assert found(3) == found(3)
    assert found(3)["intervals"] != found(4)["intervals"]
    alone = judge(first, None, JudgementOptions(resamples=100, seed=3)).to_dict()
    assert alone["intervals"] == found(3)["intervals"] and alone["comparison"] is None


def test_one_sequence_has_no_intervals():
    data = labelling([list("abab")], [list("abba")])
    found = judge(data, data, JudgementOptions(resamples=100))
    assert found.intervals == {} and found.to_dict()["intervals"] is None
    assert all(entry.interval is None for entry in found.comparison.differences)


@pytest.mark.parametrize(
    ("other", "line", "words"),
    [
        ([["a", "b"], ["b", "b"]], 4, "gold label 'b', but 'a' in line 5"),
        ([["a"], ["b", "a", "b"]], 1, "a sequence ends here, unlike at line 1"),
        ([["a", "b", "a"], ["b"]], 2, "a sequence goes on here, unlike at line 2"),
        ([["a", "b"]], None, "2 positions, expected 4"),
        ([["a", "b"], ["a", "b"], ["a"]], None, "5 positions, expected 4"),
    ],
)
def test_data_that_are_not_the_same(other, line, words):
    gold = [["a", "b"], ["a", "b"]]
    with pytest.raises(DataError, match=words) as caught:
        judge(labelling(gold, gold, gap=2), labelling(other, other, "other"), JudgementOptions())
    assert (caught.value.path, caught.value.line) == ("other", line)
    assert "data" in str(caught.value)


def test_groups_are_the_units(rng):
    """Sequences of a group count as one sequence with all their positions does; their order does not matter."""
    gold = random_gold(rng, 60)
    one, two = ([random_system(rng, gold, p) for p in (0.7, 0.8)], rng.permutation(np.arange(60) % 5))
    options = JudgementOptions(scheme="iob2", resamples=200, draws=200, metric="macro-f1")
    lengths = [len(labels) for labels in gold]
    first, second = (labelling(gold, system) for system in one)
    found = judge(replace(first, groups=np.repeat(two, lengths)), second, options)
    assert (found.units.text, found.to_dict()["groups"]) == ("5 groups", 5)
    assert found.headline.error_text == "+- standard error over 5 groups"
    order = [s for group in range(5) for s in np.flatnonzero(two == group)]
    counts = [scored(gold, system).unit_counts for system in one]
    summed = [np.array([each[two == group].sum(axis=0) for group in range(5)]) for each in counts]
    assert found.intervals == bootstrap(summed[0], figures, 200, 0.95, 0)
    assert found.comparison.differences == differences(*summed, 200, 200, 0.95, 0)
    # A system with figures of its own in each group has an interval as wide as they differ.
    steady = labelling(gold, gold)
    assert len(judge(replace(steady, groups=np.zeros(sum(lengths), int)), None, options).intervals) == 0
    sorted_ = labelling([gold[s] for s in order], [one[0][s] for s in order])
    groups = np.repeat(two[order], [lengths[s] for s in order])
    moved = judge(replace(sorted_, groups=groups), None, options)
    assert moved.intervals == found.intervals and moved.headline.error == pytest.approx(found.headline.error, rel=1e-12)


def test_blocks_of_a_few_long_sequences_are_the_units(rng):
    """Totals stay what they are, spans across a border of blocks included; one sequence has an interval then."""
    gold = ["B-A", "I-A", "I-A", "O", "O", "O", "O"] * 60
    predicted = ["O" if value != "O" and rng.random() < 0.3 else value for value in gold]
    offsets = np.array([0, len(gold)])
    codes = np.unique(gold, return_inverse=True)[1]
    units = unit_offsets(codes, offsets)[0]
    assert 10 <= len(units) - 1 <= 60
    blocks, whole = evaluate(gold, predicted, offsets, units=units), evaluate(gold, predicted, offsets)
    for strict in (False, True):
        counts, totals = (one.strict_counts if strict else one.unit_counts for one in (blocks, whole))
        assert len(counts) == len(units) - 1
        np.testing.assert_array_equal(counts.sum(axis=0), totals.sum(axis=0))
    yardstick = choose_yardstick(sorted(set(gold)))
    number = {label: y for y, label in enumerate(yardstick.labels)}
    coded = [np.array([number[value] for value in values]) for values in (gold, predicted)]
    counted = yardstick.counts(*coded, None, units, sequences=offsets)
    assert yardstick.value(counted) == pytest.approx(whole.spans.total.f1, rel=1e-12)
    assert 0 < yardstick.standard_error(counted) < 0.1
