"""Columns of a corpus: values as codes, as numbers, or as places in bytes that were read.

No string is made of each value: `Cells` say where the values of a block stand. Whole files are read part by part, one
for each block, in which columns are codes and distinct values, or numbers and the bytes that they were; a `Table` is
all of them. Users of a column need not know which of the two it is: numbers are made of codes and codes of numbers
where they are asked for, and are the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, overload

import numpy as np

from ..system import Workers
from . import _text
from .layout import MISSING

NUMBER, LACKING, WORD = 1, 0, -1  # kinds of values in a search for numbers


@lru_cache(maxsize=64)
def packed_marks(marks: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return texts end to end and their lengths, as Cython takes them."""
    encoded = [mark.encode() for mark in marks]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array([len(mark) for mark in encoded], dtype=np.int32)


# ----------------------------------------------------------------------------- columns


class CodedColumn(Sequence[str]):
    """A column as its distinct values and, for each position, the number of its value."""

    def __init__(self, values: list[str], codes: np.ndarray):
        self._values, self._codes = values, codes

    @property
    def values(self) -> list[str]:
        """Distinct values [V] in order of first appearance, or labels of a model, which it may not all have."""
        return self._values

    @property
    def codes(self) -> np.ndarray:
        """Number of the value of each position, [N] int32."""
        return self._codes

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

    def packed(self) -> PackedColumn:
        """Return the column with its values as bytes."""
        encoded = [value.encode() for value in self.values]
        ends = np.cumsum([len(value) for value in encoded], dtype=np.int64)
        return PackedColumn(self.codes, np.frombuffer(b"".join(encoded), np.uint8), ends)

    def distinct_numbers(self, missing: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values as numbers [V], NaN where they are none, and the kind of each [V] int8."""
        return self.packed().distinct_numbers(missing)

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        """Return the column as finite numbers [N], NaN where one is missing; None where it has words."""
        numbers, kinds = self.distinct_numbers(missing)
        used = np.bincount(self.codes, minlength=len(kinds)) > 0
        return None if (kinds[used] == WORD).any() else numbers[self.codes]


class PackedColumn(CodedColumn):
    """A column whose distinct values are UTF-8 end to end, and become strings when they are asked for."""

    def __init__(
        self,
        codes: np.ndarray,
        blob: np.ndarray,  # uint8
        ends: np.ndarray,  # [V] int64, where each value ends in the blob
        hashes: np.ndarray | None = None,  # [V] uint64
        begin: int = 0,  # where the first value begins
    ):
        self._codes, self.blob, self.ends, self.begin = codes, blob, ends, begin
        self._hashes = hashes

    @cached_property
    def values(self) -> list[str]:
        return decoded(self.blob, self._starts, self.ends)

    @property
    def _starts(self) -> np.ndarray:
        return np.concatenate([np.array([self.begin], dtype=np.int64), self.ends])[: len(self.ends)]

    @property
    def _cells(self) -> Cells:
        """Distinct values as one column."""
        starts = self._starts
        return Cells(self.blob, starts[None], (self.ends - starts).astype(np.int32)[None])

    @property
    def hashes(self) -> np.ndarray:
        """Hashes of the values, [V]."""
        if self._hashes is None:
            self._hashes = self._cells.coded(0).hashes
        return self._hashes

    def packed(self) -> PackedColumn:
        return self

    def distinct_numbers(self, missing: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        kinds = np.empty((1, len(self.ends)), dtype=np.int8)
        numbers, _ = self._cells.parsed(np.zeros(1, np.int64), missing, kinds)
        return numbers[0], kinds[0]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "values"}


class LateColumn(CodedColumn):
    """A column that is coded when its codes are asked for."""

    @abstractmethod
    def packed(self) -> PackedColumn:
        """Return the column, coded."""

    @property
    def values(self) -> list[str]:
        return self.packed().values

    @property
    def codes(self) -> np.ndarray:
        return self.packed().codes


class NameCells(LateColumn):
    """Values where they stand in the bytes of a block."""

    def __init__(self, data: np.ndarray, starts: np.ndarray, lengths: np.ndarray):
        self.data = data  # uint8
        self.starts, self.lengths = starts, lengths  # [N] int64, [N] int32

    @cached_property
    def _packed(self) -> PackedColumn:
        return coded(self.data, self.starts, self.lengths)

    def packed(self) -> PackedColumn:
        return self._packed


class ColumnSpan(CodedColumn):
    """Consecutive values of a column, with codes of their own once they are asked for."""

    def __init__(self, column: CodedColumn, rows: slice):
        self._column, self._rows = column, rows

    @cached_property
    def _own(self) -> CodedColumn:
        return self._column.take(self._rows)

    @property
    def values(self) -> list[str]:
        return self._own.values

    @property
    def codes(self) -> np.ndarray:
        return self._own.codes

    def __len__(self) -> int:
        return len(range(*self._rows.indices(len(self._column))))

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        if isinstance(self._column, TableColumn):
            found = self._column.numbers(missing)
            return None if found is None else found[self._rows]
        return super().numbers(missing)


class NumberColumn(Sequence[str]):
    """A column of numbers that never were text; as text they are written so that they can be read back exactly."""

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers  # [N] float64, finite or NaN where one is missing

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return list(map(repr, self.numbers[place].tolist()))
        return repr(float(self.numbers[place]))

    def take(self, rows: np.ndarray | slice) -> NumberColumn:
        """Return the values of some positions."""
        return NumberColumn(self.numbers[rows])


def decoded(blob: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> list[str]:
    """Return the strings between places of UTF-8 bytes, which follow one another."""
    if not len(ends):
        return []
    first, last = int(starts[0]), int(ends[-1])
    part = blob[first:last]
    text = part.tobytes().decode("utf-8")
    begins, stops = starts - first, ends - first
    if len(text) < len(part):  # places of characters, not of bytes
        characters = np.concatenate([[0], np.cumsum((part & 0xC0) != 0x80)])
        begins, stops = characters[begins], characters[stops]
    return [text[begin:stop] for begin, stop in zip(begins.tolist(), stops.tolist(), strict=True)]


def in_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes that occur, in order of first appearance, and all codes numbered in that order."""
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    numbers, order, out = np.full(size, -1, np.int32), np.empty(size, np.int32), np.empty(len(codes), np.int32)
    count = _text.by_first_appearance(codes, numbers, order, out)
    return order[:count], out


def coded(data: Any, starts: np.ndarray, lengths: np.ndarray) -> PackedColumn:
    """Return a column whose values stand at the given places."""
    return Cells(data, starts[None], lengths[None]).coded(0)


# ----------------------------------------------------------------------------- several columns of the same rows


class ColumnList(Sequence[CodedColumn]):
    """Columns of the same rows, each made when it is asked for."""

    @abstractmethod
    def column(self, number: int) -> CodedColumn:
        """Return a column by its number, from 0."""

    @overload
    def __getitem__(self, place: int) -> CodedColumn: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[CodedColumn, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        numbers = range(len(self))[place]
        return tuple(map(self.column, numbers)) if isinstance(place, slice) else self.column(numbers)


class _Coded:
    """Some columns of the same rows as codes, their distinct values end to end."""

    def __init__(self, codes: np.ndarray, blob: np.ndarray, ends: np.ndarray, hashes: np.ndarray, bounds: np.ndarray):
        self.codes = codes  # [m, n]
        self.blob, self.ends, self.hashes = blob, ends, hashes  # [bytes], [V], [V] of all columns
        self.bounds = bounds  # [m + 1] where the values of each begin among all

    def column(self, m: int) -> PackedColumn:
        first, last = int(self.bounds[m]), int(self.bounds[m + 1])
        begin = int(self.ends[first - 1]) if first else 0
        return PackedColumn(self.codes[m], self.blob, self.ends[first:last], self.hashes[first:last], begin)


class Cells(ColumnList):
    """The columns of the rows of a block, by the places of their values in its bytes."""

    def __init__(self, data: Any, starts: np.ndarray, lengths: np.ndarray):
        self.data = data  # bytes, or an array of them
        self.starts, self.lengths = starts, lengths  # [width, n] int64 and int32, C-contiguous
        self._coded: dict[int, PackedColumn] = {}  # not columns, which refer to this: such circles are freed late

    def __len__(self) -> int:
        return len(self.starts)

    def column(self, number: int) -> CellColumn:
        return CellColumn(self, number)

    def coded(self, column: int) -> PackedColumn:
        """Return a column as codes."""
        if column not in self._coded:
            self._coded[column] = self._coded_columns(np.array([column])).column(0)
        return self._coded[column]

    def _coded_columns(self, which: np.ndarray) -> _Coded:
        m, n = len(which), self.starts.shape[1]
        first, codes, counts = np.empty((m, n), np.int32), np.empty((m, n), np.int32), np.zeros(m, np.int64)
        size = 0
        if m and n:
            slots = np.empty(max(1 << (4 * n - 1).bit_length(), 512), np.int32)
            hashes = np.empty(n, np.uint64)
            cells = self.data, self.starts, self.lengths, which
            size = _text.code_columns(*cells, slots, hashes, first, codes, counts)
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        V = int(bounds[-1])
        blob, ends, hashes = np.empty(size, np.uint8), np.empty(V, np.int64), np.empty(V, np.uint64)
        if V:
            _text.copy_values(*cells, first, counts, blob, ends, hashes)
        return _Coded(codes, blob, ends, hashes, bounds)

    def parsed(
        self, which: np.ndarray, missing: tuple[str, ...], kinds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return columns as numbers [m, n], and which of them are made of numbers and missing values, [m] bool.

        A column is parsed up to its first word, or all of it if the kinds of its values are to be put into `kinds`.
        """
        numbers, numeric = np.empty((len(which), self.starts.shape[1])), np.empty(len(which), dtype=np.uint8)
        none = np.empty((0, 0), dtype=np.int8)
        marks, found = packed_marks(missing), none if kinds is None else kinds
        _text.number_columns(
            self.data, self.starts, self.lengths, which, *marks, numbers, numeric, kinds is not None, found
        )
        return numbers, numeric.astype(bool)

    def number_rows(self, which: Sequence[int], missing: tuple[str, ...]) -> np.ndarray | None:
        """Return columns as numbers, [n, len(which)], NaN where one is missing; None where one has words."""
        numbers, numeric = self.parsed(np.asarray(which, dtype=np.int64), missing)
        return _rows(numbers, np.arange(len(numbers))) if numeric.all() else None

    def packed(self, missing: tuple[str, ...], numeric: bool) -> Table:
        """Return the columns without the bytes of the block; `numeric` unless none of them is looked at as numbers.

        The last column is the label, which is never a number.
        """
        width, n = self.starts.shape
        tried = np.arange(width - 1 if numeric else 0)
        numbers, found = self.parsed(tried, missing)
        is_number = np.zeros(width, dtype=bool)
        is_number[: len(tried)] = found
        which = np.flatnonzero(is_number)
        lengths = self.lengths[which] if len(which) < width else self.lengths
        text = np.empty(int(lengths.sum(dtype=np.int64)), np.uint8)
        _text.copy_texts(self.data, self.starts, self.lengths, which, text)
        least = np.min_scalar_type(int(lengths.max(initial=0)))
        others = self._coded_columns(np.flatnonzero(~is_number))
        part = TablePart(n, is_number, numbers if found.all() else numbers[found], text, lengths.astype(least), others)
        return Table([part], missing)


class CellColumn(LateColumn):
    """One column of a block, which becomes codes or numbers when they are asked for."""

    def __init__(self, cells: Cells, column: int):
        self._cells, self._column = cells, column

    def __len__(self) -> int:
        return self._cells.starts.shape[1]

    def packed(self) -> PackedColumn:
        return self._cells.coded(self._column)

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        found = self._cells.number_rows([self._column], missing)
        return None if found is None else found[:, 0]


class TablePart:
    """Some rows of a table: columns of numbers with the text that they were, and columns of codes."""

    def __init__(
        self,
        rows: int,
        is_number: np.ndarray,  # [width] bool
        numbers: np.ndarray,  # [k, n] those of the columns that are
        text: np.ndarray,  # their bytes end to end, column by column
        lengths: np.ndarray,  # [k, n] of values in the text
        others: _Coded,
    ):
        self.rows, self.is_number = rows, is_number
        self.numbers, self.text, self.lengths = numbers, text, lengths
        self.others: _Coded | None = others  # None once a builder has taken them
        self.place = _places(is_number)

    def coded(self, column: int) -> PackedColumn:
        """Return a column as codes."""
        if not self.is_number[column]:
            assert self.others is not None
            return self.others.column(int(self.place[column]))
        text, lengths = self.text_of(column)
        return coded(text, np.cumsum(lengths, dtype=np.int64) - lengths, lengths)

    def text_of(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the text of a column of numbers, its values end to end, and their lengths [n] int32."""
        place = int(self.place[column])
        return self.text[slice(*self._text_bounds[place : place + 2])], self.lengths[place].astype(np.int32)

    @cached_property
    def _text_bounds(self) -> np.ndarray:
        """Beginnings of the text of each column of numbers."""
        sizes = self.lengths.sum(axis=1, dtype=np.int64)
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def _places(is_number: np.ndarray) -> np.ndarray:
    """Return the place [width] of each column among those of numbers, or among the others."""
    return np.where(is_number, np.cumsum(is_number), np.cumsum(~is_number)) - 1


class Table(ColumnList):
    """The columns of a file."""

    def __init__(self, parts: list[TablePart], missing: tuple[str, ...]):
        self.parts, self.missing = parts, missing
        self.is_number = parts[0].is_number
        self.numbers = parts[0].numbers  # [k, N]
        self.place = parts[0].place
        self._coded: dict[int, PackedColumn] = {}

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def __len__(self) -> int:
        return len(self.is_number)

    def column(self, number: int) -> CodedColumn:
        return TableColumn(self, number) if self.is_number[number] else self.coded(number)

    def coded(self, column: int) -> PackedColumn:
        """Return a column as codes."""
        if column not in self._coded:
            self._coded[column] = joined_columns([part.coded(column) for part in self.parts])
        return self._coded[column]

    def number_rows(self, which: Sequence[int], missing: tuple[str, ...]) -> np.ndarray | None:
        """As `Cells.number_rows`; None too where some columns are codes, or were read with other marks."""
        places = np.asarray(which, dtype=np.int64)
        if missing != self.missing or not self.is_number[places].all():
            return None
        return _rows(self.numbers, self.place[places])


class TableColumn(LateColumn):
    """A column of numbers of a table, which becomes codes when they are asked for."""

    def __init__(self, table: Table, column: int):
        self._table, self._column = table, column

    def __len__(self) -> int:
        return self._table.rows

    def packed(self) -> PackedColumn:
        return self._table.coded(self._column)

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        if missing == self._table.missing:
            return self._table.numbers[self._table.place[self._column]]
        return self.packed().numbers(missing)


def _rows(numbers: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Return rows of numbers [., N] as columns, [N, len(which)]."""
    out = np.empty((numbers.shape[1], len(which)))
    _text.gather_rows(numbers, which.astype(np.int64), out)
    return out


# ----------------------------------------------------------------------------- joining


class Strings:
    """Distinct strings in the order in which they were added, as bytes."""

    def __init__(self) -> None:
        self.count = 0
        self._blob, self._ends = np.empty(1 << 12, np.uint8), np.empty(256, np.int64)
        self._hashes, self._slots = np.empty(256, np.uint64), np.full(512, -1, np.int32)

    def add(self, column: PackedColumn) -> np.ndarray:
        """Return the numbers [V] of the distinct values of a column among all."""
        new = len(column.ends)
        numbers = np.empty(new, np.int32)
        if not new:
            return numbers
        size = int(self._ends[self.count - 1]) if self.count else 0
        self._blob = _with_room(self._blob, size + int(column.ends[-1]) - column.begin, size)
        self._ends = _with_room(self._ends, self.count + new, self.count)
        self._hashes = _with_room(self._hashes, self.count + new, self.count)
        if len(self._slots) <= 2 * (self.count + new):
            self._slots = np.empty(1 << (3 * (self.count + new)).bit_length(), np.int32)
            _text.place_values(self._hashes, self.count, self._slots)
        given = column.blob, column.begin, column.ends, column.hashes
        known = self._slots, self._blob, self._ends, self._hashes
        self.count = _text.merge_values(*given, *known, self.count, numbers)
        return numbers

    def column(self, codes: np.ndarray) -> PackedColumn:
        """Return a column of codes, which are numbers of these strings."""
        size = int(self._ends[self.count - 1]) if self.count else 0
        ends, hashes = self._ends[: self.count].copy(), self._hashes[: self.count].copy()
        return PackedColumn(codes, self._blob[:size].copy(), ends, hashes)


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
        self.strings = Strings()
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []  # codes, and their numbers among all
        for column in columns:
            self.add(column)

    def add(self, column: PackedColumn) -> None:
        self.parts.append((column.codes, self.strings.add(column)))


def build_columns(builders: Sequence[ColumnBuilder], workers: Workers | None = None) -> list[PackedColumn]:
    """Return the columns of builders with parts of the same rows; a part is the work of one thread."""
    sizes = [len(codes) for codes, _ in builders[0].parts] if builders else []
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
    out = np.empty((len(builders), bounds[-1]), np.int32)

    def work(number: int) -> None:
        for builder, codes in zip(builders, out, strict=True):
            own, numbers = builder.parts[number]
            np.take(numbers, own, out=codes[bounds[number] : bounds[number + 1]], mode="clip")  # "raise" would copy
            builder.parts[number] = (np.empty(0, np.int32), numbers)

    _run(work, len(sizes), workers)
    return [builder.strings.column(codes) for builder, codes in zip(builders, out, strict=True)]


def joined_columns(columns: Sequence[PackedColumn]) -> PackedColumn:
    """Return one column out of consecutive ones."""
    return columns[0] if len(columns) == 1 else build_columns([ColumnBuilder(columns)])[0]


def _run(work: Callable[[int], None], count: int, workers: Workers | None) -> None:
    """Call `work` with 0, 1, ..., count - 1, by the threads of `workers` if there are any."""
    if workers is not None:
        workers.run(work, range(count))
        return
    for number in range(count):
        work(number)


class TableBuilder:
    """One table out of consecutive parts: what has to be done one after the other is done as they come."""

    def __init__(self) -> None:
        self._parts: list[TablePart] = []
        self._is_number = np.zeros(0, dtype=bool)
        self._builders: dict[int, ColumnBuilder] = {}
        self._missing: tuple[str, ...] = MISSING

    def add(self, table: Table) -> None:
        self._missing = table.missing
        for part in table.parts:
            if not self._parts:
                self._is_number = part.is_number
            elif len(self._parts) == 1:
                self._begin(np.flatnonzero(~self._is_number))
            self._parts.append(part)
            if len(self._parts) > 1:
                words = np.flatnonzero(self._is_number & ~part.is_number)
                if len(words):
                    self._is_number = self._is_number & part.is_number
                for column, builder in self._builders.items():
                    builder.add(part.coded(column))
                self._begin(words)
                part.others = None

    def _begin(self, columns: np.ndarray) -> None:
        """Take these columns for codes, in the parts so far, too."""
        for column in columns.tolist():
            self._builders[column] = ColumnBuilder(part.coded(column) for part in self._parts)
        if len(self._parts) == 1:
            self._parts[0].others = None

    def table(self, workers: Workers | None = None) -> Table:
        out = Table(self._parts, self._missing)
        if len(self._parts) == 1:
            return out
        parts, which = self._parts, np.flatnonzero(self._is_number)
        bounds = np.concatenate([[0], np.cumsum([part.rows for part in parts])]).tolist()
        out.is_number, out.place = self._is_number, _places(self._is_number)
        out.numbers = np.empty((len(which), bounds[-1]))

        def copy(number: int) -> None:
            part = parts[number]
            same = len(which) == len(part.numbers)
            source = part.numbers if same else part.numbers[part.place[which]]
            out.numbers[:, bounds[number] : bounds[number + 1]] = source
            part.numbers = np.empty((0, 0))  # a part of it would keep all of it

        if len(which):
            _run(copy, len(parts), workers)
        columns = build_columns(list(self._builders.values()), workers)
        out._coded.update(zip(self._builders, columns, strict=True))
        return out
