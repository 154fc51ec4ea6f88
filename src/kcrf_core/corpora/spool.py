"""A corpus on disk: text that was read once, gone through part by part as often as that is wanted.

What is in memory grows with the distinct values and the number of sequences, not with positions. Values are numbered
over all files in the order in which they first appear, just as `read_corpus` numbers them. A column is made of numbers
as long as every value was one; the text of those is kept beside them, so that it can still become one of codes when a
word turns up, or when somebody asks for its values.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..errors import DataError
from ..files import naming
from ..system import Workers, counted, listed
from .corpus import AttributeRows, Corpus, ones, packed
from .embeddings import Given, open_vectors
from .formats import packed_parts
from .layout import PLAIN, Layout
from .lines import display_name
from .tables import CodedColumn, ColumnList, LateColumn, PackedColumn, Strings, Table, TablePart, coded, in_order

COPIED_AT_ONCE = 1 << 20  # values of a column


class _Scratch:
    """A file without a name, to which arrays are appended and of which parts of them are read again."""

    def __init__(self, folder: str):
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115, it lives as long as this
        self._lock = threading.Lock()
        self._size = 0

    def append(self, array: np.ndarray) -> int:
        """Where the array begins."""
        place, data = self._size, np.ascontiguousarray(array)
        with self._lock, naming(self._folder):
            self._file.seek(place)
            self._file.write(data.data.cast("B") if data.size else b"")
        self._size += data.nbytes
        return place

    def read(self, place: int, out: np.ndarray) -> None:
        """Fill a contiguous array from a place on."""
        if not out.size:
            return
        with self._lock:
            self._file.seek(place)
            if self._file.readinto(out.data.cast("B")) != out.nbytes:
                raise OSError("a scratch file was cut short")

    def close(self) -> None:
        self._file.close()


class _Stored:
    """Values of one type in the order in which they came, in pieces."""

    def __init__(self, scratch: _Scratch, dtype: type):
        self._scratch, self._dtype = scratch, np.dtype(dtype)
        self._places: list[int] = []
        self._ends = [0]

    def __len__(self) -> int:
        return self._ends[-1]

    def append(self, values: np.ndarray) -> None:
        self._places.append(self._scratch.append(values.astype(self._dtype, copy=False)))
        self._ends.append(self._ends[-1] + len(values))

    def read(self, first: int, last: int) -> np.ndarray:
        """The values first:last."""
        out = np.empty(last - first, self._dtype)
        piece = int(np.searchsorted(self._ends, first, side="right")) - 1
        at = first
        while at < last:
            stop = min(last, self._ends[piece + 1])
            place = self._places[piece] + (at - self._ends[piece]) * self._dtype.itemsize
            self._scratch.read(place, out[at - first : stop - first])
            at, piece = stop, piece + 1
        return out


class _Codes:
    """A column as codes, with its distinct values and how often each came in memory."""

    def __init__(self, scratch: _Scratch):
        self.codes = _Stored(scratch, np.int32)
        self._strings = Strings()
        self._counts = np.zeros(256, dtype=np.int64)
        self._known: CodedColumn | None = None

    def append(self, column: PackedColumn) -> None:
        numbers = self._strings.add(column)
        if len(self._counts) < self._strings.count:
            more = np.zeros(2 * self._strings.count, dtype=np.int64)
            more[: len(self._counts)] = self._counts
            self._counts = more
        self._counts[numbers] += np.bincount(column.codes, minlength=len(numbers))
        self.codes.append(numbers[column.codes])
        self._known = None

    @property
    def counts(self) -> np.ndarray:
        """How often each of the values came, [V]."""
        return self._counts[: self._strings.count]

    @property
    def distinct(self) -> CodedColumn:
        """Each distinct value once."""
        if self._known is None:
            self._known = self._strings.column(np.arange(self._strings.count, dtype=np.int32))
        return self._known


class _Numbers:
    """A column of numbers, with the text that they were."""

    def __init__(self, scratch: _Scratch):
        self._scratch = scratch
        self.numbers, self._text = _Stored(scratch, np.float64), _Stored(scratch, np.uint8)
        self._ends = _Stored(scratch, np.int64)  # of each number in the text, behind a zero
        self._ends.append(np.zeros(1))
        self.some = False  # True if any is not missing

    def append(self, part: TablePart, column: int) -> None:
        text, lengths = part.text_of(column)
        numbers = part.numbers[int(part.place[column])]
        self.numbers.append(numbers)
        self._ends.append(len(self._text) + np.cumsum(lengths, dtype=np.int64))
        self._text.append(text)
        self.some = self.some or not bool(np.isnan(numbers).all())

    def coded(self, first: int, last: int) -> PackedColumn:
        """Return the values first:last as codes of their own."""
        ends = self._ends.read(first, last + 1)
        text = self._text.read(int(ends[0]), int(ends[-1]))
        return coded(text, ends[:-1] - ends[0], np.diff(ends).astype(np.int32))

    def as_codes(self) -> _Codes:
        """Return all of it as codes."""
        out = _Codes(self._scratch)
        for first in range(0, len(self.numbers), COPIED_AT_ONCE):
            out.append(self.coded(first, min(first + COPIED_AT_ONCE, len(self.numbers))))
        return out


class SharedColumn(CodedColumn):
    """Some rows of a column whose values are numbered over all of its rows."""

    def __init__(self, whole: CodedColumn, numbers: np.ndarray):
        self._whole = whole  # each distinct value of the column once
        self._numbers = numbers  # [n] int32, which of them

    @cached_property
    def _own(self) -> tuple[np.ndarray, np.ndarray]:
        return in_order(self._numbers, len(self._whole))

    @property
    def used(self) -> np.ndarray:
        """Which values of the column these rows have, in the order in which they appear here."""
        return self._own[0]

    @property
    def codes(self) -> np.ndarray:
        return self._own[1]

    @cached_property
    def values(self) -> list[str]:
        whole = self._whole.values
        return [whole[number] for number in self.used.tolist()]

    def __len__(self) -> int:
        return len(self._numbers)


class _SpooledNumbers(LateColumn):
    """Some rows of a column of numbers."""

    def __init__(self, store: _Numbers, missing: tuple[str, ...], first: int, last: int):
        self._store, self._missing, self._rows = store, missing, (first, last)

    def __len__(self) -> int:
        return self._rows[1] - self._rows[0]

    def packed(self) -> PackedColumn:
        return self._packed

    @cached_property
    def _packed(self) -> PackedColumn:
        return self._store.coded(*self._rows)

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        if missing == self._missing:
            return self._store.numbers.read(*self._rows)
        return self.packed().numbers(missing)


class _Attributes:
    """Attributes of positions, those of all one after another."""

    def __init__(self, scratch: _Scratch):
        self._scratch = scratch
        self.names = _Codes(scratch)
        self._values: _Stored | None = None  # None: all are ones
        self._indptr = _Stored(scratch, np.int64)
        self._indptr.append(np.zeros(1))

    def append(self, rows: AttributeRows) -> None:
        entries = len(self.names.codes)
        if self._values is None and rows.values.strides != (0,) and not (rows.values == 1).all():
            self._values = _Stored(self._scratch, np.float64)
            for first in range(0, entries, COPIED_AT_ONCE):
                self._values.append(np.ones(min(COPIED_AT_ONCE, entries - first)))
        if self._values is not None:
            self._values.append(rows.values)
        self._indptr.append(entries + rows.indptr[1:])
        self.names.append(CodedColumn.of(rows.names).packed())

    def read(self, first: int, last: int) -> AttributeRows:
        """Return those of positions first:last."""
        indptr = self._indptr.read(first, last + 1)
        begin, end = int(indptr[0]), int(indptr[-1])
        names = SharedColumn(self.names.distinct, self.names.codes.read(begin, end))
        values = ones(end - begin) if self._values is None else self._values.read(begin, end)
        return AttributeRows(indptr - begin, names, values)


class Spool:
    """Sequences of any number of files. It is filled by `add`, and read by `part`; `close` lets go of the disk."""

    def __init__(
        self, folder: str | os.PathLike[str], vectors: Sequence[tuple[str, Given]] = (), layout: Layout = PLAIN
    ):
        self._scratch = _Scratch(os.fspath(folder))
        self._vectors, self._layout = list(vectors), layout
        self._like: Corpus | None = None  # a part of what was read, for all that parts have in common
        self._stores: list[_Codes | _Numbers] = []
        self._also: dict[int, _Codes] = {}  # codes of columns of numbers, where they were asked for
        self._attributes: _Attributes | None = None
        self._lines = _Stored(self._scratch, np.int64)
        self._lengths: list[np.ndarray] = []
        self._weights: list[np.ndarray | None] = []
        self._files: list[tuple[str, int]] = []  # names, and the number of the first sequence of each
        self._making = threading.Lock()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._scratch.close()

    # ------------------------------------------------------------------------- filling

    def begin_file(self, name: str) -> None:
        """What comes next is of this file."""
        self._files.append((name, self.sequences))

    def add(self, part: Corpus) -> None:
        """Take one more part of the file that was begun."""
        if not part.positions:
            return
        part = packed(part, self._layout.missing)
        if self._like is None:
            self._like = part.span(0, 1)
            self._stores = [self._new_store(part, column) for column in range(part.width)]
            if part.attributes is not None:
                self._attributes = _Attributes(self._scratch)
        else:
            self._check(part, self._like)
        for column in range(part.width):
            self._append(part, column)
        if self._attributes is not None and part.attributes is not None:
            self._attributes.append(part.attributes)
        self._lines.append(part.lines)
        self._lengths.append(np.diff(part.offsets))
        self._weights.append(part.weights)
        self.__dict__.pop("offsets", None)

    def _check(self, part: Corpus, like: Corpus) -> None:
        first = self._files[0][0]
        if part.width != like.width:
            raise DataError(
                f"{counted(part.width, 'column')}, and {first} has {like.width}: files that go together have the same",
                part.source,
                int(part.lines[0]),
            )
        if part.header != like.header:
            raise DataError(f"its header line is not that of {first}", part.source)

    def _new_store(self, part: Corpus, column: int) -> _Codes | _Numbers:
        numeric = isinstance(part.columns, Table) and bool(part.columns.is_number[column])
        return (_Numbers if numeric else _Codes)(self._scratch)

    def _append(self, part: Corpus, column: int) -> None:
        if isinstance(part.columns, Table):
            for own in part.columns.parts:
                store = self._stores[column]
                if isinstance(store, _Numbers) and own.is_number[column]:
                    store.append(own, column)
                else:
                    self._as_codes(column).append(own.coded(column))
        else:
            self._as_codes(column).append(CodedColumn.of(part.columns[column]).packed())

    def _as_codes(self, column: int) -> _Codes:
        """The store of a column that has words from now on."""
        store = self._stores[column]
        if isinstance(store, _Numbers):
            store = self._stores[column] = store.as_codes()
        return store

    # ------------------------------------------------------------------------- all of it

    @property
    def source(self) -> str:
        """The names of the files, to show in messages."""
        return listed([name for name, _ in self._files])

    @property
    def sequences(self) -> int:
        return sum(map(len, self._lengths))

    @property
    def positions(self) -> int:
        return len(self._lines)

    @property
    def width(self) -> int:
        """Number of columns, the label's included."""
        return len(self._stores)

    @property
    def _first(self) -> Corpus:
        assert self._like is not None, "nothing was read"
        return self._like

    @property
    def like(self) -> Corpus:
        """One sequence, for what all have in common: formats, names and numbers of columns, names of vectors."""
        vectors = {one.name: np.zeros((self._first.positions, one.width)) for one in open_vectors(self._vectors)}
        return replace(self._first, source=self.source, vectors=vectors)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where sequences begin, [S+1] int64."""
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0, np.int64)
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def file_borders(self) -> list[int]:
        """Numbers of the first sequences of files."""
        return [first for _, first in self._files]

    def is_numeric(self, column: int) -> bool:
        """Whether all values of a column are numbers or missing."""
        return isinstance(self._stores[column], _Numbers)

    def has_numbers(self, column: int) -> bool:
        """Whether a column of numbers has any."""
        store = self._stores[column]
        return isinstance(store, _Numbers) and store.some

    def distinct(self, column: int) -> CodedColumn:
        """The distinct values of a column, each once, in the order of their numbers."""
        return self._codes_of(column).distinct

    def counts(self, column: int) -> np.ndarray:
        """How often each of them came, [V]."""
        return self._codes_of(column).counts

    @property
    def attribute_counts(self) -> tuple[list[str], np.ndarray]:
        """Names of all attributes, and how often each came."""
        assert self._attributes is not None
        return self._attributes.names.distinct.values, self._attributes.names.counts

    def _codes_of(self, column: int) -> _Codes:
        store = self._stores[column]
        if isinstance(store, _Codes):
            return store
        with self._making:
            if column not in self._also:
                self._also[column] = store.as_codes()
        return self._also[column]

    # ------------------------------------------------------------------------- parts

    def part(self, first: int, last: int) -> Corpus:
        """The sequences first:last, which are of one file."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        file = int(np.searchsorted(self.file_borders, first, side="right")) - 1
        columns = SpooledRows(self, rows)
        corpus = replace(
            self._first,
            source=self._files[max(file, 0)][0],
            columns=columns,
            offsets=self.offsets[first : last + 1] - rows.start,
            lines=self._lines.read(rows.start, rows.stop),
            weights=None if self._all_weights is None else self._all_weights[first:last],
            attributes=None if self._attributes is None else self._attributes.read(rows.start, rows.stop),
        )
        # Files are mapped for each part anew: pages of a mapping count as memory as long as it is there.
        vectors = {one.name: np.array(one.take(rows.start, rows.stop, corpus)) for one in open_vectors(self._vectors)}
        return replace(corpus, vectors=vectors)

    @cached_property
    def _all_weights(self) -> np.ndarray | None:
        if all(own is None for own in self._weights):
            return None
        pairs = zip(self._weights, self._lengths, strict=True)
        return np.concatenate([np.ones(len(lengths)) if own is None else own for own, lengths in pairs])

    def column(self, column: int, rows: slice) -> CodedColumn:
        """Some rows of a column."""
        store = self._stores[column]
        if isinstance(store, _Numbers):
            return _SpooledNumbers(store, self._layout.missing, rows.start, rows.stop)
        return self.shared(column, rows)

    def shared(self, column: int, rows: slice) -> SharedColumn:
        """The same by the numbers of its values among all."""
        store = self._codes_of(column)
        return SharedColumn(store.distinct, store.codes.read(rows.start, rows.stop))

    def check_vectors(self) -> None:
        """Refuse vectors that have not a row for each position."""
        for vectors in open_vectors(self._vectors):
            vectors.check_rows(self.positions, self.source)


class SpooledRows(ColumnList):
    """The columns of some rows, each read when it is asked for."""

    def __init__(self, spool: Spool, rows: slice):
        self._spool, self._rows = spool, rows

    def __len__(self) -> int:
        return self._spool.width

    def column(self, number: int) -> CodedColumn:
        return self._spool.column(number, self._rows)

    def shared(self, column: int) -> SharedColumn:
        """A column by the numbers that its values have in all rows."""
        return self._spool.shared(column, self._rows)


def spool_corpus(
    paths: Iterable[str | os.PathLike[str]],
    spool: Spool,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    workers: Workers | None = None,
    layout: Layout = PLAIN,
    progress: Callable[[int], object] | None = None,
) -> None:
    """Read files into a spool, one after another, in memory that does not grow with them; see `read_corpus`."""
    for path in paths:
        spool.begin_file(display_name(path))
        for part in packed_parts(path, format, columns, workers, layout, progress):
            spool.add(part)
    spool.check_vectors()
