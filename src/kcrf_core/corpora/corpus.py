"""A corpus: labelled or unlabelled sequences as they stand in a file, before any encoding.

Formats produce it, encoding consumes it. Values are kept column by column, since
everything downstream works on whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# Formats of files that can stand in the place of a corpus that never was one: with columns, and with attributes.
COLUMN_FORMAT = "conll"
ATTRIBUTE_FORMAT = "crfsuite"

# Pairs of labels are held in dense tables: training has several, which take some gigabytes then, and evaluation one.
# No task has so many labels, but words have that are read as labels.
MOST_LABELS = 5_000


class CodedColumn(Sequence[str]):
    """A column as its distinct values and, for each position, the number of its value."""

    def __init__(self, values: list[str], codes: np.ndarray):
        self.values = values  # [V] in order of first appearance, or labels of a model, which it may not all have
        self.codes = codes  # [N] int32

    @classmethod
    def of(cls, values: Sequence[str]) -> CodedColumn:
        """A column of any values."""
        if isinstance(values, cls):
            return values
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        return cls(list(numbers), np.fromiter(map(numbers.__getitem__, values), np.int32, len(values)))

    def present(self) -> set[str]:
        """The values that some position has."""
        counts = np.bincount(self.codes, minlength=len(self.values))
        return {value for value, count in zip(self.values, counts.tolist(), strict=True) if count}

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self.values[code] for code in self.codes[place].tolist()]
        return self.values[self.codes[place]]

    def __iter__(self) -> Iterator[str]:
        return map(self.values.__getitem__, self.codes.tolist())

    def take(self, rows: np.ndarray) -> CodedColumn:
        """The values of some positions."""
        present, first, codes = np.unique(self.codes[rows], return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return CodedColumn([self.values[code] for code in present[order].tolist()], rank[codes.ravel()])

    @classmethod
    def joined(cls, parts: Sequence[CodedColumn]) -> CodedColumn:
        """One column out of consecutive parts."""
        numbers: dict[str, int] = {}
        codes = []
        for part in parts:
            known = [numbers.setdefault(value, len(numbers)) for value in part.values]
            codes.append(np.array(known, dtype=np.int32)[part.codes])
        return cls(list(numbers), np.concatenate(codes))


class NumberColumn(Sequence[str]):
    """A column of numbers that never were text; as text they are written so that they can be read back exactly."""

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers  # [N] float64, finite

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(map(repr, self.numbers[place].tolist()))
        return repr(float(self.numbers[place]))

    def take(self, rows: np.ndarray) -> NumberColumn:
        """The values of some positions."""
        return NumberColumn(self.numbers[rows])


@dataclass(frozen=True)
class AttributeRows:
    """Attributes of N positions, in compressed rows: those of position t are `names[indptr[t]:indptr[t+1]]`."""

    indptr: np.ndarray  # [N+1] int64
    names: list[str]  # [nnz]
    values: np.ndarray  # [nnz] float64


@dataclass(frozen=True)
class Corpus:
    """S sequences with N positions in all, read from one file.

    Files of columns fill `columns` (all of them, the label's included when there is one), those whose format has names
    for columns with what is asked for; attribute files fill `attributes` and have the labels as their only column.

    >>> from kcrf_core import read_corpus
    >>> first = read_corpus("sample_data/pitch_accent.conll").subset([0])
    >>> list(first.columns[0])[:3], list(first.columns[-1])[:3]
    (['but', 'it', 'like'], ['0', '1', '0'])
    """

    source: str  # the name to show in messages
    columns: tuple[Sequence[str], ...]  # each of N values
    offsets: np.ndarray  # [S+1] int64, sequence s is positions offsets[s]:offsets[s+1]
    lines: np.ndarray  # [N] int64, line number of each position in the source, from 1
    weights: np.ndarray | None = None  # [S] float64, or None for all ones
    attributes: AttributeRows | None = None
    names: tuple[str, ...] | None = None  # of the columns, where the format has names for them
    file_format: str | None = None  # of the file that it was read from; None for one that never was a file
    # Rows [N, width] of floating-point numbers by name, which may be mapped from files; all finite.
    vectors: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def format(self) -> str:
        """The format of the file that it came from, or of one that could hold it."""
        return self.file_format or (COLUMN_FORMAT if self.attributes is None else ATTRIBUTE_FORMAT)

    @property
    def positions(self) -> int:
        return len(self.lines)

    @property
    def sequences(self) -> int:
        return len(self.offsets) - 1

    @property
    def width(self) -> int:
        """Number of columns, the label's included."""
        return len(self.columns)

    def subset(self, which: Sequence[int] | np.ndarray) -> Corpus:
        """The sequences numbered `which`, in that order."""
        which = np.asarray(which, dtype=np.int64)
        rows = sequence_rows(self.offsets, which)
        lengths = (self.offsets[1:] - self.offsets[:-1])[which]
        return replace(
            self,
            columns=tuple(_column_subset(column, rows) for column in self.columns),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            lines=self.lines[rows],
            weights=None if self.weights is None else self.weights[which],
            attributes=None if self.attributes is None else _attribute_subset(self.attributes, rows),
            vectors={name: array[rows] for name, array in self.vectors.items()},
        )


def complete_sequences(labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Which sequences have all their labels, [S] bool."""
    hidden = np.concatenate([[0], np.cumsum(labels < 0)])
    return hidden[offsets[1:]] == hidden[offsets[:-1]]


def sequence_rows(offsets: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Positions of the sequences numbered `which`, in that order."""
    starts, lengths = offsets[:-1][which], (offsets[1:] - offsets[:-1])[which]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)


def concatenate(parts: Iterable[Corpus]) -> Corpus:
    """One corpus out of consecutive parts of the same file."""
    parts = list(parts)
    parts = [part for part in parts if part.positions] or parts[:1]  # blank lines alone have no columns yet
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    weights = None
    if any(part.weights is not None for part in parts):
        weights = np.concatenate([np.ones(part.sequences) if part.weights is None else part.weights for part in parts])
    attributes = None
    if parts[0].attributes is not None:
        counts = np.concatenate([np.diff(part.attributes.indptr) for part in parts])
        attributes = AttributeRows(
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            names=[name for part in parts for name in part.attributes.names],
            values=np.concatenate([part.attributes.values for part in parts]),
        )
    return replace(
        parts[0],
        columns=tuple(_joined([part.columns[c] for part in parts]) for c in range(parts[0].width)),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        lines=np.concatenate([part.lines for part in parts]),
        weights=weights,
        attributes=attributes,
        vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in parts[0].vectors},
    )


def _column_subset(column: Sequence[str], rows: np.ndarray) -> Sequence[str]:
    return column.take(rows) if isinstance(column, CodedColumn | NumberColumn) else [column[t] for t in rows.tolist()]


def _joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    if all(isinstance(part, CodedColumn) for part in parts):
        return CodedColumn.joined(parts)
    return [value for part in parts for value in part]


def _attribute_subset(attributes: AttributeRows, rows: np.ndarray) -> AttributeRows:
    counts = np.diff(attributes.indptr)[rows]
    entries = sequence_rows(attributes.indptr, rows)
    return AttributeRows(
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        names=[attributes.names[i] for i in entries.tolist()],
        values=attributes.values[entries],
    )
