"""Errors of spans by kind, by words that training has seen, and words that are often wrong."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.scoring import Labelling, SeenWords, readable_column
from kcrf_core.scoring.error_analysis import PAIRS, analyse_errors
from oracle import spans


def labelling(gold, predicted, words=None, seen=None):
    """A labelling of sequences of labels: blanks between labels, bars between sequences."""
    parts = [[part.split() for part in text.split("|")] for text in (gold, predicted)]
    flat = [[label for part in each for label in part] for each in parts]
    offsets = np.cumsum([0, *map(len, parts[0])])
    known = None if seen is None else SeenWords(np.array(seen), True)
    return Labelling("test", *flat, offsets, np.arange(1, offsets[-1] + 1), words, known)


# Gold and predicted labels, and the errors of each kind, worked out by hand.
CASES = [
    ("B-X I-X O", "B-X I-X O", {}),
    ("B-X I-X O", "B-Y I-Y O", {"type": 1}),
    ("B-X I-X O", "B-X O O", {"boundary": 1}),
    ("O B-X I-X", "B-Y I-Y O", {"boundary_and_type": 1}),
    ("B-X I-X O", "O O O", {"missed": 1}),
    ("O O O", "O B-X O", {"spurious": 1}),
    ("B-X O O", "O O B-X", {"missed": 1, "spurious": 1}),
    # A span in two pieces: the longer one is its partner.
    ("B-X I-X I-X", "B-X B-X I-X", {"boundary": 1, "spurious": 1}),
    ("B-X I-X I-X I-X", "B-X I-X O B-X", {"boundary": 1, "spurious": 1}),
    # Two spans as one; the same type comes before the larger share.
    ("B-X B-X", "B-X I-X", {"boundary": 1, "missed": 1}),
    ("B-Y I-Y B-X", "B-X I-X I-X", {"boundary": 1, "missed": 1}),
    ("B-X I-X B-Y", "B-Y I-Y B-X", {"type": 2}),
    # Spans of neighbouring sequences share no position.
    ("O B-X | I-X O", "O O | B-X I-X", {"missed": 1, "boundary": 1}),
]


@pytest.mark.parametrize(("gold", "predicted", "expected"), CASES)
def test_kinds_of_errors(gold, predicted, expected):
    found = analyse_errors(labelling(gold, predicted), "iob2").spans.total
    assert {kind: count for kind, count in found.items() if count and kind != "correct"} == expected


def test_every_span_is_counted_once(rng):
    for _ in range(200):
        gold, predicted = (" ".join(rng.choice(["O", "B-X", "I-X", "B-Y", "I-Y"], size=12)) for _ in range(2))
        one = labelling(gold, predicted)
        total = analyse_errors(one, "iob2").spans.total
        sets = [set(spans(each.split())) for each in (gold, predicted)]
        pairs = total["correct"] + sum(total[kind] for kind in PAIRS)
        assert total["correct"] == len(sets[0] & sets[1])
        assert [pairs + total["missed"], pairs + total["spurious"]] == list(map(len, sets))


def test_types_have_their_own_errors_and_strict_spans_too():
    one = labelling("B-X O B-Y I-Y", "O B-Y B-Y O")
    types = analyse_errors(one, "iob2").spans.types
    assert types["X"]["missed"] == 1 and types["Y"] == {
        "correct": 0, "type": 0, "boundary": 1, "boundary_and_type": 0, "missed": 0, "spurious": 1
    }  # fmt: skip
    loose = labelling("B-X I-X", "I-X I-X")
    assert analyse_errors(loose, "iob2").spans.total["correct"] == 1
    assert analyse_errors(loose, "iob2", strict=True).spans.total["missed"] == 1
    assert analyse_errors(labelling("a b", "a a"), None).spans is None


def test_seen_and_unseen_words():
    one = labelling("B-X I-X O B-X", "B-X I-X B-X O", list("abcd"), [True, False, True, True])
    found = analyse_errors(one, "iob2")
    assert (found.seen.positions, found.seen.correct, found.unseen.positions, found.unseen.correct) == (3, 1, 1, 1)
    # The first span has an unseen word and is right; a seen one is missed, and one is spurious.
    assert [(side.spans.gold, side.spans.predicted, side.spans.correct) for side in (found.seen, found.unseen)] == [
        (1, 1, 0), (1, 1, 1)
    ]  # fmt: skip
    assert analyse_errors(labelling("a b", "a a", ["u", "v"]), None).seen is None


def test_words_that_are_often_wrong():
    words = ["the", "cat", "the", "dog", "the", "cat"]
    found = analyse_errors(labelling("a b a b b c", "a a b a a a", words), None).words
    assert [(one.word, one.wrong, one.positions) for one in found] == [("cat", 2, 2), ("the", 2, 3), ("dog", 1, 1)]
    assert (found[1].gold, found[1].predicted, found[1].confusions) == ("a", "b", 1)
    assert analyse_errors(labelling("a", "b"), None).words is None


def test_columns_that_are_words():
    numbers = ["1", "?", "3.5", "-2"] * 20
    times = [f"2024-01-0{k % 9 + 1} 12:00:00" for k in range(80)]
    words = ["the", "cat", "3", "sat"] * 20
    assert readable_column([numbers, times, ["S03"] * 80, words]) is words
    assert readable_column([numbers, times, ["S03"] * 80]) is None
    assert readable_column([["the"]]) == ["the"]
