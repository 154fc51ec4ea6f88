"""Attributes as users of CRFsuite write them, after the examples that come with CRFsuite and CRF++.

columns     words and tags in a window of five, their pairs and the triples of tags, as CRFsuite's example for chunking
            and CRF++'s templates `chunking` and `JapaneseNE` have them
words       words, lower case, prefixes and suffixes of 1 to 3, shape, in a window of five: names in text without tags
entities    words with the many tests of letters, digits and marks of CRFsuite's example for names
tagged      `words` of the first column and `columns` of all; `tagged_entities` has `entities` in the place of `words`
symbols3    values of all columns in a window of three to either side and pairs of neighbours; `symbols5` has five to
            either side, pairs and triples; of single characters also their kind, such as LATIN, DIGIT or KATAKANA
bins        numbers in ten bins of equal size, at the position; `bins5` in a window of five
numbers2    standardised values and bins of numbers, values of other columns, two to either side; `numbers5`
given       those of an attribute file
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

Rows = list[list[str]]  # of one sequence, the label last
Attributes = list[list[str]]

FIRST, LAST = "__BOS__", "__EOS__"
WINDOW = (-2, -1, 0, 1, 2)


def read_sequences(path: str | Path) -> list[Rows]:
    """Sequences of a file of columns."""
    out: list[Rows] = []
    rows: Rows = []
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        row = line.rstrip("\r").split("\t") if "\t" in line else [value for value in line.split(" ") if value]
        if row and any(row):
            rows.append(row)
        elif rows:
            out.append(rows)
            rows = []
    return [*out, rows] if rows else out


def read_attributes(path: str | Path) -> list[Rows]:
    """Sequences of an attribute file, the label first there and last here."""
    return [[[*row[1:], row[0]] for row in rows] for rows in read_sequences(path)]


def _at(values: Sequence[str], t: int) -> str:
    if t < 0:
        return f"_B{t}"
    return values[t] if t < len(values) else f"_B+{t - len(values) + 1}"


def _together(name: str, values: Sequence[str], t: int, offsets: Sequence[int]) -> str:
    places = "|".join(f"{name}[{offset}]" for offset in offsets)
    return f"{places}={'|'.join(_at(values, t + offset) for offset in offsets)}"


SINGLE = [(offset,) for offset in WINDOW]
PAIRS = [(-2, -1), (-1, 0), (0, 1), (1, 2)]
TRIPLES = [(-2, -1, 0), (-1, 0, 1), (0, 1, 2)]


def columns(rows: Rows, same_place: bool = True) -> Attributes:
    inputs = list(zip(*(row[:-1] for row in rows), strict=True))
    out: Attributes = []
    for t in range(len(rows)):
        here = [_together("c0", inputs[0], t, offsets) for offsets in [*SINGLE, (-1, 0), (0, 1)]]
        for number, values in enumerate(inputs[1:], start=1):
            here += [_together(f"c{number}", values, t, offsets) for offsets in [*SINGLE, *PAIRS, *TRIPLES]]
        if same_place and len(inputs) > 2:
            here.append("c1|c2=" + "|".join(values[t] for values in inputs[1:]))
        out.append(here)
    out[0].append(FIRST)
    out[-1].append(LAST)
    return out


def shape(word: str) -> str:
    kinds = ["X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word]
    return re.sub(r"(.)\1+", r"\1", "".join(kinds))


def words(rows: Rows) -> Attributes:
    inputs = [row[0] for row in rows]
    made = [
        {"w": word, "l": word.lower(), "shape": shape(word)}
        | {f"p{n}": word[:n] for n in (1, 2, 3)}
        | {f"s{n}": word[-n:] for n in (1, 2, 3)}
        for word in inputs
    ]
    return _windows(made, ())


TESTS: dict[str, Callable[[str], bool]] = {
    "2d": lambda word: len(word) == 2 and word.isdigit(),
    "4d": lambda word: len(word) == 4 and word.isdigit(),
    "d&a": lambda word: _has(word, str.isdigit) and _has(word, str.isalpha),
    "up": lambda word: len(word) == 2 and word[0].isupper() and word[1] == ".",
    "iu": lambda word: word[:1].isupper(),
    "au": lambda word: word.isalpha() and word.isupper(),
    "al": lambda word: word.isalpha() and word.islower(),
    "ad": lambda word: word.isdigit(),
    "ao": lambda word: not _has(word, str.isalnum),
    "cu": lambda word: _has(word, str.isupper),
    "cl": lambda word: _has(word, str.islower),
    "ca": lambda word: _has(word, str.isalpha),
    "cd": lambda word: _has(word, str.isdigit),
    "cs": lambda word: _has(word, lambda c: not c.isalnum()),
} | {f"d&{mark}": lambda word, mark=mark: _has(word, str.isdigit) and mark in word for mark in "-/,."}


def _has(word: str, kind: Callable[[str], bool]) -> bool:
    return any(map(kind, word))


def _kind(word: str) -> str:
    kinds = {"AllUpper": str.isupper, "AllDigit": str.isdigit, "AllLetter": str.isalpha, "AllLower": str.islower}
    return next((name for name, test in kinds.items() if test(word)), "InitUpper" if word[:1].isupper() else "")


def entities(rows: Rows) -> Attributes:
    made = []
    for row in rows:
        word = row[0]
        long_shape = "".join("U" if c.isupper() else "L" if c.isalpha() else "D" if c.isdigit() else c for c in word)
        one = {"w": word.lower(), "shape": long_shape, "shaped": shape(word), "type": _kind(word)}
        one |= {f"p{n}": word[:n] for n in (1, 2, 3, 4) if len(word) >= n}
        one |= {f"s{n}": word[-n:] for n in (1, 2, 3, 4) if len(word) >= n}
        made.append(one | {name: "yes" for name, test in TESTS.items() if test(word)})
    return _windows(made, ("w", "shaped", "type"))


def _windows(made: list[dict[str, str]], paired: Sequence[str]) -> Attributes:
    out: Attributes = []
    for t in range(len(made)):
        here = [
            f"{name}[{offset}]={value}"
            for offset in WINDOW
            if 0 <= t + offset < len(made)
            for name, value in made[t + offset].items()
        ]
        for name in paired:
            values = [one.get(name, "") for one in made]
            here += [_together(name, values, t, offsets) for offsets in PAIRS]
        out.append(here)
    out[0].append(FIRST)
    out[-1].append(LAST)
    return out


class Bins:
    """Numbers by the tenth of the training data that they are in; what is no number stays as it is."""

    def __init__(self, sequences: Sequence[Rows], window: Sequence[int]):
        self._window = window
        values = list(zip(*(row[:-1] for rows in sequences for row in rows), strict=True))
        self._edges = [self._tenths(column) for column in values]

    @staticmethod
    def _tenths(column: Sequence[str]) -> list[float]:
        numbers = sorted(map(float, column))
        return sorted({numbers[len(numbers) * part // 10] for part in range(1, 10)})

    def __call__(self, rows: Rows) -> Attributes:
        made = [
            {f"c{number}": str(bisect_right(edges, float(row[number]))) for number, edges in enumerate(self._edges)}
            for row in rows
        ]
        return [
            [
                f"{name}[{offset}]={value}"
                for offset in self._window
                if 0 <= t + offset < len(made)
                for name, value in made[t + offset].items()
            ]
            for t in range(len(rows))
        ]


def tagged(rows: Rows, first: Callable[[Rows], Attributes] = words) -> Attributes:
    return [list(dict.fromkeys([*a, *b])) for a, b in zip(first(rows), columns(rows), strict=True)]


def tagged_entities(rows: Rows) -> Attributes:
    return tagged(rows, entities)


def symbols(rows: Rows, reach: int, longest: int) -> Attributes:
    """Values up to `reach` away, runs of 2 to `longest` values of each column, all columns at the position."""
    inputs = list(zip(*(row[:-1] for row in rows), strict=True))
    runs = [(offset,) for offset in range(-reach, reach + 1)]
    for length in range(2, longest + 1):
        runs += [tuple(range(begin, begin + length)) for begin in range(-3, 5 - length)]
    out = [
        [_together(f"c{number}", values, t, offsets) for number, values in enumerate(inputs) for offsets in runs]
        for t in range(len(rows))
    ]
    if len(inputs) > 1:
        for row, here in zip(rows, out, strict=True):
            here.append("all=" + "|".join(row[:-1]))
    elif all(len(value) == 1 for value in inputs[0]):
        scripts = [unicodedata.name(value, "none").split()[0] for value in inputs[0]]
        for t, here in enumerate(out):
            here += [_together("script", scripts, t, offsets) for offsets in [*SINGLE, *PAIRS]]
    return out


class Numbers:
    """Standardised values and tenths of columns of numbers, values of other columns, in a window."""

    def __init__(self, sequences: Sequence[Rows], reach: int):
        self._window = range(-reach, reach + 1)
        self._scales: dict[int, tuple[float, float, list[float]]] = {}  # mean, deviation, edges
        for number, column in enumerate(zip(*(row[:-1] for rows in sequences for row in rows), strict=True)):
            try:
                values = [float(value) for value in column]
            except ValueError:
                continue
            mean = sum(values) / len(values)
            deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
            self._scales[number] = mean, deviation or 1.0, Bins._tenths(column)

    def __call__(self, rows: Rows) -> list[dict[str, float]]:
        made = [self._at(row) for row in rows]
        return [
            {
                f"{name}[{offset}]": value
                for offset in self._window
                if 0 <= t + offset < len(made)
                for name, value in made[t + offset].items()
            }
            for t in range(len(rows))
        ]

    def _at(self, row: list[str]) -> dict[str, float]:
        out = {}
        for number, value in enumerate(row[:-1]):
            if number in self._scales:
                mean, deviation, edges = self._scales[number]
                out[f"v{number}"] = max(-5.0, min(5.0, (float(value) - mean) / deviation))
                out[f"b{number}={bisect_right(edges, float(value))}"] = 1.0
            else:
                out[f"c{number}={value}"] = 1.0
        return out


def given(rows: Rows) -> Attributes:
    return [row[:-1] for row in rows]


PLAIN: dict[str, Callable[[Rows], Attributes]] = {
    "columns": columns,
    "words": words,
    "entities": entities,
    "tagged": tagged,
    "tagged_entities": tagged_entities,
    "symbols3": partial(symbols, reach=3, longest=2),
    "symbols5": partial(symbols, reach=5, longest=3),
    "given": given,
}


def maker(kind: str, training: Sequence[Rows]) -> Callable[[Rows], Attributes | list[dict[str, float]]]:
    """What turns sequences into attributes of a kind."""
    if kind.startswith("bins"):
        return Bins(training, WINDOW if kind == "bins5" else (0,))
    if kind.startswith("numbers"):
        return Numbers(training, int(kind.removeprefix("numbers")))
    return PLAIN[kind]
