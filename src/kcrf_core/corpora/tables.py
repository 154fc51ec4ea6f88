"""Columns of a corpus: values as codes, as numbers, or as places in the bytes that were read.

No string is made of each value: `Cells` are the places of the values of a block, a `Column` makes codes or numbers of
them when they are needed, and a `ColumnBuilder` joins the columns of blocks to one of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np

from ..system import offsets_of
from . import _text

NUMBER, LACKING, WORD = 1, 0, -1  # kinds of values in a search for numbers


@lru_cache(maxsize=64)
def packed_marks(marks: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return texts end to end and their lengths, as Cython takes them."""
    encoded = [mark.encode() for mark in marks]
    return np.frombuffer(b"".join(encoded), np.uint8), np.array([len(mark) for mark in encoded], dtype=np.int32)


# ----------------------------------------------------------------------------- one column


class Utf8(NamedTuple):
    """Distinct strings as UTF-8 end to end."""

    blob: np.ndarray  # uint8, the strings and nothing else
    ends: np.ndarray  # [V] int64, where each string ends in the blob
    hashes: np.ndarray  # [V] uint64


class Numbers(NamedTuple):
    """Numbers of N positions, with the text that they were."""

    array: np.ndarray  # [N] float64, finite or NaN where one is missing
    missing: tuple[str, ...] | None = None  # texts that were read as missing numbers; None: they never were text
    texts: Sequence[tuple[np.ndarray, np.ndarray]] = ()  # of consecutive rows: their bytes end to end, and lengths [n]

    def column(self) -> Column:
        return Column(count=len(self.array), code=self._coded, parse=self._parsed, read=self)

    def written(self) -> list[str]:
        """Return numbers that never were text so that they can be read back exactly."""
        return list(map(repr, self.array.tolist()))

    def _coded(self) -> Column:
        if self.missing is None:
            return Column.of(self.written())
        return joined_columns([end_to_end(*part).coded(0) for part in self.texts])

    def _parsed(self, missing: tuple[str, ...]) -> np.ndarray | None:
        return self.array if self.missing in (None, missing) else None


class Column(Sequence[str]):
    """Values of N positions by codes of distinct values or as numbers, which are made when they are needed."""

    def __init__(
        self,
        values: list[str] | Utf8 | None = None,  # [V] by first appearance, or labels of a model, which may not occur
        codes: np.ndarray | None = None,  # [N] int32
        count: int = 0,  # N, where `code` makes a column with values and codes when they are needed
        code: Callable[[], Column] | None = None,
        parse: Callable[[tuple[str, ...]], np.ndarray | None] | None = None,  # None: numbers come from the codes
        read: Numbers | None = None,
        places: tuple[Any, np.ndarray, np.ndarray] | None = None,
        is_category: bool = False,
    ):
        self._count, self._code, self._parse = count if codes is None else len(codes), code, parse
        self.read = read  # of a column of nothing but numbers, if they have been read
        self.places = places  # bytes, beginnings [N] int64 and lengths [N] int32 of values, where they stand in bytes
        self.is_category = is_category  # True: values are no numbers even if they look like some
        if codes is not None:
            vars(self).update({"utf8" if isinstance(values, Utf8) else "values": values, "codes": codes})

    @classmethod
    def of(cls, values: Sequence[str]) -> Column:
        """Return a column of any values."""
        if isinstance(values, Column):
            return values
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        return Column(list(numbers), np.fromiter(map(numbers.__getitem__, values), np.int32, len(values)))

    @cached_property
    def _coded(self) -> Column:
        assert self._code is not None  # a column without it has codes
        return self._code()

    @cached_property
    def codes(self) -> np.ndarray:
        """Number of the value of each position, [N] int32."""
        return self._coded.codes

    @cached_property
    def values(self) -> list[str]:
        """Distinct values, [V]."""
        if self._code is not None:
            return self._coded.values
        text, ends = self.utf8.blob.tobytes().decode("utf-8", "surrogatepass"), self.utf8.ends
        if len(text) < len(self.utf8.blob):  # places of characters, not of bytes
            ends = offsets_of((self.utf8.blob & 0xC0) != 0x80)[ends]
        return [text[begin:end] for begin, end in pairwise([0, *ends.tolist()])]

    @cached_property
    def utf8(self) -> Utf8:
        """Distinct values as bytes."""
        if self._code is not None:
            return self._coded.utf8
        encoded = [value.encode() for value in self.values]
        lengths = np.array([len(value) for value in encoded], np.int32)
        return end_to_end(np.frombuffer(b"".join(encoded), np.uint8), lengths).coded(0).utf8

    @cached_property
    def present(self) -> frozenset[str]:
        """Values that some position has."""
        counts = np.bincount(self.codes, minlength=len(self.values))
        return frozenset(value for value, count in zip(self.values, counts.tolist(), strict=True) if count)

    @property
    def exact(self) -> np.ndarray | None:
        """Numbers that never were text, [N]."""
        return self.read.array if self.read is not None and self.read.missing is None else None

    def numbered(self, names: Sequence[str], other: int = -1) -> np.ndarray:
        """Return the place of the value of each position among some names, [N] int64; `other` where it has none."""
        places = {name: place for place, name in enumerate(names)}
        return np.array([places.get(value, other) for value in self.values], dtype=np.int64)[self.codes]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if self.exact is not None and isinstance(place, slice):
            return Numbers(self.exact[place]).written()
        if isinstance(place, slice):
            return list(map(self.values.__getitem__, self.codes[place].tolist()))
        return self.values[self.codes[place]] if self.exact is None else repr(float(self.exact[place]))

    def __iter__(self) -> Iterator[str]:
        return iter(self[:])

    def __getstate__(self) -> dict[str, Any]:
        known = vars(self).copy()
        if "utf8" in known or self._code is not None:
            known.pop("values", None)
        return known

    def take(self, rows: np.ndarray | slice) -> Column:
        """Return the values of some positions; those of a slice are numbered when their codes are needed."""
        if self.exact is not None:
            return Numbers(self.exact[rows]).column()
        if isinstance(rows, slice) and not self.is_category:
            count = len(range(*rows.indices(len(self))))
            return Column(count=count, code=partial(self._taken, rows), parse=partial(self._parsed, rows))
        return self._taken(rows)

    def _taken(self, rows: np.ndarray | slice) -> Column:
        order, codes = in_order(self.codes[rows], len(self.values))
        return Column([self.values[code] for code in order.tolist()], codes, is_category=self.is_category)

    def _parsed(self, rows: slice, missing: tuple[str, ...]) -> np.ndarray | None:
        numbers = None if self._parse is None else self._parse(missing)
        return None if numbers is None else numbers[rows]

    def distinct_numbers(self, missing: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values as numbers [V], NaN where they are none, and the kind of each [V] int8."""
        cells = end_to_end(self.utf8.blob, np.diff(self.utf8.ends, prepend=0))
        kinds = np.empty(cells.lengths.shape, dtype=np.int8)
        numbers, _ = cells.parsed(np.zeros(1, np.int64), missing, kinds)
        return numbers[0], kinds[0]

    def numbers(self, missing: tuple[str, ...]) -> np.ndarray | None:
        """Return the column as finite numbers [N], NaN where one is missing; None where it has words."""
        parsed = self._parsed(slice(None), missing)
        if parsed is not None:
            return parsed
        numbers, kinds = self.distinct_numbers(missing)
        used = np.bincount(self.codes, minlength=len(kinds)) > 0
        return None if (kinds[used] == WORD).any() else numbers[self.codes]


def in_order(codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes that occur, in order of first appearance, and all codes numbered in that order."""
    first, numbers = np.full(size, len(codes)), np.empty(size, np.int32)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal places, the last one counts
    order = np.argsort(first)[: np.count_nonzero(first < len(codes))].astype(np.int32)
    numbers[order] = np.arange(len(order))
    return order, numbers[codes]


# ----------------------------------------------------------------------------- columns of a block


@dataclass(eq=False)
class Cells(Sequence[Column]):
    """Columns of the rows of a block, by the places of their values in its bytes."""

    data: Any  # bytes, or an array of them
    starts: np.ndarray  # [width, n] int64, C-contiguous
    lengths: np.ndarray  # [width, n] int32, C-contiguous
    # No columns that refer to this, which would be freed late.
    _coded: dict[int, Column] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, place: int) -> Column: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Column, ...]: ...
    def __getitem__(self, place: Any) -> Any:
        number = range(len(self))[place]
        if isinstance(number, range):
            return tuple(self[one] for one in number)
        places = self.data, self.starts[number], self.lengths[number]
        code, parse = partial(self.coded, number), partial(self._numbers, number)
        return Column(count=self.starts.shape[1], code=code, parse=parse, places=places)

    def coded(self, column: int) -> Column:
        if column not in self._coded:
            self._coded[column] = self._coded_columns(np.array([column]))[0]
        return self._coded[column]

    def _coded_columns(self, which: np.ndarray) -> list[Column]:
        m, n = len(which), self.starts.shape[1]
        first, codes, counts = np.empty((m, n), np.int32), np.empty((m, n), np.int32), np.zeros(m, np.int64)
        size = 0
        if m and n:
            slots = np.empty(max(1 << (4 * n - 1).bit_length(), 512), np.int32)
            hashes = np.empty(n, np.uint64)
            cells = self.data, self.starts, self.lengths, which
            size = _text.code_columns(*cells, slots, hashes, first, codes, counts)
        V = int(counts.sum())
        blob, ends, hashes = np.empty(size, np.uint8), np.zeros(V + 1, np.int64), np.empty(V, np.uint64)
        if V:
            _text.copy_values(*cells, first, counts, blob, ends[1:], hashes)
        return [
            Column(Utf8(blob[ends[a] : ends[b]], ends[a + 1 : b + 1] - ends[a], hashes[a:b]), row)
            for row, (a, b) in zip(codes, pairwise(offsets_of(counts).tolist()), strict=True)
        ]

    def parsed(
        self, which: np.ndarray, missing: tuple[str, ...], kinds: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return columns as numbers [m, n], and which of them are made of numbers and missing values, [m] bool.

        A column is parsed up to its first word, or all of it if the kinds of its values are to be put into `kinds`.
        """
        numbers, numeric = np.empty((len(which), self.starts.shape[1])), np.empty(len(which), dtype=np.uint8)
        out = np.empty((0, 0), dtype=np.int8) if kinds is None else kinds
        cells, marks = (self.data, self.starts, self.lengths, which), packed_marks(missing)
        _text.number_columns(*cells, *marks, numbers, numeric, kinds is not None, out)
        return numbers, numeric.astype(bool)

    def _numbers(self, column: int, missing: tuple[str, ...]) -> np.ndarray | None:
        numbers, numeric = self.parsed(np.array([column]), missing)
        return numbers[0] if numeric[0] else None

    def packed(self, missing: tuple[str, ...], numeric: bool) -> tuple[Column, ...]:
        """Return the columns without the bytes of the block; `numeric` unless none of them is used as numbers.

        The last column is the label, which is never a number.
        """
        numbers, is_number = self.parsed(np.arange(len(self) - 1 if numeric else 0), missing)
        which = np.flatnonzero(is_number)
        others = np.setdiff1d(np.arange(len(self)), which)
        lengths = self.lengths[which]
        ends = offsets_of(lengths.sum(axis=1, dtype=np.int64)).tolist()
        text = np.empty(ends[-1], np.uint8)
        _text.copy_texts(self.data, self.starts, self.lengths, which, text)
        lengths = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))
        columns = dict(zip(others.tolist(), self._coded_columns(others), strict=True))
        for place, sizes, (begin, end) in zip(which.tolist(), lengths, pairwise(ends), strict=True):
            columns[place] = Numbers(numbers[place], missing, [(text[begin:end], sizes)]).column()
        return tuple(columns[place] for place in range(len(self)))


def end_to_end(text: np.ndarray, lengths: np.ndarray) -> Cells:
    """Return one column of the values whose bytes stand one behind the other, with these lengths [n]."""
    starts = np.cumsum(lengths, dtype=np.int64) - lengths
    return Cells(text, starts[None], lengths[None].astype(np.int32, copy=False))


# ----------------------------------------------------------------------------- joining


class Strings:
    """Distinct strings in the order in which they were added, as bytes."""

    def __init__(self) -> None:
        self.count = 0
        self._blob, self._ends = np.empty(1 << 12, np.uint8), np.empty(256, np.int64)
        self._hashes, self._slots = np.empty(256, np.uint64), np.full(512, -1, np.int32)

    def add(self, strings: Utf8) -> np.ndarray:
        """Return the numbers [V] of distinct strings among all."""
        (blob, ends, hashes), count, new = strings, self.count, len(strings.ends)
        numbers = np.empty(new, np.int32)
        if not new:
            return numbers
        size = int(self._ends[count - 1]) if count else 0
        self._blob = _with_room(self._blob, size + len(blob), size)
        self._ends, self._hashes = (_with_room(array, count + new, count) for array in (self._ends, self._hashes))
        if len(self._slots) <= 2 * (count + new):
            self._slots = np.empty(1 << (3 * (count + new)).bit_length(), np.int32)
            _text.place_values(self._hashes, count, self._slots)
        known = self._slots, self._blob, self._ends, self._hashes
        self.count = _text.merge_values(blob, ends, hashes, *known, count, numbers)
        return numbers

    def column(self, codes: np.ndarray) -> Column:
        """Return a column of codes, which are numbers of these strings."""
        ends, hashes = self._ends[: self.count].copy(), self._hashes[: self.count].copy()
        return Column(Utf8(self._blob[: ends[-1] if self.count else 0].copy(), ends, hashes), codes)


def _with_room(array: np.ndarray, size: int, used: int) -> np.ndarray:
    """Return the array, or a larger one with the same beginning."""
    if len(array) >= size:
        return array
    out = np.empty(max(size, 2 * len(array)), array.dtype)
    out[:used] = array[:used]
    return out


class ColumnBuilder:
    """One column out of consecutive ones: of numbers as long as all are numbers that were read alike, else of codes."""

    def __init__(self) -> None:
        self._strings: Strings | None = None  # None: there were only numbers so far
        self._missing: tuple[str, ...] | None = None
        self._texts: list[tuple[np.ndarray, np.ndarray]] = []
        self._array, self._count = np.empty(0), 0  # [N] numbers, or codes of the strings

    def add(self, column: Column) -> None:
        first, self._count = self._count, self._count + len(column)
        if self._strings is None and first == 0 and column.read is not None:
            self._missing = column.read.missing
        if self._strings is None and column.read is not None and column.read.missing == self._missing:
            self._texts += column.read.texts
            added = column.read.array
        else:
            if self._strings is None:
                self._strings, numbers = Strings(), Numbers(self._array[:first], self._missing, self._texts).column()
                self._array = self._strings.add(numbers.utf8)[numbers.codes]
            added = self._strings.add(column.utf8)[column.codes]
        self._array = _with_room(self._array, self._count, first)
        self._array[first : self._count] = added

    def column(self) -> Column:
        array = self._array[: self._count]
        if self._strings is None:
            return Numbers(array, self._missing, self._texts).column()
        return self._strings.column(array)


def joined_columns(columns: Sequence[Column]) -> Column:
    """Return one column out of consecutive ones."""
    if len(columns) == 1:
        return columns[0]
    builder = ColumnBuilder()
    for column in columns:
        builder.add(column)
    return builder.column()
