"""Lexicons and clusters: matches against a search by definition, files and their mistakes."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from kcrf_core.corpora import Clusters, Lexicon, load_clusters, load_lexicon
from kcrf_core.errors import DataError


def places(entries, text, fold=True):
    """Return the places of the words of sequences, which are separated by |."""
    lexicon = Lexicon.of("here", entries, fold)
    sequences = [part.split() for part in text.split("|")]
    words = [word for sequence in sequences for word in sequence]
    offsets = np.cumsum([0, *map(len, sequences)])
    return "".join("-BI"[place] for place in lexicon.places(lexicon.numbers(words), offsets))


@pytest.mark.parametrize(
    ("entries", "text", "found"),
    [
        (["Paris"], "in Paris today", "-B-"),
        (["New York"], "New York New York new", "BIBI-"),
        (["New York", "New York City", "City"], "New York City", "BII"),  # the longest
        (["York"], "New York", "-B"),
        (["New York", "York Times", "Times Square"], "the New York Times Square", "-BIII"),  # overlapping: one run
        (["a b c d", "b"], "a b c e", "-B--"),  # a beginning alone is none
        (["a b", "c"], "a b c", "BIB"),  # side by side: two
        (["a b"], "a | b a b", "--BI"),  # not across the ends of sequences
        (["a b", "b c d"], "a b c", "BI-"),
        (["Straße"], "STRASSE STRAßE", "-B"),
        (["a"], "", ""),
        (["Heidegger", "St. Gallen", "& C", "c#"], "(Heidegger, M.: St. Gallen; & (C), C# # C#,", "B-BIBIB--"),
    ],
)
def test_matches(entries, text, found):
    assert places(entries, text) == found


def test_case_may_be_kept():
    assert places(["New York"], "new york New York New York,", fold=False) == "--BI--"


def test_matches_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(40):
        entries = {" ".join(rng.choice(list("abcd"), size=rng.integers(1, 5))) for _ in range(rng.integers(1, 8))}
        words = [["abcde"[n] for n in rng.integers(0, 5, rng.integers(0, 9))] for _ in range(6)]
        expected = ""
        for sequence in words:
            inside = 0  # end of the longest entries so far
            for t in range(len(sequence)):
                lengths = [n for n in range(1, len(sequence) - t + 1) if " ".join(sequence[t : t + n]) in entries]
                expected += "I" if t < inside else "B" if lengths else "-"
                inside = max(inside, t + max(lengths, default=0))
        assert places(entries, "|".join(map(" ".join, words))) == expected


def test_files_of_entries(tmp_path):
    path = tmp_path / "cities.txt"
    path.write_text("\ufeffNew  York\r\n\n# a comment\n#\n#hashtag\n  Paris \nparis\n", encoding="utf-8")
    assert list(load_lexicon(str(path), True).entries) == ["#hashtag", "new york", "paris"]
    assert list(load_lexicon(str(path), False).entries) == ["#hashtag", "New York", "Paris", "paris"]
    packed = tmp_path / "cities.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert load_lexicon(str(packed), True).digest == load_lexicon(str(path), True).digest
    assert load_lexicon(str(packed), False).digest != load_lexicon(str(path), True).digest
    assert load_lexicon(str(packed), True).longest == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "no entries"),
        (b"# only comments\n\n", "no entries"),
        (b"Paris\nRome\t123\n", ":2: a TAB inside the line"),
        (b"Paris\nK\xf6ln\n", ":2: byte 0xf6 is not UTF-8"),
    ],
)
def test_mistakes_in_lexicons(text, message, tmp_path):
    (tmp_path / "x.txt").write_bytes(text)
    with pytest.raises(DataError, match=message):
        load_lexicon(str(tmp_path / "x.txt"), True)


@pytest.mark.parametrize(
    "text",
    [
        "0010\tthe\t17\n0010\ta\t9\n110100\tParis\t4\n",
        "the 0010\na 0010\nParis 110100\n",
        "0010 the\n0010 a\n110100 Paris\n",
    ],
)
def test_files_of_clusters(text, tmp_path):
    (tmp_path / "paths").write_text(text)
    found = load_clusters(str(tmp_path / "paths"))
    values = ["the", "The", "Paris", "xyz"]
    assert found.prefixes(values, 4) == ["0010", "0010", "1101", "none"]
    assert found.prefixes(values, None) == ["0010", "0010", "110100", "none"]
    assert found.longest == 6


def test_words_of_digits_and_none_at_all(tmp_path):
    (tmp_path / "paths").write_text("01\t10\t3\n11\t1\t2\n00\tx\t1\n")
    assert load_clusters(str(tmp_path / "paths")).prefixes(["10", "1", "01"], None) == ["01", "11", "none"]
    assert Clusters("x", ("a",), ("01",), np.zeros(1, np.int32)).prefixes([], 4) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty file"),
        ("the 0010\nParis\n", ":2: 1 value, where path, word and count"),
        ("the 0010\nParis 17\n", ":2: '17' is no path of 0 and 1"),
        ("0010 the 4\n01x1 a 3\n01 b 2\n", ":2: '01x1' is no path of 0 and 1"),
        ("the 0010\nthe 0011\n", ":2: 'the' again, which line 1 has"),
        ("the 1 2 3\n", ":1: 4 values"),
    ],
)
def test_mistakes_in_clusters(text, message, tmp_path):
    (tmp_path / "paths").write_text(text)
    with pytest.raises(DataError, match=message):
        load_clusters(str(tmp_path / "paths"))
