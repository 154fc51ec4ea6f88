"""CoNLL files: one position per line, its values in columns, a blank line after each sequence.

The first data line decides for the whole file: columns are separated by TABs if it has one, else by runs of ASCII
spaces, unless a `Layout` names another separator; and every row has as many columns as it has.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from ..errors import ConfigError, DataError
from ..system import Remark, counted, listed
from . import _text
from .corpus import Corpus
from .formats import Format
from .layout import Layout, column_place
from .lines import PREDICTED_NAME, Block, ParsedBlock, mark_length
from .tables import NUMBER, WORD, Cells, packed_marks

SEPARATOR_NAMES = {"\t": "tab-separated", " ": "space-separated", ",": "comma-separated"}

# Beginnings of lines that other programs take for comments.
COMMENT_MARKS = ("#", "%", "//", "-DOCSTART-")

SPACES = re.compile(" +")

# Fewer rows than this can begin with a word and go on with numbers by chance, where no separator is known.
ROWS_BELOW_A_HEADER = 10

# Values that no column is named after: without a letter, or for numbers that are missing or cannot be represented.
NO_NAME = re.compile(
    r"[\W\d_]*|[-+.\d]+e[-+]?\d+|#\w+(/\d)?[!?]|\W*(na|n/a|n\.a|nan|null|none|nil|inf|infinity)\W*", re.IGNORECASE
)


@dataclass(frozen=True)
class Rows:
    """Rows of a block: the places of their values, and the sequences that they make."""

    cells: Cells
    ends: np.ndarray  # [N] where each row ends, before its line end
    lines: np.ndarray  # [N] its line in the file, from 1
    offsets: np.ndarray  # [S+1]


def split(
    block: Block,
    data: bytes,
    name: str,
    separator: str,
    width: int,
    layout: Layout,
    begin: int = 0,
    line: int = 0,
    what: str = "",
    known: ParsedBlock | None = None,
) -> Rows:
    """Split the rows of a block, of which `data` are the bytes from `begin` on, line by line from `line`, from 0.

    `what` is the name of the format in errors, and `known` a block that came before.
    """
    lines = block.line_count
    quoted = layout.quoted and b'"' in data
    out = np.empty(len(data) if quoted else 0, np.uint8)
    starts, lengths = np.empty((width, lines), np.int64), np.empty((width, lines), np.int32)
    ends, numbers, offsets = np.empty(lines, np.int64), np.empty(lines, np.int64), np.empty(lines + 1, np.int64)
    marks, places = packed_marks(layout.comment), (starts, lengths, ends, numbers, offsets)
    rows, sequences, uneven, columns, stray, unclosed = _text.split_rows(
        data, begin, line, ord(separator), *marks, out, *places
    )
    if unclosed >= 0:
        message = "a quote that is not closed in its line (a quote inside a quoted value is written twice)"
        raise DataError(message, name, block.first_line + unclosed)
    if uneven >= 0 or stray >= 0:
        line = int(numbers[stray if uneven < 0 else uneven])
        content = block.content()
        first = content[int(numbers[0])]
        if known is not None and known.corpus.positions:
            first = known.block.content()[int(known.corpus.lines[0]) - known.block.first_line]
        hint, settings = _hint(content[line], first, separator, layout, what)
        message = "a TAB inside a value" if uneven < 0 else f"{counted(columns, 'column')}, expected {width}"
        raise DataError(f"{message} ({hint})", name, block.first_line + line, settings=settings)
    cells = Cells(
        out if quoted else data,
        starts if rows == lines else np.ascontiguousarray(starts[:, :rows]),
        lengths if rows == lines else np.ascontiguousarray(lengths[:, :rows]),
    )
    return Rows(cells, ends[:rows], numbers[:rows] + np.int64(block.first_line), offsets[: sequences + 1].copy())


def parse_block(
    block: Block, name: str, columns: tuple[str, ...], layout: Layout, known: ParsedBlock | None
) -> ParsedBlock:
    """Parse one block, as `Format` says."""
    data, begin = block.data, block.begin
    line, header, header_end, rows, remarks = 0, None, None, None, list[str]()
    if known is not None:
        separator, width, header, layout = known.separator, known.corpus.width, known.corpus.header, known.layout
    else:
        separator = width = None
        first, last, number = _first_row(data, begin, layout)
        if first >= 0:
            separator = _separator(data, first, last, layout)
            values = _values(data[first:last].decode(), separator, layout)
            width = len(values)
            if layout.header is None:
                rows = split(block, data, name, separator, width, layout, begin, line)
                found = _has_header(rows.cells, values, columns, layout)
                layout = replace(layout, header=bool(found))
                if found is None:
                    taken = f"{name}: the first line is taken as data: give 'header' if it names the columns"
                    remarks.append(Remark(taken, settings=["header"]))
            if layout.header:
                header = _header(values, name, block.first_line + number)
                header_end, begin, line = last, data.find(b"\n", last) + 1 or len(data), number + 1
                if rows is not None:
                    names = f"{name}: the first line names the columns ({listed(header)})"
                    remarks.append(Remark(f"{names}; else give 'header: false'", settings=["no_header"]))
                    rows = None
    if rows is None and width is not None and separator is not None:
        rows = split(block, data, name, separator, width, layout, begin, line, known=known)
    if rows is None or not len(rows.lines):
        nothing, no_rows = np.zeros(0, np.int64), (len(header or ()), 0)
        cells = Cells(b"", np.zeros(no_rows, np.int64), np.zeros(no_rows, np.int32))
        rows, width = Rows(cells, nothing, nothing, np.zeros(1, np.int64)), None
    offsets = rows.offsets
    place = None if width is None else sequence_place(layout, columns, header, width)
    if place is not None:
        offsets = _divided(rows.cells, place, offsets, block.before)
    if known is None and layout.sequence is not None and columns and width is not None:
        if place is not None and layout.sequence not in columns:
            remarks.append(f"{name}: rows with the same value of '{layout.sequence}' are a sequence")
        elif place is None and layout.sequence in columns:
            ends = "so blank lines alone end sequences"
            remarks.append(f"warning: {name}: there is no column '{layout.sequence}', {ends}")
    corpus = Corpus(name, rows.cells, offsets, rows.lines, header=header, layout=layout, remarks=tuple(remarks))
    return ParsedBlock(block, corpus, separator, rows.ends, layout, header_end, place)


def sequence_place(layout: Layout, columns: Sequence[str], header: Sequence[str] | None, width: int) -> int | None:
    """Return the place of the column that tells sequences apart; None without one, or where data to tag lacks it.

    It is among the `columns` of a model of a file. A model of a data frame has it beside them, and refuses data
    without it (`Encoding.places`).
    """
    if layout.sequence is None:
        return None
    if columns and layout.sequence not in columns and header is not None and layout.sequence not in header:
        return None
    if layout.sequence in columns and layout.sequence not in (header or ()):
        lacking = len(columns) - 1 > width if header is None else bool(set(header) & set(columns))
        return None if lacking else columns.index(layout.sequence)
    return column_place("sequence", layout.sequence, header or [f"c{number}" for number in range(width)])


def _divided(cells: Cells, place: int, offsets: np.ndarray, before: str | None) -> np.ndarray:
    """Return the offsets of sequences that a column divides further; an empty value repeats the one above it.

    `before` is the value above the first row, if the sequence there may go on.
    """
    column, lengths = cells.coded(place), cells.lengths[place]
    named = np.flatnonzero(lengths)  # rows with a value
    codes, first = column.codes[named], np.repeat(offsets[:-1], np.diff(offsets))[named]
    same = np.zeros(len(named), dtype=bool)
    same[1:] = (codes[1:] == codes[:-1]) & (named[:-1] >= first[1:])
    if before is not None and len(named) and first[0] == 0:
        same[0] = column.values[codes[0]] == before
    return np.union1d(offsets, named[~same])


class SequenceCut:
    """Ends of sequences that a column tells apart, in the rows of a file that has only arrived in part."""

    def __init__(self, layout: Layout, columns: tuple[str, ...]):
        self._layout, self._columns = layout, columns
        self._place = -1  # of the column; -1: there is none
        self._before: bytes | None = None
        self._separator = ""  # until the first row is known

    def __call__(self, data: bytearray, begin: int) -> tuple[int, int]:
        """Return the end of the last whole sequence, or 0, and where to search from when there is more."""
        layout, marks = self._layout, packed_marks(self._layout.comment)
        if not self._separator:
            begin = begin or mark_length(data)
            first, last, _ = _first_row(data, begin, layout)
            below = data.find(b"\n", last) + 1
            if first < 0 or not below:
                return 0, begin  # not yet whole
            # The first row may be a header, and begins no sequence for certain.
            begin, self._separator = below, _separator(data, first, last, layout)
            values = _values(data[first:last].decode("utf-8", "replace"), self._separator, layout)
            named = layout.header or (layout.header is None and layout.sequence in values)
            with suppress(ConfigError):  # parsing says so, with the names of the columns
                place = sequence_place(layout, self._columns, values if named else None, len(values))
                self._place = -1 if place is None else place
        out = np.empty(len(data) if layout.quoted and b'"' in data else 0, np.uint8)
        end, at, self._before = _text.last_sequence_end(
            data, begin, ord(self._separator), *marks, self._place, out, self._before
        )
        return end, at


def _first_row(data: bytes | bytearray, begin: int, layout: Layout) -> tuple[int, int, int]:
    """Return the first and last byte of the first row from `begin` on, and its line from 0; -1 if there is none."""
    marks, line = tuple(mark.encode() for mark in layout.comment), 0
    while begin < len(data):
        found = data.find(b"\n", begin)
        stop = len(data) if found < 0 else found
        row = data[begin:stop].removesuffix(b"\r")
        if row.strip(layout.blanks) and not row.startswith(marks):
            return begin, begin + len(row), line
        begin, line = stop + 1, line + 1
    return -1, -1, -1


def _separator(data: bytes | bytearray, first: int, last: int, layout: Layout) -> str:
    """Return what separates the values of a row."""
    return layout.separator or ("\t" if data.find(b"\t", first, last) >= 0 else " ")


def _values(row: str, separator: str, layout: Layout) -> list[str]:
    """Return the values of a row, without quotes."""
    if layout.quoted:
        with suppress(csv.Error):  # a quote that is not closed: splitting says so, with the line
            return next(csv.reader([row], delimiter=separator))
    return SPACES.split(row.strip(" ")) if separator == " " else row.split(separator)


def _has_header(cells: Cells, values: Sequence[str], columns: tuple[str, ...], layout: Layout) -> bool | None:
    """Return True if the first of the rows names the columns, and None if it may do so.

    It does so if one of the names is known, or if a word stands above numbers, all values are possible names, and the
    last one is no label of the other rows. It may do so if all values are words.
    """
    named = layout.sequence in values and layout.sequence not in columns
    if named or PREDICTED_NAME.fullmatch(values[-1]) or tuple(values) in (columns, columns[:-1]):
        return True
    every = np.arange(len(cells))

    def kinds(which: np.ndarray, last: int | None) -> np.ndarray:
        part = (np.ascontiguousarray(own[which, :last]) for own in (cells.starts, cells.lengths))
        rows = Cells(cells.data, *part)
        found = np.empty(rows.starts.shape, np.int8)
        rows.parsed(np.arange(len(which)), layout.missing, found)
        return found

    begin, above_numbers = kinds(every, 2), False
    if cells.starts.shape[1] > (2 if layout.separator is not None else ROWS_BELOW_A_HEADER):
        above = np.flatnonzero((begin[:, 0] == WORD) & (begin[:, 1] != WORD))  # few, and mostly none
        below = kinds(above, None)[:, 1:]
        above_numbers = bool(((below != WORD).all(axis=1) & (below == NUMBER).any(axis=1)).any())
    if not above_numbers and (layout.separator is None or (begin[:, 0] != WORD).any()):
        return False
    labels = cells.coded(len(cells) - 1).codes
    if (labels[1:] == labels[0]).any():
        return False
    # Tables often begin with the numbers or names of rows, and nothing above them.
    names = values if values[0] or not cells.lengths[0, 1:].all() else values[1:]
    possible = len(set(names)) == len(names) and not any(map(NO_NAME.fullmatch, names))
    return True if above_numbers and possible and (begin[len(values) - len(names) :, 0] == WORD).all() else None


def _header(values: Sequence[str], name: str, line: int) -> tuple[str, ...]:
    """Return the values of a row as names of columns; those without a name are called as without a header."""
    values = [value or f"c{number}" for number, value in enumerate(values)]
    if len(set(values)) < len(values):
        twice = next(one for number, one in enumerate(values) if one in values[:number])
        raise DataError(f"the header line has '{twice}' twice: rename one of them", name, line)
    return tuple(values)


def _hint(row: str, first: str, separator: str, layout: Layout, what: str) -> tuple[str, list[str]]:
    """Return a likely mistake in a row, next to the first of the file, and the settings that it concerns."""
    if separator == " " and "\t" in row:
        return "space-separated, as the first data line has no TAB; use one separator in the whole file", []
    if not what:
        for line, which in ((row, "the line"), (first, "the first line")):
            mark = next((mark for mark in COMMENT_MARKS if line.startswith(mark)), None)
            if mark is not None and mark not in layout.comment:
                return f"{which} begins with '{mark}': is it a comment?", ["comment"]
        if layout.separator is None:
            for mark in ",;|":
                # Fields that lines of CSV would have; a separator may stand in quotes.
                one, other = (len(next(csv.reader([line], delimiter=mark), [])) for line in (first, row))
                if 1 < one == other:
                    return f"is '{mark}' the separator, as in CSV?", ["separator"]
    named = SEPARATOR_NAMES.get(separator, f"separated by '{separator}'")
    if separator == "\t" and "\t" not in row and " " in row.strip():
        return f"{what}{named}, and the line has spaces and no TAB", []
    return f"{what}{named}; is a value missing?", []


CONLL = Format("conll", "CoNLL", parse_block, has_layouts=True, cut=SequenceCut)
