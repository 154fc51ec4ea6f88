"""A corpus on disk: text that was read once, for passes over its parts.

Memory grows with the distinct values and the number of sequences, not with positions. Values are numbered over all
files in the order in which they first appear, as `read_corpus` numbers them. A column is made of numbers as long as
every value was one; their text is kept beside them, so that it can become codes when a word turns up.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise

import numpy as np

from ..errors import DataError
from ..files import ScratchFolder, naming, temporary_beside
from ..system import Workers, counted, listed, offsets_of, sequence_chunks
from .columns import Columns, Encode, TrainingColumns
from .corpus import AttributeRows, Corpus, concatenate, joined_weights, ones, packed
from .embeddings import Given, open_vectors
from .formats import packed_parts
from .layout import PLAIN, Layout
from .lines import display_name
from .tables import CodedColumn, LateColumn, PackedColumn, Strings, Table, coded

PART_POSITIONS = 1 << 16
SUGGESTING_POSITIONS = 400_000  # positions that features are suggested by: as much as memory bears easily
COPIED_AT_ONCE = 1 << 20  # values of a column


class _Stored:
    """Values of one type in the order in which they came, in a file of a folder."""

    def __init__(self, folder: str, dtype: type):
        self._folder, self._dtype, self._count = folder, np.dtype(dtype), 0
        self._path = temporary_beside(os.path.join(folder, ""))

    def __len__(self) -> int:
        return self._count

    def append(self, values: np.ndarray) -> None:
        with naming(self._folder, self._path), open(self._path, "ab") as stream:
            stream.write(values.astype(self._dtype, copy=False).tobytes())
        self._count += len(values)

    def read(self, first: int, last: int) -> np.ndarray:
        out = np.fromfile(self._path, self._dtype, last - first, offset=first * self._dtype.itemsize)
        if len(out) < last - first:
            raise OSError("a scratch file was cut short")
        return out


class _Codes:
    """A column as codes, with its distinct values and the count of each in memory."""

    def __init__(self, folder: str):
        self.codes = _Stored(folder, np.int32)
        self._strings = Strings()
        self._counts = np.zeros(256, dtype=np.int64)
        self._known: CodedColumn | None = None

    def append(self, column: PackedColumn) -> None:
        numbers = self._strings.add(column)
        if len(self._counts) < self._strings.count:
            self._counts = np.pad(self._counts, (0, 2 * self._strings.count))
        self._counts[numbers] += np.bincount(column.codes, minlength=len(numbers))
        self.codes.append(numbers[column.codes])
        self._known = None

    @property
    def counts(self) -> np.ndarray:
        """Count of each of the values, [V]."""
        return self._counts[: self._strings.count]

    @property
    def distinct(self) -> CodedColumn:
        """Each distinct value once."""
        if self._known is None:
            self._known = self._strings.column(np.arange(self._strings.count, dtype=np.int32))
        return self._known

    def column(self, first: int, last: int) -> CodedColumn:
        """Return the values first:last, read and numbered when they are needed."""
        return LateColumn(last - first, lambda: self.distinct.take(self.codes.read(first, last)))


class _Numbers:
    """A column of numbers, with the text that they were."""

    def __init__(self, folder: str, missing: tuple[str, ...]):
        self._folder, self._missing = folder, missing
        self.numbers, self._text = _Stored(folder, np.float64), _Stored(folder, np.uint8)
        self._ends = _Stored(folder, np.int64)  # of each number in the text, behind a zero
        self._ends.append(np.zeros(1))
        self.some = False  # True if any is not missing

    def append(self, table: Table, column: int) -> None:
        numbers = table.numbers[table.place[column]]
        self.numbers.append(numbers)
        for texts in table.texts:
            text, lengths = texts.of(column)
            self._ends.append(len(self._text) + np.cumsum(lengths, dtype=np.int64))
            self._text.append(text)
        self.some = self.some or not bool(np.isnan(numbers).all())

    def column(self, first: int, last: int) -> CodedColumn:
        """Return the values first:last, read when they are needed."""

        def parse(missing: tuple[str, ...]) -> np.ndarray | None:
            return self.numbers.read(first, last) if missing == self._missing else None

        return LateColumn(last - first, partial(self.coded, first, last), parse)

    def coded(self, first: int, last: int) -> PackedColumn:
        """Return the values first:last as codes of their own."""
        ends = self._ends.read(first, last + 1)
        text = self._text.read(int(ends[0]), int(ends[-1]))
        return coded(text, ends[:-1] - ends[0], np.diff(ends).astype(np.int32))

    def as_codes(self) -> _Codes:
        out = _Codes(self._folder)
        for first in range(0, len(self.numbers), COPIED_AT_ONCE):
            out.append(self.coded(first, min(first + COPIED_AT_ONCE, len(self.numbers))))
        return out


class _Attributes:
    """Attributes of all positions, one position after another."""

    def __init__(self, folder: str):
        self._folder = folder
        self.names = _Codes(folder)
        self._values: _Stored | None = None  # None: all are ones
        self._indptr = _Stored(folder, np.int64)
        self._indptr.append(np.zeros(1))

    def append(self, rows: AttributeRows) -> None:
        entries = len(self.names.codes)
        if self._values is None and rows.values.strides != (0,) and not (rows.values == 1).all():
            self._values = _Stored(self._folder, np.float64)
            for first in range(0, entries, COPIED_AT_ONCE):
                self._values.append(np.ones(min(COPIED_AT_ONCE, entries - first)))
        if self._values is not None:
            self._values.append(rows.values)
        self._indptr.append(entries + rows.indptr[1:])
        self.names.append(CodedColumn.of(rows.names).packed())

    def read(self, first: int, last: int) -> AttributeRows:
        indptr = self._indptr.read(first, last + 1)
        begin, end = int(indptr[0]), int(indptr[-1])
        names = self.names.column(begin, end)
        values = ones(end - begin) if self._values is None else self._values.read(begin, end)
        return AttributeRows(indptr - begin, names, values)


class Spool(TrainingColumns):
    """Sequences of any number of files, to be cut into shards. `read` fills it, and `close` gives the disk back."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        vectors: Sequence[tuple[str, Given]] = (),
        layout: Layout = PLAIN,
        shards: int = 1,
        fitting: bool = True,
    ):
        self._scratch = ScratchFolder(os.fspath(folder))
        self._vectors, self._layout, self._shards, self._fitting = list(vectors), layout, shards, fitting
        self._like: Corpus | None = None  # one sequence of the first file
        self._stores: list[_Codes | _Numbers] = []
        self._also: dict[int, _Codes] = {}  # codes of columns of numbers, where they were needed
        self._attributes: _Attributes | None = None
        self._lines = _Stored(self._scratch.path, np.int64)
        self._lengths: list[np.ndarray] = []
        self._weights: list[np.ndarray | None] = []
        self._files: list[tuple[str, int]] = []  # names, and the number of the first sequence of each
        self.warnings: list[str] = []
        self.remarks: list[str] = []  # for users, about how files were read
        self.tables: dict[tuple[Hashable, ...], np.ndarray] = {}  # codes of all values of a column, for all parts
        self.lock = threading.Lock()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exception: object) -> None:
        self._scratch.remove()

    def read(
        self,
        paths: Iterable[str | os.PathLike[str]],
        format: str | None = None,
        columns: Sequence[str] | None = None,
        workers: Workers | None = None,
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Read files one after another, in memory that does not grow with them; see `read_corpus`."""
        for path in paths:
            self._files.append((display_name(path), sum(map(len, self._lengths))))
            for part in packed_parts(path, format, columns, workers, self._layout, progress, self.remarks):
                if part.positions:
                    self._add(packed(part, self._layout.missing))
        assert self._like is not None  # files without data are refused
        self.source = listed([name for name, _ in self._files])  # to show in messages
        self.offsets = offsets_of(np.concatenate(self._lengths))  # [S+1] int64, beginnings of sequences
        # Numbers of the sequences that shards begin with, and behind them that of all.
        self.borders = shard_borders(self.offsets, self._shards)
        self._all_weights = joined_weights(zip(self._weights, map(len, self._lengths), strict=True))
        vectors = {}
        for own in open_vectors(self._vectors):
            own.check_rows(self.positions, self.source)
            vectors[own.name] = np.zeros((self._like.positions, own.width))
        self.corpus = replace(self._like, source=self.source, vectors=vectors)

    def _add(self, part: Corpus) -> None:
        """Take one more part of the last file."""
        table = part.columns if isinstance(part.columns, Table) else None
        if self._like is None:
            self._like = part.span(0, 1)
            for column in range(part.width):
                numeric = table is not None and bool(table.is_number[column])
                folder, missing = self._scratch.path, self._layout.missing
                self._stores.append(_Numbers(folder, missing) if numeric else _Codes(folder))
            if part.attributes is not None:
                self._attributes = _Attributes(self._scratch.path)
        first, like = self._files[0][0], self._like
        if part.width != like.width:
            raise DataError(
                f"{counted(part.width, 'column')}, and {first} has {like.width}: files that go together have the same",
                part.source,
                int(part.lines[0]),
            )
        if part.header != like.header:
            raise DataError(f"its header line is not that of {first}", part.source)
        for column, store in enumerate(self._stores):
            if table is not None and isinstance(store, _Numbers) and table.is_number[column]:
                store.append(table, column)
                continue
            if isinstance(store, _Numbers):  # a column that has words from now on
                store = self._stores[column] = store.as_codes()
            store.append(CodedColumn.of(part.columns[column]).packed())
        if self._attributes is not None and part.attributes is not None:
            self._attributes.append(part.attributes)
        self._lines.append(part.lines)
        self._lengths.append(np.diff(part.offsets))
        self._weights.append(part.weights)

    @property
    def positions(self) -> int:
        return len(self._lines)

    @property
    def runs(self) -> list[list[tuple[int, int]]]:
        """Parts of each shard, as numbers of their first and last sequences; a part is of one file."""
        out = []
        for first, last in pairwise(self.borders.tolist()):
            cuts = [first, *(border for _, border in self._files if first < border < last), last]
            own = []
            for begin, end in pairwise(cuts):
                chunks = sequence_chunks(self.offsets[begin : end + 1], PART_POSITIONS)
                own += [(begin + a, begin + b) for a, b in chunks]
            out.append(own)
        return out

    def value_counts(self, column: int) -> tuple[list[str], np.ndarray]:
        codes = self.codes_of(column)
        return codes.distinct.values, codes.counts

    def attribute_counts(self) -> tuple[Sequence[str], np.ndarray]:
        assert self._attributes is not None
        return self._attributes.names.distinct.values, self._attributes.names.counts

    def has_numbers(self, column: int) -> bool | None:
        store = self._stores[column]
        return store.some if isinstance(store, _Numbers) else None

    def kinds(self, column: int) -> np.ndarray:
        return self.codes_of(column).distinct.distinct_numbers(self._layout.missing)[1]

    def codes_of(self, column: int) -> _Codes:
        """Return the store of a column as codes."""
        store = self._stores[column]
        if isinstance(store, _Codes):
            return store
        with self.lock:
            if column not in self._also:
                self._also[column] = store.as_codes()
        return self._also[column]

    @property
    def parts(self) -> Iterable[Columns]:
        return map(self.part, chain.from_iterable(self.runs))

    def part(self, run: tuple[int, int]) -> Columns:
        """Return the columns of the sequences first:last, which are of one file."""
        first, last = run
        begin, end = self.offsets[[first, last]].tolist()
        file = int(np.searchsorted([number for _, number in self._files], first, side="right")) - 1
        corpus = replace(
            self.corpus,
            source=self._files[max(file, 0)][0],
            columns=tuple(store.column(begin, end) for store in self._stores),
            offsets=self.offsets[first : last + 1] - begin,
            lines=self._lines.read(begin, end),
            weights=None if self._all_weights is None else self._all_weights[first:last],
            attributes=None if self._attributes is None else self._attributes.read(begin, end),
            vectors={},
        )
        # Files are mapped for each part anew: pages of a mapping count as memory as long as it is there.
        vectors = {one.name: np.array(one.take(begin, end, corpus)) for one in open_vectors(self._vectors)}
        return _PartColumns(replace(corpus, vectors=vectors), self, self._layout.missing, self._fitting, begin, end)

    def sample(self, most: int) -> Corpus:
        """Return sequences with about so many positions in all, evenly spread over the data, or all of it."""
        which = spread_sequences(len(self.offsets) - 1, self.positions, most)
        parts = []
        for run in chain.from_iterable(self.runs):
            own = which[(which >= run[0]) & (which < run[1])] - run[0]
            if len(own):
                parts.append(self.part(run).corpus.subset(own))
        return replace(concatenate(parts), source=self.source)


class _PartColumns(Columns):
    """Columns of some sequences of a spool; tables of codes belong to all of its parts."""

    def __init__(self, corpus: Corpus, spool: Spool, missing: tuple[str, ...], fitting: bool, begin: int, end: int):
        super().__init__(corpus, missing, fitting)
        self._spool, self._begin, self._end = spool, begin, end

    def value_codes(self, column: int, key: tuple[Hashable, ...], encode: Encode) -> tuple[np.ndarray, np.ndarray]:
        whole, own = (column, *key), self._spool.codes_of(column)
        with self._spool.lock:
            if whole not in self._spool.tables:
                self._spool.tables[whole] = encode(own.distinct.values)
        return self._spool.tables[whole], own.codes.read(self._begin, self._end)


def shard_borders(offsets: np.ndarray, shards: int) -> np.ndarray:
    """Return the sequences that shards of about the same size begin with, then the number of all sequences.

    There are fewer shards where there are fewer sequences.
    """
    aims = np.linspace(0, offsets[-1], shards + 1)
    borders = np.searchsorted(offsets, aims)
    nearer = np.maximum(borders - 1, 0)
    borders = np.where(aims - offsets[nearer] <= offsets[borders] - aims, nearer, borders)
    borders[0], borders[-1] = 0, len(offsets) - 1
    return np.unique(borders)


def spread_sequences(sequences: int, positions: int, most: int) -> np.ndarray:
    """Return numbers of sequences with about so many positions in all, evenly spread, or those of all."""
    if positions <= most:
        return np.arange(sequences)
    wanted = max(int(sequences * most / positions), 1)
    return np.unique(np.linspace(0, sequences - 1, wanted).astype(np.int64))
