"""A corpus: labelled or unlabelled sequences as they stand in a file, before any encoding.

Formats produce it, encoding consumes it. Values are kept column by column, since
everything downstream works on whole columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from ..system import offsets_of, piece_rows, sequence_rows
from .layout import MISSING, Layout
from .lexicons import Lookup
from .tables import Cells, CodedColumn, ColumnBuilder, NumberColumn, Table, TableBuilder, joined_columns

# Formats of files that can stand in the place of a corpus that never was one: with columns, and with attributes.
COLUMN_FORMAT = "conll"
ATTRIBUTE_FORMAT = "crfsuite"


@dataclass(frozen=True)
class AttributeRows:
    """Attributes of N positions, in compressed rows: those of position t are `names[indptr[t]:indptr[t+1]]`."""

    indptr: np.ndarray  # [N+1] int64
    names: Sequence[str]  # [nnz]
    values: np.ndarray  # [nnz] float64; ones may have no memory of their own

    def texts(self, first: int, last: int) -> list[list[str]]:
        """Return the attributes of positions first:last, with their values unless they are 1."""
        pairs = [(self.names[e], float(self.values[e])) for e in range(self.indptr[first], self.indptr[last])]
        written = [name if value == 1 else f"{name}:{value:g}" for name, value in pairs]
        ends = (self.indptr[first : last + 1] - self.indptr[first]).tolist()
        return [written[start:end] for start, end in pairwise(ends)]

    def take(self, rows: np.ndarray | slice) -> AttributeRows:
        """Return the attributes of some positions."""
        if isinstance(rows, slice):
            indptr = self.indptr[rows.start : rows.stop + 1]
            within = slice(int(indptr[0]), int(indptr[-1]))
            return AttributeRows(indptr - within.start, _rows(self.names, within), self.values[within])
        entries = sequence_rows(self.indptr, rows)
        values = ones(len(entries)) if self.values.strides == (0,) else self.values[entries]
        return AttributeRows(offsets_of(np.diff(self.indptr)[rows]), _rows(self.names, entries), values)


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
    categorical: frozenset[int] = frozenset()  # columns of words, also where all of these are numbers
    file_format: str | None = None  # of the file that it was read from; None for one that never was a file
    header: tuple[str, ...] | None = None  # names of the columns that stand in the first line of the file
    layout: Layout | None = None  # of the file, with what was found out about it
    remarks: tuple[str, ...] = ()  # for users, about how the file was read
    unlabelled: str = ""  # message about texts in JSON that have no labels
    left_out: int = 0  # texts of the file without labels, where others have some
    # Rows [N, width] of floating-point numbers by name, which may be mapped from files; all finite.
    vectors: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: Mapping[Hashable, Lookup] = field(default_factory=dict)  # to look its words up in, by what they are made of
    format: str = field(init=False)  # of the file that it came from, or of one that could hold it

    def __post_init__(self) -> None:
        possible = COLUMN_FORMAT if self.attributes is None else ATTRIBUTE_FORMAT
        object.__setattr__(self, "format", self.file_format or possible)

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
        """Return the sequences first:last, whose values are copied when they are needed."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        return self._taken(rows, slice(first, last), self.offsets[first : last + 1] - rows.start)

    def subset(self, which: Sequence[int] | np.ndarray) -> Corpus:
        """Return the sequences numbered `which`, in that order."""
        which = np.asarray(which, dtype=np.int64)
        return self.pieces(self.offsets[which], self.offsets[which + 1], which)

    def pieces(self, first: np.ndarray, last: np.ndarray, which: np.ndarray) -> Corpus:
        """Return positions first:last of pieces of the sequences numbered `which`, [P] all, each as a sequence."""
        return self._taken(piece_rows(first, last), which, offsets_of(last - first))

    def _taken(self, rows: slice | np.ndarray, sequences: slice | np.ndarray, offsets: np.ndarray) -> Corpus:
        return replace(
            self,
            columns=tuple(_rows(column, rows) for column in self.columns),
            offsets=offsets,
            lines=self.lines[rows],
            weights=None if self.weights is None else self.weights[sequences],
            attributes=None if self.attributes is None else self.attributes.take(rows),
            vectors={name: array[rows] for name, array in self.vectors.items()},
        )


class CorpusBuilder:
    """One corpus out of consecutive parts of the same file: what must be done in order is done as they come."""

    def __init__(self) -> None:
        self._parts: list[Corpus] = []
        self._left_out = 0
        self._table: TableBuilder | None = None
        self._names: ColumnBuilder | None = None

    def add(self, part: Corpus) -> None:
        """Take one more part; one of blank lines alone has no columns yet, and is left out if others have."""
        self._left_out += part.left_out
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

    def corpus(self) -> Corpus:
        parts = self._parts
        if not parts[0].positions:
            return parts[0]
        if self._table is not None:
            columns: Sequence[Sequence[str]] = self._table.table()
        else:
            columns = tuple(_joined([part.columns[c] for part in parts]) for c in range(parts[0].width))
        attributes = None
        if self._names is not None:
            rows = [part.attributes for part in parts if part.attributes is not None]
            values = [own.values for own in rows]
            plain = all(own.strides == (0,) for own in values)
            attributes = AttributeRows(
                indptr=offsets_of(np.concatenate([np.diff(own.indptr) for own in rows])),
                names=self._names.column(),
                values=ones(sum(map(len, values))) if plain else np.concatenate(values),
            )
        return replace(
            parts[0],
            left_out=self._left_out,
            columns=columns,
            offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            lines=np.concatenate([part.lines for part in parts]),
            weights=joined_weights([(part.weights, part.sequences) for part in parts]),
            attributes=attributes,
            vectors={name: np.concatenate([part.vectors[name] for part in parts]) for name in parts[0].vectors},
        )


def packed(part: Corpus, missing: tuple[str, ...] = MISSING) -> Corpus:
    """Return the corpus without the bytes that its values stand in."""
    if not isinstance(part.columns, Cells) or not part.positions:
        return part
    return replace(part, columns=part.columns.packed(missing, part.names is None and part.attributes is None))


def concatenate(parts: Iterable[Corpus]) -> Corpus:
    """Join consecutive parts of the same file."""
    parts = list(parts)
    filled = [part for part in parts if part.positions]
    if len({isinstance(part.columns, Cells | Table) for part in filled}) > 1:
        parts = [replace(part, columns=tuple(part.columns)) for part in filled]
    builder = CorpusBuilder()
    for part in parts:
        builder.add(part)
    return builder.corpus()


def ones(count: int) -> np.ndarray:
    """Return that many ones, which take no memory."""
    return np.broadcast_to(np.float64(1.0), count)


def joined_weights(parts: Iterable[tuple[np.ndarray | None, int]]) -> np.ndarray | None:
    """Return the weights of all sequences from those of parts and the number of their sequences; None if all are 1."""
    parts = list(parts)
    if all(weights is None for weights, _ in parts):
        return None
    return np.concatenate([np.ones(count) if weights is None else weights for weights, count in parts])


def _rows(column: Sequence[str], rows: np.ndarray | slice) -> Sequence[str]:
    """Return the values of some positions; those of a slice are numbered when that is needed."""
    if isinstance(column, CodedColumn):
        return column.span(rows) if isinstance(rows, slice) else column.take(rows)
    if isinstance(column, NumberColumn):
        return column.take(rows)
    return column[rows] if isinstance(rows, slice) else [column[t] for t in rows.tolist()]


def _joined(parts: Sequence[Sequence[str]]) -> Sequence[str]:
    columns = [part.packed() for part in parts if isinstance(part, CodedColumn)]
    return joined_columns(columns) if len(columns) == len(parts) else [value for part in parts for value in part]
