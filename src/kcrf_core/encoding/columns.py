"""Columns of a corpus as distinct values or as numbers, each worked out once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ..corpora import CodedColumn, Corpus, NumberColumn, parse_weight
from ..errors import DataError

# A column of numbers with a few words in it is far more often a mistake than a vocabulary.
MOSTLY_NUMBERS = 0.95

# What people write where a measurement is missing. It becomes the column's mean, and training says how many there are.
MISSING = frozenset({"NA", "?", "_"})

_NUMBER_CHARACTERS = frozenset("0123456789+-.eE")


class Columns:
    """Columns of a corpus by their distinct values, each worked out once."""

    def __init__(self, corpus: Corpus):
        self.corpus = corpus
        self._distinct: dict[int, tuple[list[str], np.ndarray]] = {}
        self._numbers: dict[int, np.ndarray | None] = {}
        # Numbers of a feature, by its name, that its own positions must not get from the fitted feature.
        self.held_out: dict[str, np.ndarray] = {}
        self._derived: dict[tuple[Hashable, ...], tuple[object, np.ndarray]] = {}

    def distinct(self, column: int) -> tuple[list[str], np.ndarray]:
        """Distinct values in order of appearance, and for each position the number of its value [N]."""
        if column not in self._distinct:
            values = self.corpus.columns[column]
            coded = CodedColumn.of(values)
            self._distinct[column] = (coded.values, coded.codes)
        return self._distinct[column]

    def numbers(self, column: int) -> np.ndarray | None:
        """The column as finite numbers [N], NaN where one is missing, or None where it is no such column."""
        values = self.corpus.columns[column]
        if isinstance(values, NumberColumn):
            return values.numbers
        if column not in self._numbers:
            distinct, inverse = self.distinct(column)
            missing = np.array([value in MISSING for value in distinct], dtype=bool)
            known = _finite_numbers([value for value in distinct if value not in MISSING])
            numbers = None
            if known is not None:
                spread = np.full(len(distinct), np.nan)
                spread[~missing] = known
                numbers = spread[inverse]
            self._numbers[column] = numbers
        return self._numbers[column]

    def once(self, key: tuple[Hashable, ...], owner: object, work: Callable[[], np.ndarray]) -> np.ndarray:
        """What `work` gives, the same array for every call with the same key and owner."""
        known = self._derived.get((*key, id(owner)))
        if known is None:
            known = self._derived[(*key, id(owner))] = (owner, work())  # kept alive: its id stays its own
        return known[1]

    def real(self, column: int, name: str) -> np.ndarray:
        """The column as numbers; an error names the first line that is none."""
        numbers = self.numbers(column)
        if numbers is None:
            words, inverse = self._is_word(column), self.distinct(column)[1]
            t = int(words[inverse].argmax())
            raise DataError(
                f"'{self.corpus.columns[column][t]}' in column {column + 1} ({name}) is not a finite number; "
                "correct it, or declare the column with 'type: categorical'",
                self.corpus.source,
                int(self.corpus.lines[t]),
            )
        return numbers

    def looks_real(self, column: int, name: str) -> bool:
        """Whether a column without a declared type holds numbers."""
        numbers = self.numbers(column)
        if numbers is not None:
            return not np.isnan(numbers).all()
        words = self._is_word(column)[self.distinct(column)[1]].sum()
        if words <= (1 - MOSTLY_NUMBERS) * self.corpus.positions:
            self.real(column, name)  # raises, with the line
        return False

    def _is_word(self, column: int) -> np.ndarray:
        """Which of the distinct values are neither numbers nor missing, [V]."""
        values = self.distinct(column)[0]
        return np.array([value not in MISSING and not _is_finite_number(value) for value in values], dtype=bool)


def _is_finite_number(value: str) -> bool:
    return _NUMBER_CHARACTERS.issuperset(value) and _finite_numbers([value]) is not None


def _finite_numbers(values: Sequence[str]) -> np.ndarray | None:
    # The set of characters keeps out what float() would take: nan, inf, 1_000, digits of other scripts.
    if not _NUMBER_CHARACTERS.issuperset("".join(values)):
        return None
    try:
        numbers = np.fromiter(map(float, values), np.float64, len(values))
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


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
