"""Tables of word vectors: formats, errors with their lines, lookups, and what is left of numbers in a byte."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

from kcrf_core.corpora import load_word_vectors
from kcrf_core.errors import DataError

ROWS = np.array([[0.5, -0.25, 1e-3], [2.0, 0.0, -127.0], [0.0, 0.0, 0.0], [1, 2, 3]])
WORDS = ["the", "New York", "x0", "\u00e9\u00a0t\u00e9"]
LINES = [f"{word} {' '.join(map(repr, row))}" for word, row in zip(WORDS, ROWS.tolist(), strict=True)]


def written(folder, text, name="table.txt"):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_all_formats_give_the_same_table(tmp_path):
    plain = "\n".join(LINES) + "\n"
    header = f"{len(WORDS)} {ROWS.shape[1]}\n" + "".join(f"{line} \r\n" for line in LINES)
    paths = [
        written(tmp_path, plain, "glove.txt"),
        written(tmp_path, header + "\n\n", "fast.vec"),
        written(tmp_path, gzip.compress(plain.encode()), "glove.txt.gz"),
        written(tmp_path, plain.replace(" ", "\t").replace("New\tYork", "New York").rstrip(), "tabs.txt"),
    ]
    tables = [load_word_vectors(path) for path in paths]
    assert {table.digest for table in tables} == {tables[0].digest}
    for table in tables:
        assert list(table.words) == WORDS
        steps = np.abs(ROWS).max(axis=1, keepdims=True) / 127
        assert np.all(np.abs(table.vectors(np.arange(4)) - ROWS) <= steps * 0.5001)
    assert tables[0].vectors(np.array([-1, 1], dtype=np.int32))[0].tolist() == [0, 0, 0]


def test_values_are_looked_up_as_they_are_in_lower_case_and_with_digits_as_zeros(tmp_path):
    words = ["The", "the", "0000", "a-0", "B0"]
    table = load_word_vectors(written(tmp_path, "".join(f"{word} {n}\n" for n, word in enumerate(words))))
    values = ["The", "THE", "1987", "A-7", "B9", "b9", "0", ""]
    assert table.numbers(values).tolist() == [0, 1, 2, 3, 4, -1, -1, -1]
    assert table.vectors(table.numbers(["THE"])) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a 1 2\nb 1\n", 2, "2 columns, expected 3"),
        (f"{'9' * 5000} 2\na 1 2\n", 2, "3 columns, expected 2"),
        ("a 1 2\n\nb 1 2 3\n", 3, "4 columns, expected 3"),
        ("a 1 2\nb 1 nan\n", 2, "'nan' is not a finite number"),
        ("a 1 2\nb inf 1\n", 2, "'inf' is not a finite number"),
        ("2 2\na 1 2\nb 1 x\n", 3, "'x' is not a finite number"),
        ("a 1 2\n 1 2\n", 2, "2 columns, expected 3"),
        ("a 1 2\nb 1 1e30\n", 2, "too large"),
        ("a 1 2\nb\xff 1 2\n".encode("latin-1"), 2, "not UTF-8"),
        ("one\ntwo\n", 1, "a word and its numbers are expected"),
        ("2 0\n", 1, "vectors of no numbers"),
    ],
)
def test_errors_name_the_line(text, line, message, tmp_path):
    with pytest.raises(DataError) as found:
        load_word_vectors(written(tmp_path, text))
    assert message in str(found.value) and f"table.txt:{line}:" in str(found.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1 2\na 3 4\n", ":3: 'a' again, which line 1 has"),
        ("3 1\na 1\nb 2\nb 3\n", ":4: 'b' again, which line 3 has"),
        ("3 1\na 1\nb 2\n", "announces 3 words, and there are 2"),
        ("", "an empty file"),
    ],
)
def test_errors_of_the_whole_file(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        load_word_vectors(written(tmp_path, text))


def test_blocks_and_threads_change_nothing(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    lines = [f"w{n} {' '.join(f'{x:.5f}' for x in rng.normal(size=7))}" for n in range(500)]
    path = written(tmp_path, "\n".join(lines))
    whole = load_word_vectors(path)
    monkeypatch.setattr("kcrf_core.corpora.lines.READ_SIZE", 997)
    os.utime(path, ns=(0, 0))
    again = load_word_vectors(path)
    assert again is not whole and again.digest == whole.digest
    assert load_word_vectors(path) is again  # while the file stays as it is
    lines[300] += " 1"
    with pytest.raises(DataError, match=":301: 9 columns, expected 8"):
        load_word_vectors(written(tmp_path, "\n".join(lines)))
