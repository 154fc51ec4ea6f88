"""Spans and scores: hand-worked cases, a naive oracle, and counts that must add up."""

import itertools
import json
import pickle
import string

import numpy as np
import pytest

from kcrf_core.corpora import MOST_LABELS
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.scoring import SCHEMES, Score, allowed_transitions, detect_scheme, evaluate
from kcrf_core.scoring.schemes import split_label
from kcrf_core.scoring.spans import SpanFinder
from oracle import spans


def split(text):
    return text.split()


def naive_spans(labels):
    """Spans from two predicates on neighbours, tabulated by letter as conlleval does, and a scan."""
    starting = {"B": "BIOESLU", "S": "BIOESLU", "U": "BIOESLU", "I": "OESLU", "E": "OESLU", "L": "OESLU"}
    ending = {"B": "BSUO", "I": "BSUO", "E": "BIOESLU", "L": "BIOESLU", "S": "BIOESLU", "U": "BIOESLU"}

    def parts(label):
        return (label[0], label[2:]) if label[1:2] == "-" else (label, "")

    def starts(previous, current):
        (before, old), (now, new) = parts(previous), parts(current)
        return now != "O" and (before in starting[now] or old != new)

    def ends(current, following):
        (now, old), (after, new) = parts(current), parts(following)
        return now != "O" and (after in ending[now] or old != new)

    found, begun = [], None
    padded = ["O", *labels, "O"]
    for t in range(1, len(padded) - 1):
        if starts(padded[t - 1], padded[t]):
            begun = t - 1
        if ends(padded[t], padded[t + 1]):
            found.append((begun, t, parts(padded[t])[1]))
    return found


def random_corpus(generator, alphabet, sequences=20):
    lengths = generator.integers(1, 12, size=sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gold = generator.choice(alphabet, size=offsets[-1]).tolist()
    # Mostly right, so that correct spans occur.
    keep = generator.random(offsets[-1]) < 0.8
    other = generator.choice(alphabet, size=offsets[-1]).tolist()
    predicted = [g if k else o for g, o, k in zip(gold, other, keep, strict=True)]
    return gold, predicted, offsets


ALPHABETS = {
    "iob": split("O B-NP I-NP B-VP I-VP"),
    "bare": split("O B I"),
    "no outside": split("B I"),
    "iobes": split("O B-A I-A E-A S-A B-B I-B E-B S-B"),
    "bilou": split("O B-A I-A L-A U-A B-B I-B L-B U-B"),
    "hyphens": split("O B-NP-SBJ I-NP-SBJ B-NP I-NP"),
}


@pytest.mark.parametrize(
    "labels, expected",
    [
        ("B-NP I-NP O B-VP", [(0, 2, "NP"), (3, 4, "VP")]),  # well formed, one span at the end
        ("O B-NP I-NP I-NP", [(1, 4, "NP")]),
        ("B-NP B-NP I-NP B-NP", [(0, 1, "NP"), (1, 3, "NP"), (3, 4, "NP")]),  # adjacent
        ("O I-NP I-NP O", [(1, 3, "NP")]),  # I after O begins a span
        ("I-NP B-NP", [(0, 1, "NP"), (1, 2, "NP")]),
        ("B-NP I-VP I-VP I-NP", [(0, 1, "NP"), (1, 3, "VP"), (3, 4, "NP")]),  # type changes inside
        ("O O O", []),
        ("", []),
        ("I-PER I-PER B-PER I-PER O I-LOC", [(0, 2, "PER"), (2, 4, "PER"), (5, 6, "LOC")]),  # IOB1
        (
            "B-X I-X E-X S-X O S-X S-X B-X E-X",
            [(0, 3, "X"), (3, 4, "X"), (5, 6, "X"), (6, 7, "X"), (7, 9, "X")],
        ),
        ("B-X E-X B-X E-X E-X I-X", [(0, 2, "X"), (2, 4, "X"), (4, 5, "X"), (5, 6, "X")]),
        ("B-X I-X O E-X S-X I-X", [(0, 2, "X"), (3, 4, "X"), (4, 5, "X"), (5, 6, "X")]),  # malformed IOBES
        ("B-X L-X U-X O B-X I-X L-X", [(0, 2, "X"), (2, 3, "X"), (4, 7, "X")]),
        ("B I I O B B I", [(0, 3, ""), (4, 5, ""), (5, 7, "")]),
        ("I I B", [(0, 2, ""), (2, 3, "")]),
        ("B-NP I O-NP I-NP", [(0, 1, "NP"), (1, 2, ""), (3, 4, "NP")]),  # a bare type is a type; O has none
        ("B-NP-SBJ I-NP-SBJ I-NP", [(0, 2, "NP-SBJ"), (2, 3, "NP")]),  # only the first hyphen divides
    ],
)
def test_spans_worked_by_hand(labels, expected):
    assert spans(split(labels)) == expected


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
def test_spans_against_naive_oracle(alphabet):
    generator = np.random.default_rng(7)
    for _ in range(300):
        labels = generator.choice(alphabet, size=generator.integers(0, 15)).tolist()
        assert spans(labels) == naive_spans(labels)


def test_spans_refuse_other_labels():
    with pytest.raises(DataError, match="'X-NP'"):
        spans(["B-NP", "X-NP"])


def test_split_label():
    assert split_label("B-NP-SBJ") == ("B", "NP-SBJ")
    assert split_label("I") == ("I", "")
    assert split_label("NN") is None
    assert split_label("") is None
    assert split_label("b-NP") is None


@pytest.mark.parametrize(
    "labels, scheme",
    [
        ("B-NP I-NP O", "iob2"),
        ("B-NP I-NP B-VP", "iob2"),
        ("B-NP O", "iob2"),  # only spans of one position
        ("B-LOC I-LOC I-PER O", "iob1"),  # I-PER is never begun by B
        ("I-LOC I-PER O", "iob1"),
        ("B-X I-X E-X S-X O", "iobes"),
        ("S-X O", "iobes"),
        ("B-X I-X L-X U-X O", "bilou"),
        ("B I", "iob2"),
        ("B I O", "iob2"),
        ("I O", "iob1"),
        ("B I E S", "iobes"),
        ("B I O L U", "bilou"),
        ("", None),
        ("O", None),
        ("B O", None),  # blood groups, not spans
        ("0 1", None),
        ("b i o", None),
        ("b i o e s", None),
        ("B E S", None),
        ("E S", None),
        ("E-1 S-2", None),
        ("O-1 O-2", None),
        ("B-X I-X E-X U-X O", None),  # two schemes at once
        ("B-NP I-NP O NN", None),
        ("NN VB IN O", None),
        (" ".join(string.ascii_lowercase), None),
        (" ".join(string.ascii_uppercase), None),
    ],
)
def test_detection(labels, scheme):
    assert detect_scheme(split(labels)) == scheme
    assert detect_scheme(iter(split(labels) * 2)) == scheme


def test_scores_worked_by_hand():
    # gold spans:      NP 0-2, VP 2-3, NP 4-5 | NP 5-7, VP 7-8
    # predicted spans: NP 0-2, VP 2-3, NP 3-5 | NP 5-6, NP 6-7, PP 7-8
    gold = split("B-NP I-NP B-VP O B-NP B-NP I-NP B-VP")
    predicted = split("B-NP I-NP B-VP I-NP I-NP B-NP B-NP B-PP")
    result = evaluate(gold, predicted, [0, 5, 8])
    assert (result.positions, result.sequences, result.correct) == (8, 2, 4)
    assert result.accuracy == 4 / 8
    assert result.sequence_accuracy == 0.0
    assert result.scheme == "iob2"
    assert result.spans.types == (Score("NP", 3, 4, 1), Score("PP", 0, 1, 0), Score("VP", 2, 1, 1))
    total = result.spans.total
    assert (total.gold, total.predicted, total.correct) == (5, 6, 2)
    assert total.precision == pytest.approx(2 / 6, rel=1e-12)
    assert total.recall == pytest.approx(2 / 5, rel=1e-12)
    assert total.f1 == pytest.approx(4 / 11, rel=1e-12)
    assert result.spans.macro_f1 == pytest.approx((2 / 7 + 0 + 2 / 3) / 3, rel=1e-12)
    assert result.labels == (
        Score("B-NP", 3, 3, 2),
        Score("B-PP", 0, 1, 0),
        Score("B-VP", 2, 1, 1),
        Score("I-NP", 2, 3, 1),
        Score("O", 1, 0, 0),
    )
    assert result.macro_f1 == pytest.approx((4 / 6 + 0 + 2 / 3 + 2 / 5 + 0) / 5, rel=1e-12)
    assert result.confusion.tolist() == [
        [2, 0, 0, 1, 0],
        [0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 0, 0, 1, 0],
    ]


def test_perfect_prediction():
    labels = split("B-NP I-NP O B-VP")
    result = evaluate(labels, labels, [0, 3, 4])
    assert result.accuracy == result.sequence_accuracy == result.macro_f1 == 1.0
    assert result.spans.total == Score("", 2, 2, 2)
    assert result.spans.total.f1 == result.spans.macro_f1 == 1.0


def test_nothing_predicted():
    result = evaluate(split("B-NP I-NP O"), split("O O O"), [0, 3])
    total = result.spans.total
    assert total == Score("", 1, 0, 0)
    assert (total.precision, total.recall, total.f1) == (0.0, 0.0, 0.0)


def test_nothing_to_find():
    result = evaluate(split("O O O"), split("O O O"), [0, 3], scheme="iob2")
    assert result.accuracy == 1.0
    assert result.spans.total == Score("", 0, 0, 0)
    assert result.spans.types == ()
    assert result.spans.total.f1 == result.spans.macro_f1 == 0.0


def test_right_boundaries_with_wrong_type_are_wrong():
    result = evaluate(split("B-NP I-NP"), split("B-VP I-VP"), [0, 2])
    assert result.spans.types == (Score("NP", 1, 0, 0), Score("VP", 0, 1, 0))


def test_the_same_spans_in_other_letters_are_right():
    result = evaluate(split("B-NP I-NP O B-NP"), split("I-NP I-NP O I-NP"), [0, 4])
    assert result.spans.total == Score("", 2, 2, 2)
    assert result.correct == 2


def test_a_span_ends_with_its_sequence():
    gold = split("B-NP I-NP I-NP O")
    assert evaluate(gold, gold, [0, 4]).spans.total.gold == 1
    assert evaluate(gold, gold, [0, 2, 4]).spans.total.gold == 2
    # The same labels, predicted spans of the same positions, but cut where gold is not.
    assert evaluate(split("I I I"), split("I B I"), [0, 1, 3], scheme="iob1").spans.total == Score("", 2, 2, 2)
    assert evaluate(split("I I I"), split("I B I"), [0, 3], scheme="iob1").spans.total == Score("", 1, 2, 0)


def test_bare_labels_have_the_empty_type():
    result = evaluate(split("B I B I I"), split("B I B B I"), [0, 5])
    assert result.scheme == "iob2"
    assert result.spans.types == (Score("", 2, 3, 1),)


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)
def test_random_corpora_against_counting(alphabet):
    generator = np.random.default_rng(11)
    for _ in range(20):
        gold, predicted, offsets = random_corpus(generator, alphabet)
        result = evaluate(gold, predicted, offsets, known_labels=alphabet)

        pairs = list(zip(gold, predicted, strict=True))
        assert [score.name for score in result.labels] == sorted(set(gold) | set(predicted))
        for row, score in enumerate(result.labels):
            for column, other in enumerate(result.labels):
                assert result.confusion[row, column] == pairs.count((score.name, other.name))
            assert score.gold == gold.count(score.name) == result.confusion[row].sum()
            assert score.predicted == predicted.count(score.name) == result.confusion[:, row].sum()
            assert score.correct == pairs.count((score.name, score.name))
        assert result.correct == sum(g == p for g, p in pairs) == np.trace(result.confusion)
        assert result.positions == len(gold) == result.confusion.sum()

        bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
        assert result.sequences == len(bounds)
        assert result.correct_sequences == sum(gold[a:b] == predicted[a:b] for a, b in bounds)

        gold_spans, predicted_spans = (
            {(a, *span) for a, b in bounds for span in naive_spans(labels[a:b])} for labels in (gold, predicted)
        )
        common = gold_spans & predicted_spans
        kinds = sorted({span[-1] for span in gold_spans | predicted_spans})
        assert result.spans.types == tuple(
            Score(
                kind,
                *(sum(span[-1] == kind for span in found) for found in (gold_spans, predicted_spans, common)),
            )
            for kind in kinds
        )
        assert result.spans.total == Score("", len(gold_spans), len(predicted_spans), len(common))


def test_f1_is_the_harmonic_mean():
    score = Score("x", 7, 5, 3)
    assert score.f1 == pytest.approx(2 * score.precision * score.recall / (score.precision + score.recall), rel=1e-12)


def test_labels_without_scheme():
    result = evaluate(list("abba"), list("abab"), [0, 2, 4])
    assert result.scheme is None
    assert result.spans is None
    assert result.sequence_accuracy == 0.5
    assert result.to_dict()["spans"] is None


def test_scheme_can_be_switched_off_or_named():
    gold = split("B-NP O")
    assert evaluate(gold, gold, [0, 2], scheme=None).spans is None
    assert evaluate(gold, gold, [0, 2], scheme="iobes").scheme == "iobes"
    with pytest.raises(ConfigError, match="'iob3'"):
        evaluate(gold, gold, [0, 2], scheme="iob3")
    with pytest.raises(DataError, match="'S-NP'"):
        evaluate(split("S-NP O"), gold, [0, 2], scheme="iob2")


def test_known_labels():
    gold, predicted = split("B I B"), split("B I I")
    assert evaluate(gold, predicted, [0, 3]).unknown_gold is None
    assert evaluate(gold, predicted, [0, 3], known_labels=["B", "I"]).unknown_gold == 0
    result = evaluate(split("B-NP B-PP B-PP"), split("B-NP B-NP O"), [0, 3], known_labels=split("B-NP I-NP O"))
    assert result.unknown_gold == 2
    assert result.correct == 1
    # A text with few letters in it does not look like spans to one who knows the alphabet.
    assert evaluate(gold, predicted, [0, 3], known_labels=string.ascii_uppercase).scheme is None


def test_empty_sequences_do_not_count():
    result = evaluate(split("B I B"), split("B I I"), [0, 0, 2, 2, 3, 3])
    assert result.sequences == 2
    assert result.sequence_accuracy == 0.5
    assert result.spans.total == Score("", 2, 2, 2)


def test_as_many_labels_as_a_model_may_have():
    """Training and evaluation have one limit, for gold and for predicted labels."""
    labels = [f"L{number}" for number in range(MOST_LABELS)]
    found = evaluate(labels, labels[::-1], [0, len(labels)], None)
    assert len(found.labels) == MOST_LABELS and found.correct == 0
    more = [*labels, "one more"]
    for gold, predicted in ((more, [*labels, "L0"]), ([*labels, "L0"], more)):
        with pytest.raises(DataError, match="5001 different labels in 5001 positions"):
            evaluate(gold, predicted, [0, len(more)], None)


def test_nothing_to_evaluate():
    with pytest.raises(DataError, match="nothing to evaluate"):
        evaluate([], [], [0])


def test_words_taken_for_labels():
    words = [f"word{t}" for t in range(6000)]
    with pytest.raises(DataError, match="6000 different labels"):
        evaluate(words, words, [0, 6000])


@pytest.mark.parametrize("offsets", [[], [0, 2], [1, 3], [0, 4], [0, 2, 1, 3]])
def test_offsets_must_fit(offsets):
    with pytest.raises(ValueError, match="offsets"):
        evaluate(split("B I B"), split("B I I"), offsets)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="3 gold labels but 2"):
        evaluate(split("B I B"), split("B I"), [0, 3])


def test_dict_survives_json():
    gold, predicted, offsets = random_corpus(np.random.default_rng(3), ALPHABETS["iob"])
    result = evaluate(gold, predicted, offsets, known_labels=ALPHABETS["iob"])
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["schema"] == 1
    assert plain["accuracy"] == result.accuracy
    assert plain["spans"]["f1"] == result.spans.total.f1
    assert [row["type"] for row in plain["spans"]["types"]] == ["NP", "VP"]
    assert sum(map(sum, plain["confusion"]["counts"])) == plain["positions"]
    # Layout is what other programs read: a key that goes or changes means a new schema number.
    assert list(plain) == [
        "schema",
        "positions",
        "sequences",
        "correct",
        "accuracy",
        "correct_sequences",
        "sequence_accuracy",
        "macro_f1",
        "weighted_f1",
        "unknown_gold",
        "labels",
        "confusion",
        "scheme",
        "spans",
        "scheme_detected",
        "strict_spans",
    ]
    rates = ["gold", "predicted", "correct", "precision", "recall", "f1"]
    assert list(plain["labels"][0]) == ["label", *rates]
    assert list(plain["spans"]) == [*rates, "macro_f1", "weighted_f1", "types"]
    assert list(plain["confusion"]) == ["labels", "counts"]


def test_result_travels_between_processes():
    gold, predicted, offsets = random_corpus(np.random.default_rng(5), ALPHABETS["iobes"])
    result = evaluate(gold, predicted, offsets)
    assert pickle.loads(pickle.dumps(result)).to_dict() == result.to_dict()


# ----------------------------------------------------------------------------- allowed transitions


def written(length, found, scheme):
    """The labels of a sequence with these spans, by the definition of its scheme."""
    labels = ["O"] * length
    for start, end, kind in found:
        for t in range(start, end):
            letter = "I"
            if scheme in ("iob2", "iobes", "bilou") and t == start:
                letter = "B"
            if scheme == "iob1" and t == start and t and labels[t - 1][2:] == kind:
                letter = "B"
            if scheme in ("iobes", "bilou") and t == end - 1:
                single = t == start
                letter = {"iobes": "ES", "bilou": "LU"}[scheme][single]
            labels[t] = f"{letter}-{kind}"
    return tuple(labels)


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_allowed_transitions_are_those_of_well_formed_sequences(scheme):
    """Exactly the sequences that come back when their spans are written down again."""
    letters = [letter for letter in SCHEMES[scheme].letters if letter != "O"]
    alphabet = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "xy")]
    allowed = allowed_transitions(alphabet, scheme)
    for length in (1, 2, 3):
        for path in itertools.product(range(len(alphabet)), repeat=length):
            labels = tuple(alphabet[y] for y in path)
            possible = allowed.first[path[0]] and allowed.last[path[-1]]
            possible = possible and all(allowed.pairs[a, b] for a, b in itertools.pairwise(path))
            assert possible == (written(length, spans(labels), scheme) == labels), labels


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
def test_strict_spans_are_those_that_come_back_when_written_down(scheme):
    letters = [letter for letter in SCHEMES[scheme].letters if letter != "O"]
    alphabet = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "xy")]
    finder = SpanFinder(alphabet)
    for length in (1, 2, 3):
        for path in itertools.product(range(len(alphabet)), repeat=length):
            labels = tuple(alphabet[y] for y in path)
            again = written(length, spans(labels), scheme)
            expected = [(a, b) for a, b, _ in spans(labels) if again[a:b] == labels[a:b]]
            found = finder.find(np.array(path), np.array([0, length]))
            good = found.well_formed(scheme)
            assert SCHEMES[scheme].well_formed(good.written).all()
            assert list(zip(good.starts.tolist(), good.ends.tolist(), strict=True)) == expected, labels
