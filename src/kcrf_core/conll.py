"""CoNLL files: one position per line, its values in columns, a blank line after each sequence.

The first data line decides for the whole file: columns are separated by TABs if it has one, else by runs
of ASCII spaces; and every row has as many columns as it has. No other white space separates anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

from .corpus import Corpus
from .errors import DataError
from .lines import Block, ParsedBlock

SEPARATOR_NAMES = {"\t": "tab-separated", " ": "space-separated"}

SPACES = re.compile("  +")


def parse_blocks(blocks: Iterable[Block], name: str) -> Iterator[ParsedBlock]:
    """Parse the consecutive blocks of one file, each as it comes."""
    separator = width = None
    for block in blocks:
        parsed = parse_block(block, name, separator, width)
        separator, width = parsed.separator, parsed.corpus.width or None
        yield parsed


def parse_block(block: Block, name: str, separator: str | None = None, width: int | None = None) -> ParsedBlock:
    """Parse one block; `separator` and `width` are what earlier blocks had, None if they had no data."""
    lines = block.content()
    if separator is None:
        first = next((line for line in lines if line.strip(" ")), None)
        if first is not None:
            separator = "\t" if "\t" in first else " "
    if separator == "\t":
        lines = [line if line.strip(" ") else "" for line in lines]
    else:
        lines = _single_spaces(lines)

    numbers, offsets = number_positions(lines, block.first_line)
    rows = list(filter(None, lines))
    if rows:
        columns = _split(rows, separator, width, name, numbers)
    else:
        columns = tuple([] for _ in range(width or 0))
    return ParsedBlock(block, Corpus(name, columns, offsets, numbers), separator)


def number_positions(lines: list[str], first_line: int) -> tuple[np.ndarray, np.ndarray]:
    """Line numbers [N] of the lines that are not empty, offsets [S+1] of the runs they form."""
    lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
    numbers = np.flatnonzero(lengths) + np.int64(first_line)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1) > 1)
    return numbers, np.append(starts, len(numbers))


def append_columns(raw_line: str, separator: str, values: Iterable[str]) -> str:
    """The line as it stands with values appended, before the carriage return if it ends in one."""
    body = raw_line.removesuffix("\r")
    return separator.join((body, *values)) + raw_line[len(body) :]


def _single_spaces(lines: list[str]) -> list[str]:
    """The lines without leading and trailing spaces, and with one space where there were several."""
    text = "\n".join(lines)
    if "  " in text:
        lines = SPACES.sub(" ", text).split("\n")
    return [line.strip(" ") for line in lines]


def _split(rows: list[str], separator: str, width: int | None, name: str, numbers: np.ndarray) -> tuple[list[str], ...]:
    """The columns of rows that have one separator between values, after checking that they are even."""
    separators = [row.count(separator) for row in rows]
    expected = separators[0] + 1 if width is None else width
    if separators.count(expected - 1) != len(rows):
        bad = next(t for t, count in enumerate(separators) if count != expected - 1)
        message = f"{_columns(separators[bad] + 1)}, expected {expected} ({_hint(rows[bad], separator)})"
        raise DataError(message, name, int(numbers[bad]))
    text = separator.join(rows)
    if separator == " " and "\t" in text:
        bad = next(t for t, row in enumerate(rows) if "\t" in row)
        raise DataError(f"a TAB inside a value ({_hint(rows[bad], separator)})", name, int(numbers[bad]))
    values = text.split(separator)
    return tuple(values[column::expected] for column in range(expected))


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _hint(row: str, separator: str) -> str:
    if separator == " " and "\t" in row:
        return "space-separated, as the first data line has no TAB; use one separator in the whole file"
    return f"{SEPARATOR_NAMES[separator]}; is a value missing?"
