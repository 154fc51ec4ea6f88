"""Columns that features are fitted to and encoded from, by their distinct values or as numbers."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..errors import DataError
from ..system import Remark
from .corpus import Corpus
from .layout import MISSING
from .tables import LACKING, NUMBER, WORD, CategoryColumn, CodedColumn, ColumnList, NumberColumn

# A column of numbers with a few words in it is far more often a mistake than a vocabulary.
MOSTLY_NUMBERS = 0.95

# But up to so many distinct values, each so often on average, are categories that have numbers as names.
FEW_VALUES = 20
OFTEN = 10

# So many sequences with a value of their own each, or steps that all go up, are no chance.
MANY_SEQUENCES = 10
MANY_STEPS = 30
LONG_RUN = 10  # rows, mean length of runs of a value that names them

_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_WEIGHT = re.compile(r"[0-9.eE+-]+")
_DATE = r"\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?[./]\d\d?[./]\d{4}"
_CLOCK = r"([01]?\d|2[0-4]):[0-5]\d(:[0-6]\d([.,]\d+)?)?( ?[AaPp][Mm])?(Z|[+-]\d\d:?\d\d)?"
_TIME = re.compile(rf"({_DATE})([T ]{_CLOCK})?|{_CLOCK}", re.ASCII)

Encode = Callable[[list[str]], np.ndarray]  # codes [V] int32 of distinct values


class TrainingColumns(ABC):
    """Columns that features are fitted to: those of a corpus, or of one on disk that is read in parts."""

    corpus: Corpus  # all of it, or one sequence for what all have in common
    warnings: list[str]  # about likely mistakes

    @property
    @abstractmethod
    def parts(self) -> Iterable[Columns]:
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
        if column in self.corpus.categorical:
            return False
        found = self.has_numbers(column)
        if found is False:
            empty = f"warning: column {name} has no values: all are missing; leave it out by 'ignore'"
            self.warnings.append(Remark(empty, settings=["ignore"]))
        if found is not None:
            return found
        (values, counts), kinds = self.value_counts(column), self.kinds(column)
        words = int(counts[kinds == WORD].sum())
        few = len(values) <= FEW_VALUES and self.positions >= OFTEN * len(values)
        if words <= (1 - MOSTLY_NUMBERS) * self.positions and not few:
            for part in self.parts:
                part.real(column, name)  # raises at the first word, with its line
        there, numbers = int(counts[kinds != LACKING].sum()), int(counts[kinds == NUMBER].sum())
        commas = np.array([_DECIMAL_COMMA.fullmatch(value) is not None for value in values], dtype=bool)
        if 2 * (numbers + int(counts[commas].sum())) > there:
            odd = values[int((kinds == WORD).argmax())]
            place = self.first_line(column, odd)
            assert place is not None
            odd, taken = f"'{odd}' in line {place[1]}", f"column {name} is taken for {len(values):,} categories"
            settings: list[str] = []
            remedy = f"numbers such as {odd} need a point in the place of the comma"
            if 2 * numbers > there:
                settings = ["missing"]
                remedy = (
                    f"{numbers:,} of {there:,} values are numbers, but {odd} is not; name it as 'missing' if it "
                    "stands for a missing value, or declare 'type: categorical'"
                )
            self.warnings.append(Remark(f"warning: {taken}: {remedy}", settings=settings))
        return False

    def identifier(self, column: int) -> str | None:
        """Return a sentence about a column that counts rows, tells the time, or names sequences or subjects.

        It looks at the first part.
        """
        part = next(iter(self.parts))
        numbers, offsets = part.numbers(column), part.corpus.offsets
        values = part.coded(column).codes if numbers is None else numbers
        with np.errstate(over="ignore"):
            steps, first = np.diff(values), values[offsets[:-1]]
        within = np.delete(steps, offsets[1:-1] - 1)  # steps between neighbours in a sequence
        if not within.any():  # the same throughout each sequence
            if len(first) >= MANY_SEQUENCES and len(values) > len(first) == len(np.unique(first)):
                return "has a value of its own in each sequence"
        else:
            grows = np.count_nonzero(steps) >= MANY_STEPS and bool((steps >= 0).all())
            if grows and numbers is None:  # codes are in the order of their first appearance
                words = part.coded(column).values
                grows = all(before < after for before, after in pairwise(words))
            if grows:
                return "only ever grows, as time stamps and row numbers do"
            rises = np.count_nonzero(within) if numbers is not None and (within >= 0).all() else 0
            if rises >= MANY_STEPS and rises > len(first):  # a mark that is set once in a sequence rises once
                return "only grows within sequences, as time stamps and row numbers do"
        shown = part.times_shown(column) if numbers is None else None
        if shown is not None:
            return f"holds times or dates, as {shown}"
        runs = np.count_nonzero(steps) + 1
        if 1 < runs == len(np.unique(values)) <= len(values) / LONG_RUN:
            return f"has {runs:,} values, each in one run of rows, as names of sequences and subjects do"
        return None

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
        fitting: bool = False,  # else the meaning of the columns is known
    ):
        self.corpus, self.missing, self._fitting = corpus, missing, fitting
        self._coded: dict[int, CodedColumn] = {}
        self.warnings: list[str] = []
        self._derived: dict[tuple[Hashable, ...], tuple[object, Any]] = {}

    @property
    def parts(self) -> Iterable[Columns]:
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

    def looks_real(self, column: int, name: str) -> bool:
        return not isinstance(self.corpus.columns[column], CategoryColumn) and super().looks_real(column, name)

    def has_numbers(self, column: int) -> bool | None:
        numbers = self.numbers(column)
        return None if numbers is None else not np.isnan(numbers).all()

    def kinds(self, column: int) -> np.ndarray:
        return self.coded(column).distinct_numbers(self.missing)[1]

    def times_shown(self, column: int) -> str | None:
        """Return the first value of a column of times or dates as text; None if some value is none or all are equal."""
        values = [value for value in self.coded(column).values if value not in self.missing]
        if len(values) < 2 or not all(map(_TIME.fullmatch, values)):
            return None
        return values[0]

    def coded(self, column: int) -> CodedColumn:
        """Return a column by its distinct values."""
        if column not in self._coded:
            self._coded[column] = CodedColumn.of(self.corpus.columns[column])
        return self._coded[column]

    def distinct(self, column: int) -> tuple[list[str], np.ndarray]:
        """Return distinct values in order of appearance, and for each position the number of its value [N]."""
        return self.coded(column).values, self.coded(column).codes

    def codes(self, column: int, key: tuple[Hashable, ...], owner: object, encode: Encode) -> np.ndarray:
        """Return what `encode` makes of the value of each position, [N]; key and owner stand for the function."""
        place = (column, *key, id(owner))
        if place not in self._derived:
            table, numbers = self.value_codes(column, place[1:], encode)
            self._derived[place] = owner, table[numbers]  # the owner is kept alive: its id stays its own
        return self._derived[place][1]

    def value_codes(self, column: int, key: tuple[Hashable, ...], encode: Encode) -> tuple[np.ndarray, np.ndarray]:
        """Return codes of distinct values, [V] int32, and for each position the number of its value [N]."""
        values, inverse = self.distinct(column)
        return encode(values), inverse

    def once(self, key: tuple[Hashable, ...], owner: object, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, the same object for every call with the same key and owner."""
        place = (*key, id(owner))
        if place not in self._derived:
            self._derived[place] = owner, work()
        return self._derived[place][1]

    def numbers(self, column: int) -> np.ndarray | None:
        """Return the column as finite numbers [N], NaN where one is missing, or None where it has words."""
        values = self.corpus.columns[column]
        return values.numbers if isinstance(values, NumberColumn) else self.coded(column).numbers(self.missing)

    def real_rows(self, columns: Sequence[int], names: Sequence[str]) -> np.ndarray:
        """Return columns as numbers, [N, len(columns)]; an error names the first line that has none."""
        if isinstance(self.corpus.columns, ColumnList):
            found = self.corpus.columns.number_rows(columns, self.missing)
            if found is not None:
                return found
        out = np.empty((self.corpus.positions, len(columns)))
        for r, (column, name) in enumerate(zip(columns, names, strict=True)):
            out[:, r] = self.real(column, name)
        return out

    def real(self, column: int, name: str) -> np.ndarray:
        """Return the column as numbers; an error names the first line that has none."""
        numbers = self.numbers(column)
        if numbers is None:
            words = (self.kinds(column) == WORD)[self.coded(column).codes]  # [N]
            t = int(words.argmax())
            settings: list[str] = []
            if not self._fitting:
                known = ", ".join(mark for mark in self.missing if mark) or "no text"
                remedy = f"correct it ({known} would stand for a missing value)"
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


def parse_weight(text: str, title: str, name: str, line: int) -> float:
    """Return the weight of a sequence, a finite number that is not negative; `title` names it in messages."""
    try:
        weight = float(text) if _WEIGHT.fullmatch(text) else np.nan
    except ValueError:
        weight = np.nan
    if not 0 <= weight < np.inf:
        raise DataError(f"{title} {text!r} is not a finite number >= 0, such as 2.5", name, line)
    return weight


def position_weights(columns: Columns, column: int, title: str) -> np.ndarray | None:
    """Return the weight of the sequence of each position, [N]; None: all are 1.

    They are those of a column or, if that is -1, of the corpus.
    """
    weights = columns.corpus.weights if column < 0 else column_weights(columns, column, title)
    return None if weights is None else np.repeat(weights, np.diff(columns.corpus.offsets))


def column_weights(columns: Columns, column: int, title: str) -> np.ndarray:
    """Return the weights [S] of sequences that a column has."""
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
        values[code] = parse_weight(distinct[code], f"the weight in column '{title}'", corpus.source, line)
    return values[inverse[first]]
