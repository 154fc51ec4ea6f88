"""A corpus: labelled or unlabelled sequences as they stand in a file, before any encoding.

Formats produce it, encoding consumes it. Values are kept column by column, since
everything downstream works on whole columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..system import Workers, piece_rows, sequence_rows
from .layout import MISSING
from .tables import (
    Cells,
    CodedColumn,
    ColumnBuilder,
    ColumnSpan,
    NumberColumn,
    Table,
    TableBuilder,
    build_columns,
    joined_columns,
)

# Formats of files that can stand in the place of a corpus that never was one: with columns, and with attributes.
COLUMN_FORMAT = "conll"
ATTRIBUTE_FORMAT = "crfsuite"

# Pairs of labels are held in dense tables: training has several, which take some gigabytes then, and evaluation one.
# No task has so many labels, but words have that are read as labels.
MOST_LABELS = 5_000


@dataclass(frozen=True)
class AttributeRows:
    """Attributes of N positions, in compressed rows: those of position t are `names[indptr[t]:indptr[t+1]]`."""

    indptr: np.ndarray  # [N+1] int64
    names: Sequence[str]  # [nnz]
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
    columns: Sequence[Sequence[str]]  # each of N values; a tuple, or what they become where they were read from a file
    offsets: np.ndarray  # [S+1] int64, sequence s is positions offsets[s]:offsets[s+1]
    lines: np.ndarray  # [N] int64, line number of each position in the source, from 1
    weights: np.ndarray | None = None  # [S] float64, or None for all ones
    attributes: AttributeRows | None = None
    names: tuple[str, ...] | None = None  # of the columns, where the format has names for them
    file_format: str | None = None  # of the file that it was read from; None for one that never was a file
    header: tuple[str, ...] | None = None  # names of the columns that stand in the first line of the file
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

    def span(self, first: int, last: int) -> Corpus:
        """The sequences first:last, whose values are copied when they are asked for."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        return replace(
            self,
            columns=tuple(_column_span(column, rows) for column in self.columns),
            offsets=self.offsets[first : last + 1] - rows.start,
            lines=self.lines[rows],
            weights=None if self.weights is None else self.weights[first:last],
            attributes=None if self.attributes is None else _attribute_span(self.attributes, rows),
            vectors={name: array[rows] for name, array in self.vectors.items()},
        )

    def subset(self, which: Sequence[int] | np.ndarray) -> Corpus:
        """The sequences numbered `which`, in that order."""
        which = np.asarray(which, dtype=np.int64)
        return self.pieces(self.offsets[which], self.offsets[which + 1], which)

    def pieces(self, first: np.ndarray, last: np.ndarray, which: np.ndarray) -> Corpus:
        """Positions first:last of pieces of the sequences numbered `which`, [P] all; each becomes a sequence."""
        rows = piece_rows(first, last)
        return replace(
            self,
            columns=tuple(_column_subset(column, rows) for column in self.columns),
            offsets=np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64),
            lines=self.lines[rows],
            weights=None if self.weights is None else self.weights[which],
            attributes=None if self.attributes is None else _attribute_subset(self.attributes, rows),
            vectors={name: array[rows] for name, array in self.vectors.items()},
        )


class CorpusBuilder:
    """One corpus out of consecutive parts of the same file: what must be done in order is done as they come."""

    def __init__(self) -> None:
        self._parts: list[Corpus] = []
        self._table: TableBuilder | None = None
        self._names: ColumnBuilder | None = None

    def add(self, part: Corpus) -> None:
        """Take one more part; one of blank lines alone has no columns yet, and is left out if others have."""
        if not part.positions:
            self._parts = self._parts or [part]
            return
        if self._parts and not self._parts[0].positions:
            self._parts = []
        columns, attributes = part.columns, part.attributes
        if isinstance(columns, Cells):
            columns = packed(part).columns
        if isinstance(columns, Table):
            self._table = self._table or TableBuilder()
            self._table.add(columns)
            columns = ()
        if attributes is not None:
            self._names = self._names or ColumnBuilder()
            self._names.add(CodedColumn.of(attributes.names).packed())
            attributes = replace(attributes, names=())
        self._parts.append(replace(part, columns=columns, attributes=attributes))

    def corpus(self, workers: Workers | None = None) -> Corpus:
        parts = self._parts
        if not parts[0].positions:
            return parts[0]
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        weights = None
        if any(part.weights is not None for part in parts):
            ones = [np.ones(part.sequences) if part.weights is None else part.weights for part in parts]
            weights = np.concatenate(ones)
        if self._table is not None:
            columns: Sequence[Sequence[str]] = self._table.table(workers)
        else:
            columns = tuple(_joined([part.columns[c] for part in parts]) for c in range(parts[0].width))
        return replace(
            parts[0],
            columns=columns,
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            lines=np.concatenate([part.lines for part in parts]),
            weights=weights,
            attributes=self._attributes(workers),
            vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in parts[0].vectors},
        )

    def _attributes(self, workers: Workers | None) -> AttributeRows | None:
        if self._names is None:
            return None
        rows = [part.attributes for part in self._parts if part.attributes is not None]
        counts = np.concatenate([np.diff(part.indptr) for part in rows])
        return AttributeRows(
            indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            names=build_columns([self._names], workers)[0],
            values=joined_values([part.values for part in rows]),
        )


def packed(part: Corpus, missing: tuple[str, ...] = MISSING) -> Corpus:
    """The same corpus without the bytes that its values stand in."""
    if not isinstance(part.columns, Cells) or not part.positions:
        return part
    return replace(part, columns=part.columns.packed(missing, part.names is None and part.attributes is None))


def concatenate(parts: Iterable[Corpus]) -> Corpus:
    """One corpus out of consecutive parts of the same file."""
    parts = list(parts)
    filled = [part for part in parts if part.positions]
    if len({isinstance(part.columns, Cells | Table) for part in filled}) > 1:
        parts = [replace(part, columns=tuple(part.columns)) for part in filled]
    builder = CorpusBuilder()
    for part in parts:
        builder.add(part)
    return builder.corpus()


def ones(count: int) -> np.ndarray:
    """So many ones that take no memory."""
    return np.broadcast_to(np.float64(1.0), count)


def joined_values(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Values of attributes, end to end; most are ones, which take no memory."""
    if all(part.strides == (0,) for part in parts):
        return ones(sum(map(len, parts)))
    return np.concatenate(parts)


def _column_subset(column: Sequence[str], rows: np.ndarray) -> Sequence[str]:
    return column.take(rows) if isinstance(column, CodedColumn | NumberColumn) else [column[t] for t in rows.tolist()]


def _column_span(column: Sequence[str], rows: slice) -> Sequence[str]:
    if isinstance(column, CodedColumn):
        return ColumnSpan(column, rows)
    return NumberColumn(column.numbers[rows]) if isinstance(column, NumberColumn) else column[rows]


def _joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    columns = [part.packed() for part in parts if isinstance(part, CodedColumn)]
    return joined_columns(columns) if len(columns) == len(parts) else [value for part in parts for value in part]


def _attribute_span(attributes: AttributeRows, rows: slice) -> AttributeRows:
    indptr = attributes.indptr[rows.start : rows.stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    names = _column_span(attributes.names, entries)
    return AttributeRows(indptr - entries.start, names, attributes.values[entries])


def _attribute_subset(attributes: AttributeRows, rows: np.ndarray) -> AttributeRows:
    counts = np.diff(attributes.indptr)[rows]
    entries = sequence_rows(attributes.indptr, rows)
    values = attributes.values
    return AttributeRows(
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        names=CodedColumn.of(attributes.names).take(entries),
        values=ones(len(entries)) if values.strides == (0,) else values[entries],
    )
