"""Columns of a corpus as distinct values or as numbers, each worked out once."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..corpora import LACKING, MISSING, NUMBER, WORD, CodedColumn, Corpus, NumberColumn, parse_weight
from ..errors import DataError
from .seen_values import SeenValues

# A column of numbers with a few words in it is far more often a mistake than a vocabulary.
MOSTLY_NUMBERS = 0.95

# Fewer rows than this can begin with a word and go on with numbers by chance.
ROWS_BELOW_A_HEADER = 10

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")


class TrainingColumns(ABC):
    """Columns that features are fitted to: those of a corpus, or of one on disk that is gone through in parts."""

    corpus: Corpus  # all of it, or a little of it for what all have in common
    warnings: list[str]  # about likely mistakes

    @property
    @abstractmethod
    def parts(self) -> Sequence[Columns]:
        """All data in parts, made anew each time."""

    @property
    @abstractmethod
    def positions(self) -> int:
        """Number of positions of all data."""

    @abstractmethod
    def value_counts(self, column: int) -> tuple[list[str], np.ndarray]:
        """Return distinct values in order of appearance, and the count of each [V]."""

    @abstractmethod
    def attribute_counts(self) -> tuple[Sequence[str], np.ndarray]:
        """Return names of attributes, and the count of each."""

    @abstractmethod
    def has_numbers(self, column: int) -> bool | None:
        """Return True for a column of numbers, False if all of them are missing, None if it has words."""

    @abstractmethod
    def kinds(self, column: int) -> np.ndarray:
        """Return the kind of each distinct value, [V]: a number, missing or a word."""

    def looks_real(self, column: int, name: str) -> bool:
        """Return True if a column without a declared type holds numbers."""
        found = self.has_numbers(column)
        if found is not None:
            return found
        (values, counts), kinds = self.value_counts(column), self.kinds(column)
        words = int(counts[kinds == WORD].sum())
        # A column of numbers may have its name above them.
        headed = self.corpus.header is None and kinds[0] == WORD and words == 1 and self.positions > ROWS_BELOW_A_HEADER
        if words <= (1 - MOSTLY_NUMBERS) * self.positions or headed:
            for part in self.parts:
                part.real(column, name)  # raises at the first word, with its line
        # Finding a line goes through the data.
        if (kinds == NUMBER).any() or mixed_warnings("", values, counts, kinds, ""):
            odd = values[int((kinds == WORD).argmax())]
            place = self.first_line(column, odd)
            assert place is not None
            self.warnings += mixed_warnings(name, values, counts, kinds, f"'{odd}' in line {place[1]}")
        return False

    def first_line(self, column: int, value: str) -> tuple[str, int] | None:
        """Return the source and the line where a column first has a value; None where it has not."""
        found = (part.first_line(column, value) for part in self.parts)
        return next((place for place in found if place is not None), None)


class Columns(TrainingColumns):
    """Columns of a corpus by their distinct values, each worked out once."""

    def __init__(
        self,
        corpus: Corpus,
        missing: tuple[str, ...] = MISSING,
        fitting: bool = False,
        seen: Mapping[int, SeenValues] | None = None,  # by column, where an encoding has met values before
    ):
        self.corpus, self.missing, self._seen = corpus, missing, seen
        self._fitting = fitting  # else what the columns mean has been settled
        self._numbers: dict[int, np.ndarray] = {}
        self._coded: dict[int, CodedColumn] = {}
        self._kinds: dict[int, np.ndarray] = {}
        self.warnings: list[str] = []
        # Numbers of a feature, by its name, that its own positions must not get from the fitted feature.
        self.held_out: dict[str, np.ndarray] = {}
        self._derived: dict[tuple[Hashable, ...], tuple[object, Any]] = {}

    @property
    def parts(self) -> Sequence[Columns]:
        return [self]

    @property
    def positions(self) -> int:
        return self.corpus.positions

    def value_counts(self, column: int) -> tuple[list[str], np.ndarray]:
        values, inverse = self.distinct(column)
        return values, np.bincount(inverse, minlength=len(values))

    def attribute_counts(self) -> tuple[Sequence[str], np.ndarray]:
        assert self.corpus.attributes is not None
        names = CodedColumn.of(self.corpus.attributes.names)
        return names.values, np.bincount(names.codes, minlength=len(names.values))

    def has_numbers(self, column: int) -> bool | None:
        numbers = self.numbers(column)
        return None if numbers is None else not np.isnan(numbers).all()

    def kinds(self, column: int) -> np.ndarray:
        if column not in self._kinds:
            self._kinds[column] = self.coded(column).distinct_numbers(self.missing)[1]
        return self._kinds[column]

    def coded(self, column: int) -> CodedColumn:
        if column not in self._coded:
            self._coded[column] = CodedColumn.of(self.corpus.columns[column])
        return self._coded[column]

    def distinct(self, column: int) -> tuple[list[str], np.ndarray]:
        """Distinct values in order of appearance, and for each position the number of its value [N]."""
        coded = self.coded(column)
        return coded.values, coded.codes

    def codes(
        self, column: int, key: tuple[Hashable, ...], encode: Callable[[list[str]], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `encode` makes of the distinct values, [V] int32, and for each position the number of its value [N].

        The same key stands for the same function.
        """
        values, inverse = self.distinct(column)
        if self._seen is None:
            return encode(values), inverse
        if column not in self._numbers:
            self._numbers[column] = self._seen[column].numbers(values)
        return self._seen[column].codes(key, values, self._numbers[column], encode), inverse

    def numbers(self, column: int) -> np.ndarray | None:
        """The column as finite numbers [N], NaN where one is missing, or None where it is no such column."""
        values = self.corpus.columns[column]
        return values.numbers if isinstance(values, NumberColumn) else self.coded(column).numbers(self.missing)

    def once(self, key: tuple[Hashable, ...], owner: object, work: Callable[[], Any]) -> Any:
        """What `work` gives, the same object for every call with the same key and owner."""
        place = (*key, id(owner))
        known = self._derived.get(place)
        if known is None:
            known = self._derived[place] = (owner, work())  # kept alive: its id stays its own
        return known[1]

    def real_rows(self, columns: Sequence[int], names: Sequence[str]) -> np.ndarray:
        """Columns as numbers, [N, len(columns)]; an error names the first line that has none."""
        at_once = getattr(self.corpus.columns, "number_rows", None)
        if at_once is not None and (found := at_once(columns, self.missing)) is not None:
            return found
        out = np.empty((self.corpus.positions, len(columns)))
        for r, (column, name) in enumerate(zip(columns, names, strict=True)):
            out[:, r] = self.real(column, name)
        return out

    def real(self, column: int, name: str) -> np.ndarray:
        """The column as numbers; an error names the first line that has none."""
        numbers = self.numbers(column)
        if numbers is None:
            words = self._words(column)
            t = int(words.argmax())
            settings: list[str] = []
            if not self._fitting:
                known = ", ".join(mark for mark in self.missing if mark) or "no text"
                remedy = f"correct it ({known} would stand for a missing value)"
            elif self._headed(words):
                remedy, settings = "say so if the line is a header with names", ["header"]
            else:
                remedy, settings = "correct it, name it as 'missing' if it stands for a missing value", ["missing"]
            if self._fitting:
                remedy += ", or declare the column with 'type: categorical'"
            raise DataError(
                f"'{self.corpus.columns[column][t]}' in column {column + 1} ({name}) is not a finite number; {remedy}",
                self.corpus.source,
                int(self.corpus.lines[t]),
                settings=settings,
            )
        return numbers

    def first_line(self, column: int, value: str) -> tuple[str, int] | None:
        values, codes = self.distinct(column)
        if value not in values:
            return None
        t = int((codes == values.index(value)).argmax())
        return self.corpus.source, int(self.corpus.lines[t])

    def _words(self, column: int) -> np.ndarray:
        """Return a mask of positions whose value is neither a number nor missing, [N]."""
        return (self.kinds(column) == WORD)[self.coded(column).codes]

    def _headed(self, words: np.ndarray) -> bool:
        """Return True if a column looks like one of numbers with its name above them."""
        first_line = self.corpus.header is None and len(words) > 0 and bool(words[0])
        return first_line and len(words) > ROWS_BELOW_A_HEADER and not words[1:].any()


def mixed_warnings(name: str, values: Sequence[str], counts: np.ndarray, kinds: np.ndarray, odd: str) -> list[str]:
    """What to say of a column that is taken for categories although most of it are numbers; `odd` is one that is none.

    Its distinct values [V] come so often, and are numbers, missing or words.
    """
    there, numbers = int(counts[kinds != LACKING].sum()), int(counts[kinds == NUMBER].sum())
    taken = f"warning: column {name} is taken for {len(values):,} categories"
    if 2 * numbers > there:
        return [
            f"{taken}: {numbers:,} of {there:,} values are numbers, but {odd} is not; name it as 'missing' if it "
            "stands for a missing value, or declare 'type: categorical'"
        ]
    commas = np.array([_DECIMAL_COMMA.fullmatch(value) is not None for value in values], dtype=bool)
    if 2 * (numbers + int(counts[commas].sum())) > there:
        return [f"{taken}: numbers such as {odd} need a point in the place of the comma"]
    return []


def column_weights(columns: Columns, column: int, title: str) -> np.ndarray:
    """Weights [S] of sequences, from a column."""
    corpus = columns.corpus
    if corpus.weights is not None:
        raise DataError(f"weights both by lines and by the column '{title}': leave out one of them", corpus.source)
    distinct, inverse = columns.distinct(column)
    first = corpus.offsets[:-1]
    changes = np.flatnonzero(inverse != np.repeat(inverse[first], np.diff(corpus.offsets)))
    if len(changes):
        message = f"the weight in column '{title}' changes inside a sequence"
        raise DataError(message, corpus.source, int(corpus.lines[changes[0]]))
    lines = {int(code): int(line) for code, line in zip(inverse[first][::-1], corpus.lines[first][::-1], strict=True)}
    values = np.zeros(len(distinct))
    for code, line in lines.items():
        values[code] = parse_weight(distinct[code], f"the weight in column '{title}'", "2.5", corpus.source, line)
    return values[inverse[first]]
