"""Columns of a corpus: values as codes, as numbers, or as places in the bytes that were read.

No string is made of each value: `Cells` hold the places of the values of a block. A `Table` holds the columns of a
file, as codes with their distinct values or as numbers with the text that they were.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, overload

import numpy as np

from .._lazy import cached_property
from ..system import offsets_of, ranges
from . import _text

NUMBER, LACKING, WORD = 1, 0, -1  # kinds of values in a search for numbers
MOST_WHOLE = 2.0**53  # size of whole numbers that are written without a point


@lru_cache(maxsize=64)
def packed_marks(marks: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return texts end to end and their lengths, as Cython takes them."""
    encoded = [mark.encode() for mark in marks]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array([len(mark) for mark in encoded], dtype=np.int32)


class CodedColumn(Sequence[str]):
    """A column as its distinct values and, for each position, the number of its value."""

    def __init__(self, values: list[str], codes: np.ndarray):
        self.values = values  # [V] in order of first appearance, or labels of a model, some of which may not occur
        self.codes = codes  # [N] int32

    @classmethod
    def of(cls, values: Sequence[str]) -> CodedColumn:
        """Return a column of any values."""
        if isinstance(values, CodedColumn):
            return values
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        return CodedColumn(list(numbers), np.fromiter(map(numbers.__getitem__, values), np.int32, len(values)))

    @cached_property
    def present(self) -> frozenset[str]:
        """Values that some position has."""
        counts = np.bincount(self.codes, minlength=len(self.values))
        return frozenset(value for value, count in zip(self.values, counts.tolist(), strict=True) if count)

    def numbered(self, names: Sequence[str], other: int = -1) -> np.ndarray:
        """Return the place of the value of each position among some names, [N] int64; `other` where it has none."""
        places = {name: place for place, name in enumerate(names)}
        return np.array([places.get(value, other) for value in self.values], dtype=np.int64)[self.codes]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self.values[code] for code in self.codes[place].tolist()]
        return self.values[self.codes[place]]

    def __iter__(self) -> Iterator[str]:
        return map(self.values.__getitem__, self.codes.tolist())

    def take(self, rows: np.ndarray | slice) -> CodedColumn:
        """Return the values of some positions."""
        order, codes = in_order(self.codes[rows], len(self.values))
        return CodedColumn([self.values[code] for code in order.tolist()], codes)

    def span(self, rows: slice) -> CodedColumn:
        """Return the values of consecutive positions, which are numbered when their codes are needed."""
        return LateColumn(len(range(*rows.indices(len(self)))), partial(self.take, rows))

    def packed(self) -> PackedColumn:
        """Return the column with its values as bytes."""
        encoded = [value.encode() for value in self.values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        return PackedColumn(self.codes, np.frombuffer(b"".join(encoded), np.uint8), ends)

    def distinct_numbers(self, missing: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values as numbers [V], NaN where they are none, and the kind of each [V] int8."""
        cells = self.packed().cells
        kinds = np.empty(cells.lengths.shape, dtype=np.int8)
        numbers, _ = cells.parsed(np.zeros(1, np.int64), missing, kinds)
        return numbers[0], kinds[0]

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        """Return the column as finite numbers [N], NaN where one is missing; None where it has words."""
        numbers, kinds = self.distinct_numbers(missing)
        used = np.bincount(self.codes, minlength=len(kinds)) > 0
        return None if (kinds[used] == WORD).any() else numbers[self.codes]


class CategoryColumn(CodedColumn):
    """A column of categories, which are no numbers even if they look like some."""

    def take(self, rows: np.ndarray | slice) -> CategoryColumn:
        return CategoryColumn(**vars(super().take(rows)))

    span = take


class PackedColumn(CodedColumn):
    """A column whose distinct values are UTF-8 end to end, and become strings when they are needed."""

    def __init__(
        self,
        codes: np.ndarray,
        blob: np.ndarray,  # uint8, the values and nothing else
        ends: np.ndarray,  # [V] int64, where each value ends in the blob
        hashes: np.ndarray | None = None,  # [V] uint64
    ):
        self.codes, self.blob, self.ends, self._hashes = codes, blob, ends, hashes

    @cached_property
    def values(self) -> list[str]:  # type: ignore[override]  # nothing writes it
        text, ends = self.blob.tobytes().decode("utf-8", "surrogatepass"), self.ends
        if len(text) < len(self.blob):  # places of characters, not of bytes
            ends = offsets_of((self.blob & 0xC0) != 0x80)[ends]
        return [text[begin:end] for begin, end in pairwise([0, *ends.tolist()])]

    @property
    def cells(self) -> Cells:
        """Distinct values as one column."""
        lengths = np.diff(self.ends, prepend=0)
        return Cells(self.blob, (self.ends - lengths)[None], lengths.astype(np.int32)[None])

    @property
    def hashes(self) -> np.ndarray:
        """Hashes of the values, [V]."""
        if self._hashes is None:
            self._hashes = self.cells.coded(0).hashes
        return self._hashes

    def packed(self) -> PackedColumn:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "values"}


class LateColumn(CodedColumn):
    """A column whose codes, or numbers, are found when they are needed."""

    def __init__(
        self,
        count: int,
        code: Callable[[], CodedColumn],
        parse: Callable[[tuple[str, ...]], np.ndarray | None] | None = None,  # None: numbers come from the codes
    ):
        self._count, self._code, self._parse = count, code, parse

    @cached_property
    def _coded(self) -> CodedColumn:
        return self._code()

    @cached_property
    def values(self) -> list[str]:  # type: ignore[override]  # nothing writes it
        return self._coded.values

    @cached_property
    def codes(self) -> np.ndarray:  # type: ignore[override]  # nothing writes it
        return self._coded.codes

    def __len__(self) -> int:
        return self._count

    def span(self, rows: slice) -> CodedColumn:
        out = super().span(rows)
        if self._parse is not None:
            out = LateColumn(len(out), partial(self.take, rows), partial(_parsed_span, self._parse, rows))
        return out

    def packed(self) -> PackedColumn:
        return self._coded.packed()

    __getstate__ = PackedColumn.__getstate__

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        found = None if self._parse is None else self._parse(missing)
        return self._coded.numbers(missing) if found is None else found


def _parsed_span(
    parse: Callable[[tuple[str, ...]], np.ndarray | None], rows: slice, missing: tuple[str, ...]
) -> np.ndarray | None:
    found = parse(missing)
    return None if found is None else found[rows]


class NameCells(LateColumn):
    """Values where they stand in the bytes of a block."""

    def __init__(self, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray):
        super().__init__(len(starts), partial(coded, data, starts, lengths))
        self.data = data  # uint8
        self.starts, self.lengths = starts, lengths  # [N] int64, [N] int32


def number_text(number: float) -> str:
    """Return a number as text that can be read back exactly; empty for NaN, and without a point for a whole number.

    So a category has one name, whether numbers came as integers or, beside a missing one, as floats.
    """
    if number != number:
        return ""
    return str(int(number)) if number.is_integer() and abs(number) <= MOST_WHOLE else repr(number)


class NumberColumn(Sequence[str]):
    """A column of numbers that never were text."""

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers  # [N] float64, finite or NaN where one is missing

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(map(number_text, self.numbers[place].tolist()))
        return number_text(float(self.numbers[place]))

    def __iter__(self) -> Iterator[str]:
        return map(number_text, self.numbers.tolist())

    def take(self, rows: np.ndarray | slice) -> NumberColumn:
        """Return the values of some positions."""
        return NumberColumn(self.numbers[rows])


def in_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes that occur, in order of first appearance, and all codes numbered in that order."""
    first, numbers = np.full(size, len(codes)), np.empty(size, np.int32)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal places, the last one counts
    order = np.argsort(first)[: np.count_nonzero(first < len(codes))].astype(np.int32)
    numbers[order] = np.arange(len(order))
    return order, numbers[codes]


def coded(data: Any, starts: np.ndarray, lengths: np.ndarray) -> PackedColumn:
    """Return a column whose values stand at the given places."""
    return Cells(data, starts[None], lengths[None]).coded(0)


class ColumnList(Sequence[CodedColumn]):
    """Columns of the same rows, each made when it is needed."""

    @abstractmethod
    def column(self, number: int) -> CodedColumn:
        """Return a column by its number, from 0."""

    @abstractmethod
    def number_rows(self, which: Sequence[int], missing: tuple[str, ...]) -> np.ndarray | None:
        """Return columns as numbers, [n, len(which)], NaN where one is missing; None where one has words.

        None, too, where that takes columns one by one.
        """

    @overload
    def __getitem__(self, place: int) -> CodedColumn: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[CodedColumn, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        numbers = range(len(self))[place]
        return tuple(map(self.column, numbers)) if isinstance(place, slice) else self.column(numbers)


@dataclass(eq=False)
class Cells(ColumnList):
    """Columns of the rows of a block, by the places of their values in its bytes."""

    data: Any  # bytes, or an array of them
    starts: np.ndarray  # [width, n] int64, C-contiguous
    lengths: np.ndarray  # [width, n] int32, C-contiguous
    # No columns that refer to this, which would be freed late.
    _coded: dict[int, PackedColumn] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.starts)

    def column(self, number: int) -> LateColumn:
        return LateColumn(self.starts.shape[1], partial(self.coded, number), partial(self._numbers, number))

    def coded(self, column: int) -> PackedColumn:
        if column not in self._coded:
            self._coded[column] = self._coded_columns(np.array([column]))[0]
        return self._coded[column]

    def _coded_columns(self, which: np.ndarray) -> list[PackedColumn]:
        m, n = len(which), self.starts.shape[1]
        first, codes, counts = np.empty((m, n), np.int32), np.empty((m, n), np.int32), np.zeros(m, np.int64)
        hashes = np.empty((m, n), np.uint64)
        if m and n:
            slots = np.empty(max(1 << (4 * n - 1).bit_length(), 512), np.int32)
            _text.code_columns(self.data, self.starts, self.lengths, which, slots, hashes, first, codes, counts)
        distinct = np.arange(n) < counts[:, None]  # [m, n]
        places = np.repeat(which, counts), first[distinct]
        starts, lengths, hashes = self.starts[places], self.lengths[places], hashes[distinct]
        ends = offsets_of(lengths)
        blob = np.empty(ends[-1], np.uint8)
        _text.copy_texts(self.data, starts[None], lengths[None], np.zeros(1, np.int64), blob)
        return [
            PackedColumn(column_codes, blob[ends[a] : ends[b]], ends[a + 1 : b + 1] - ends[a], hashes[a:b])
            for column_codes, (a, b) in zip(codes, pairwise(offsets_of(counts).tolist()), strict=True)
        ]

    def parsed(
        self, which: np.ndarray, missing: tuple[str, ...], kinds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return columns as numbers [m, n], and which of them are made of numbers and missing values, [m] bool.

        A column is parsed up to its first word, or all of it if the kinds of its values are to be put into `kinds`.
        """
        numbers, numeric = np.empty((len(which), self.starts.shape[1])), np.empty(len(which), dtype=np.uint8)
        found = np.empty((0, 0), dtype=np.int8) if kinds is None else kinds
        cells, marks = (self.data, self.starts, self.lengths, which), packed_marks(missing)
        _text.number_columns(*cells, *marks, numbers, numeric, kinds is not None, found)
        return numbers, numeric.astype(bool)

    def number_rows(self, which: Sequence[int], missing: tuple[str, ...]) -> np.ndarray | None:
        numbers, numeric = self.parsed(np.asarray(which, dtype=np.int64), missing)
        return _rows(numbers, np.arange(len(numbers))) if numeric.all() else None

    def _numbers(self, column: int, missing: tuple[str, ...]) -> np.ndarray | None:
        numbers, numeric = self.parsed(np.array([column]), missing)
        return numbers[0] if numeric[0] else None

    def packed(self, missing: tuple[str, ...], numeric: bool) -> Table:
        """Return the columns without the bytes of the block; `numeric` unless none of them is used as numbers.

        The last column is the label, which is never a number.
        """
        is_number = np.zeros(len(self.starts), dtype=bool)
        tried = np.arange(len(is_number) - 1 if numeric else 0)
        numbers, found = self.parsed(tried, missing)
        is_number[: len(tried)] = found
        which, others = np.flatnonzero(is_number), np.flatnonzero(~is_number)
        lengths = self.lengths[which]
        text = np.empty(int(lengths.sum(dtype=np.int64)), np.uint8)
        _text.copy_texts(self.data, self.starts, self.lengths, which, text)
        least = np.min_scalar_type(int(lengths.max(initial=0)))
        texts = NumberTexts(which, text, lengths.astype(least))
        known = dict(zip(others.tolist(), self._coded_columns(others), strict=True))
        return Table(is_number, numbers if found.all() else numbers[found], missing, [texts], known)


@dataclass(frozen=True)
class NumberTexts:
    """Text of columns of numbers in some rows."""

    columns: np.ndarray  # [k] which columns, ascending
    text: np.ndarray  # their bytes end to end, column by column
    lengths: np.ndarray  # [k, n] of values in the text

    @cached_property
    def _bounds(self) -> np.ndarray:
        """Bounds of the texts of columns in all text, [k+1]."""
        return offsets_of(self.lengths.sum(axis=1, dtype=np.int64))

    def of(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the text of a column, its values end to end, and their lengths [n] int32."""
        place = int(np.searchsorted(self.columns, column))
        begin, end = self._bounds[place : place + 2]
        return self.text[begin:end], self.lengths[place].astype(np.int32)

    def coded(self, column: int) -> PackedColumn:
        text, lengths = self.of(column)
        return coded(text, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)


class Table(ColumnList):
    """Columns of a file: those that are numbers, and codes of the others."""

    def __init__(
        self,
        is_number: np.ndarray,  # [width] bool
        numbers: np.ndarray,  # [k, N] of the columns that are
        missing: tuple[str, ...],  # texts that were read as missing numbers
        texts: list[NumberTexts],  # of consecutive rows; they may have more columns
        known: dict[int, PackedColumn],  # columns as codes: the others, and what was needed so far
    ):
        self.is_number, self.numbers, self.missing, self.texts, self._known = is_number, numbers, missing, texts, known
        self.place = np.cumsum(is_number) - 1  # [width] of each column of numbers among those

    def __len__(self) -> int:
        return len(self.is_number)

    def column(self, number: int) -> CodedColumn:
        if not self.is_number[number]:
            return self._known[number]
        return LateColumn(self.numbers.shape[1], partial(self.coded, number), partial(self._numbers, number))

    def coded(self, column: int) -> PackedColumn:
        if column not in self._known:
            self._known[column] = joined_columns([own.coded(column) for own in self.texts])
        return self._known[column]

    def _numbers(self, column: int, missing: tuple[str, ...]) -> np.ndarray | None:
        return self.numbers[self.place[column]] if missing == self.missing else None

    def number_rows(self, which: Sequence[int], missing: tuple[str, ...]) -> np.ndarray | None:
        places = np.asarray(which, dtype=np.int64)
        if missing != self.missing or not self.is_number[places].all():
            return None
        return _rows(self.numbers, self.place[places])


def _rows(numbers: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return rows of numbers [., N] as columns, [N, len(which)]."""
    out = np.empty((numbers.shape[1], len(which)))
    for some in ranges(len(out), 1024):  # which stay in the cache
        out[some] = numbers[which, some].T
    return out


class Strings:
    """Distinct strings in the order in which they were added, as bytes."""

    def __init__(self) -> None:
        self.count = 0
        self._blob, self._ends = np.empty(1 << 12, np.uint8), np.empty(256, np.int64)
        self._hashes, self._slots = np.empty(256, np.uint64), np.full(512, -1, np.int32)

    def add(self, column: PackedColumn) -> np.ndarray:
        """Return the numbers [V] of the distinct values of a column among all."""
        count, new = self.count, len(column.ends)
        numbers = np.empty(new, np.int32)
        if not new:
            return numbers
        size = int(self._ends[count - 1]) if count else 0
        self._blob = _with_room(self._blob, size + len(column.blob), size)
        self._ends, self._hashes = (_with_room(own, count + new, count) for own in (self._ends, self._hashes))
        if len(self._slots) <= 2 * (count + new):
            self._slots = np.empty(1 << (3 * (count + new)).bit_length(), np.int32)
            _text.place_values(self._hashes, count, self._slots)
        known = self._slots, self._blob, self._ends, self._hashes
        self.count = _text.merge_values(column.blob, column.ends, column.hashes, *known, count, numbers)
        return numbers

    def column(self, codes: np.ndarray) -> PackedColumn:
        """Return a column of codes, which are numbers of these strings."""
        ends, hashes = self._ends[: self.count].copy(), self._hashes[: self.count].copy()
        return PackedColumn(codes, self._blob[: ends[-1] if self.count else 0].copy(), ends, hashes)


def _with_room(array: np.ndarray, size: int, used: int) -> np.ndarray:
    """Return the array, or a larger one with the same beginning."""
    if len(array) >= size:
        return array
    out = np.empty(max(size, 2 * len(array)), array.dtype)
    out[:used] = array[:used]
    return out


class ColumnBuilder:
    """One column of codes out of consecutive ones. Distinct values are joined as they come, codes at the end."""

    def __init__(self, columns: Iterable[PackedColumn] = ()) -> None:
        self._strings = Strings()
        self._parts: list[tuple[np.ndarray, np.ndarray]] = []  # codes, and their numbers among all
        for column in columns:
            self.add(column)

    def add(self, column: PackedColumn) -> None:
        self._parts.append((column.codes, self._strings.add(column)))

    def column(self) -> PackedColumn:
        """Return all of it, once."""
        parts, self._parts = [numbers[codes] for codes, numbers in self._parts], []
        return self._strings.column(np.concatenate([np.empty(0, np.int32), *parts]))


def joined_columns(columns: Sequence[PackedColumn]) -> PackedColumn:
    """Return one column out of consecutive ones."""
    return columns[0] if len(columns) == 1 else ColumnBuilder(columns).column()


class TableBuilder:
    """One table out of consecutive ones: what has to be done one after the other is done as they come."""

    def __init__(self) -> None:
        self._tables: list[Table] = []  # without their codes
        self._builders: dict[int, ColumnBuilder] = {}

    def add(self, table: Table) -> None:
        for column in np.flatnonzero(~table.is_number).tolist():
            if column not in self._builders:
                self._builders[column] = ColumnBuilder(known.coded(column) for known in self._tables)
        for column, builder in self._builders.items():
            builder.add(table.coded(column))
        self._tables.append(Table(table.is_number, table.numbers, table.missing, table.texts, {}))

    def table(self) -> Table:
        tables, is_number = self._tables, self._tables[0].is_number.copy()
        is_number[list(self._builders)] = False
        which, known = np.flatnonzero(is_number), {place: one.column() for place, one in self._builders.items()}
        bounds = offsets_of(np.array([own.numbers.shape[1] for own in tables])).tolist()
        numbers = np.empty((len(which), bounds[-1]))
        for own, (first, last) in zip(tables, pairwise(bounds), strict=True):
            numbers[:, first:last] = own.numbers[own.place[which]]
            own.numbers = np.empty((0, 0))  # a part of it would keep all of it
        return Table(is_number, numbers, tables[0].missing, [texts for own in tables for texts in own.texts], known)
