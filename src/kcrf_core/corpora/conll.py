"""CoNLL files: one position per line, its values in columns, a blank line after each sequence.

The first data line decides for the whole file: columns are separated by TABs if it has one, else by runs
of ASCII spaces; and every row has as many columns as it has. No other white space separates anything.
A line `# weight=2.5` at the head of a sequence is no position: it says what the sequence weighs in training.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import DataError
from ..system import counted
from . import _text
from .corpus import CodedColumn, Corpus
from .formats import Format
from .lines import Block, ParsedBlock
from .weight_lines import sequence_weights, take_comments

SEPARATOR_NAMES = {"\t": "tab-separated", " ": "space-separated"}

SPACES = re.compile(" +")

BYTE_ORDER_MARK = "\ufeff".encode()


def parse_blocks(blocks: Iterable[Block], name: str) -> Iterator[ParsedBlock]:
    """Parse the consecutive blocks of one file, each as it comes."""
    separator = width = None
    for block in blocks:
        parsed = parse_block(block, name, separator, width)
        separator, width = parsed.separator, parsed.corpus.width or None
        yield parsed


def parse_block(block: Block, name: str, separator: str | None = None, width: int | None = None) -> ParsedBlock:
    """Parse one block; `separator` and `width` are what earlier blocks had, None if they had no data."""
    data, weights = block.data, {}
    if b"weight=" in data:
        data, weights = take_comments(data, name, block.first_line)
    begin = len(BYTE_ORDER_MARK) if block.first_line == 1 and data.startswith(BYTE_ORDER_MARK) else 0
    if separator is None or width is None:
        first, last = _text.first_row(data, begin)
        if first >= 0:
            separator = "\t" if data.find(b"\t", first, last) >= 0 else " "
            width = _text.columns_of(data, first, last, separator == "\t")
    if width is None:
        nothing = np.zeros(0, np.int64)
        sequence_weights(weights, nothing, np.zeros(1, np.int64), "# weight=", name)  # there is nothing below them
        return ParsedBlock(block, Corpus(name, (), np.zeros(1, np.int64), nothing), separator, nothing)

    lines = block.line_count
    starts, lengths = np.empty((2, width, lines), np.int64)
    ends, numbers = np.empty((2, lines), np.int64)
    count, uneven, stray = _text.split_rows(data, begin, separator == "\t", starts, lengths, ends, numbers)
    if uneven >= 0 or stray >= 0:
        bad = stray if uneven < 0 else uneven
        line = int(numbers[bad])
        row = block.content()[line]
        if uneven >= 0:
            columns = len(row.split("\t") if separator == "\t" else SPACES.split(row.strip(" ")))
            message = f"{_columns(columns)}, expected {width} ({_hint(row, separator)})"
        else:
            message = f"a TAB inside a value ({_hint(row, separator)})"
        raise DataError(message, name, block.first_line + line)
    columns = tuple(_coded(data, starts[c, :count], lengths[c, :count]) for c in range(width))
    numbers = numbers[:count] + np.int64(block.first_line)
    offsets = _offsets(numbers)
    weighed = sequence_weights(weights, numbers, offsets, "# weight=", name)
    return ParsedBlock(block, Corpus(name, columns, offsets, numbers, weighed), separator, ends[:count])


def _coded(data: bytes, starts: np.ndarray, lengths: np.ndarray) -> CodedColumn:
    """A column whose values stand at the given places."""
    N = len(starts)
    slots = np.full(1 << (2 * N).bit_length(), -1, dtype=np.int32)
    first, codes = np.empty(N, np.int64), np.empty(N, np.int32)
    count = _text.number_values(data, starts, lengths, slots, first, codes)
    begins, sizes = starts[first[:count]], lengths[first[:count]]
    joined = np.empty(int(sizes.sum()) + count, np.uint8)
    _text.join_values(data, begins, sizes, joined)
    # All at once: a Python loop over distinct values would hold up other threads that parse.
    return CodedColumn(joined.tobytes().decode("utf-8").split("\n")[:-1], codes)


def number_positions(lines: list[str], first_line: int) -> tuple[np.ndarray, np.ndarray]:
    """Line numbers [N] of the lines that are not empty, offsets [S+1] of the runs they form."""
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    numbers = np.flatnonzero(lengths) + np.int64(first_line)
    return numbers, _offsets(numbers)


def _offsets(numbers: np.ndarray) -> np.ndarray:
    """Offsets [S+1] of the runs that line numbers [N] form."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1) > 1)
    return np.append(starts, len(numbers))


def _columns(count: int) -> str:
    return counted(count, "column")


def _hint(row: str, separator: str) -> str:
    if separator == " " and "\t" in row:
        return "space-separated, as the first data line has no TAB; use one separator in the whole file"
    return f"{SEPARATOR_NAMES[separator]}; is a value missing?"


def parse_after(block: Block, name: str, known: ParsedBlock) -> ParsedBlock:
    """Parse one block with separator and width of another one that has data."""
    return parse_block(block, name, known.separator, known.corpus.width)


CONLL = Format("conll", "CoNLL", parse_blocks, parse_after=parse_after)
