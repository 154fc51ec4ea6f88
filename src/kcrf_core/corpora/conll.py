"""CoNLL files: one position per line, its values in columns, a blank line after each sequence.

The first data line decides for the whole file: columns are separated by TABs if it has one, else by runs of ASCII
spaces, unless a `Layout` names another separator; and every row has as many columns as it has. A line `# weight=2.5`
at the head of a sequence is the weight of the sequence in training.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..system import counted
from . import _text
from .corpus import Corpus
from .formats import Format
from .layout import Layout
from .lines import Block, ParsedBlock
from .tables import Cells, packed_marks
from .weight_lines import WeightLines, sequence_weights, taken_weights

SEPARATOR_NAMES = {"\t": "tab-separated", " ": "space-separated", ",": "comma-separated"}

# Beginnings of lines that other programs take for comments.
COMMENT_MARKS = ("#", "%", "//", "-DOCSTART-")

SPACES = re.compile(" +")

_WEIGHT = WeightLines("# weight=", rb"# ?weight=([^\r\n]*)()", spaces=" ")


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
        message = "a quote that is not closed (a quote inside a quoted value is written twice)"
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
    data, begin, weights = block.data, block.begin, dict[int, tuple[int, float]]()
    if b"#" in data and b"weight=" in data:  # a single byte is found ten times as fast
        headed = layout.header and known is None
        first = _first_row(data, begin, layout)[0] if headed else None
        data, weights = taken_weights(block, _WEIGHT, name, layout.comment, 0 if first == begin else first)
    line, header, header_end = 0, None, None
    if known is not None:
        separator, width, header = known.separator, known.corpus.width, known.corpus.header
    else:
        separator = width = None
        first, last, number = _first_row(data, begin, layout)
        if first >= 0:
            separator = layout.separator or ("\t" if data.find(b"\t", first, last) >= 0 else " ")
            if layout.header:
                header, header_end, begin, line = _header(
                    data, first, separator, layout, name, block.first_line + number
                )
                line += number
                width = len(header)
            elif layout.quoted:
                width = len(_quoted_row(data, first, separator)[0])
            else:
                width = len(_values(data[first:last].decode("utf-8"), separator))
    nothing = np.zeros(0, np.int64)
    rows = None
    if width is not None and separator is not None:
        rows = split(block, data, name, separator, width, layout, begin, line, known=known)
    if rows is None or not len(rows.lines):
        sequence_weights(weights, nothing, np.zeros(1, np.int64), _WEIGHT, name)  # there is nothing below them
        no_rows = (0 if header is None else len(header), 0)
        cells = () if header is None else Cells(b"", np.zeros(no_rows, np.int64), np.zeros(no_rows, np.int32))
        corpus = Corpus(name, cells, np.zeros(1, np.int64), nothing, header=header)
        return ParsedBlock(block, corpus, separator, nothing, layout, header_end)
    weighed = sequence_weights(weights, rows.lines, rows.offsets, _WEIGHT, name)
    corpus = Corpus(name, rows.cells, rows.offsets, rows.lines, weighed, header=header)
    return ParsedBlock(block, corpus, separator, rows.ends, layout, header_end)


def _first_row(data: bytes, begin: int, layout: Layout) -> tuple[int, int, int]:
    """Return the first and last byte of the first row from `begin` on, and its line from 0; -1 if there is none."""
    marks, line = tuple(mark.encode() for mark in layout.comment), 0
    while begin < len(data):
        found = data.find(b"\n", begin)
        stop = len(data) if found < 0 else found
        row = data[begin:stop].removesuffix(b"\r")
        if row.strip(b" ") and not row.startswith(marks):
            return begin, begin + len(row), line
        begin, line = stop + 1, line + 1
    return -1, -1, -1


def _values(row: str, separator: str) -> list[str]:
    """Return the values of a row without quotes."""
    return SPACES.split(row.strip(" ")) if separator == " " else row.split(separator)


def _quoted_row(data: bytes, first: int, separator: str) -> tuple[list[str], int]:
    """Return the row with values in quotes that begins at a place, and the number of its lines."""
    reader = csv.reader(io.StringIO(data[first:].decode("utf-8"), newline=""), delimiter=separator)
    try:
        return next(reader), reader.line_num
    except csv.Error:
        return [""], 1  # a quote that is not closed: splitting says so, with the line


def _header(
    data: bytes, first: int, separator: str, layout: Layout, name: str, line: int
) -> tuple[tuple[str, ...], int, int, int]:
    """Return the names in a row that begins at a place, its end, the beginning of the next and the lines between."""
    taken = 1
    if layout.quoted:
        names, taken = _quoted_row(data, first, separator)
    stop = first - 1
    for _ in range(taken):
        found = data.find(b"\n", stop + 1)
        stop = len(data) if found < 0 else found
    end = stop - (data[stop - 1 : stop] == b"\r")
    if not layout.quoted:
        names = _values(data[first:end].decode("utf-8"), separator)
    if "" in names:
        raise DataError("an empty name in the header line", name, line)
    if len(set(names)) < len(names):
        twice = next(one for number, one in enumerate(names) if one in names[:number])
        raise DataError(f"the header line has '{twice}' twice: rename one of them", name, line)
    return tuple(names), end, min(stop + 1, len(data)), taken


def _hint(row: str, first: str, separator: str, layout: Layout, what: str) -> tuple[str, list[str]]:
    """Return a likely mistake in a row, next to the first of the file, and the settings that it concerns."""
    if separator == " " and "\t" in row:
        return "space-separated, as the first data line has no TAB; use one separator in the whole file", []
    if not what:
        for line, which in ((row, "the line"), (first, "the first line")):
            mark = next((mark for mark in COMMENT_MARKS if line.startswith(mark)), None)
            if mark is not None and mark not in layout.comment:
                return f"{which} begins with '{mark}': is it a comment, to be passed over?", ["comment"]
        if layout.separator is None:
            for mark in ",;|":
                # Fields that lines of CSV would have; a separator may stand in quotes.
                one, other = (len(next(csv.reader([line], delimiter=mark), [])) for line in (first, row))
                if 1 < one == other:
                    return f"is '{mark}' the separator, as in CSV?", ["separator"]
    named = SEPARATOR_NAMES.get(separator, f"separated by '{separator}'")
    return f"{what}{named}; is a value missing?", []


CONLL = Format("conll", "CoNLL", has_layouts=True, parse_block=parse_block)
