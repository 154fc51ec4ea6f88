"""Lines in, lines out: what all text formats share, at the level of bytes.

A file is read as blocks of whole sequences, so that a corpus can be tagged while it streams by. Lines are
kept as they stand (byte order mark, carriage returns and missing final newline included), because tagged
output repeats them byte for byte.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from .corpus import Corpus
from .errors import DataError

READ_SIZE = 1 << 20  # bytes; on CoNLL files smaller is slower with many columns, larger gains nothing

BYTE_ORDER_MARK = "\ufeff"

LONE_CARRIAGE_RETURN = re.compile(r"\r(?!\n|\Z)")

ARCHIVES = (
    (
        b"PK\x03\x04",
        "looks like a zip archive, as .npz files are, not like text (tag and evaluate without -m read text)",
    ),
    (
        b"\x1f\x8b",
        "looks like gzip data, not like text (give the file a name ending in .gz, or pipe it through zcat)",
    ),
)


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file that hold whole sequences.

    `lines` are without their line feeds, otherwise untouched; only the last one of a file may have had none.
    """

    first_line: int  # number of lines[0] in the file, from 1
    lines: list[str]
    ends_with_newline: bool

    def content(self) -> list[str]:
        """The lines as a parser should see them: without byte order mark and carriage returns."""
        content = [line.removesuffix("\r") for line in self.lines]
        if self.first_line == 1:
            content[0] = content[0].removeprefix(BYTE_ORDER_MARK)
        return content


@dataclass(frozen=True)
class ParsedBlock:
    """A block and what it says; line `corpus.lines[t] - block.first_line` of the block is position t."""

    block: Block
    corpus: Corpus
    separator: str | None  # between columns; None as long as there was no data


def display_name(path: str | os.PathLike[str]) -> str:
    """The name of an input to show in messages."""
    path = os.fspath(path)
    return "<stdin>" if path == "-" else path


def open_input(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file for `blocks`: `-` is standard input (not to be closed), `*.gz` is decompressed."""
    path = os.fspath(path)
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return sys.stdin.buffer
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


def blocks(stream: BinaryIO, name: str) -> Iterator[Block]:
    """Cut a stream after blank lines, as late as what has arrived allows.

    All sequences that are complete are handed out before more is asked for, so that a pipe is answered at
    once; what is kept is never more than one unfinished sequence and one read.
    """
    pending = bytearray()
    first_line = 1
    searched = 0  # no blank line ends before this byte, which begins a line
    while chunk := _read(stream, name):
        pending += chunk
        if first_line == 1:
            _refuse_archives(pending, name)
        end = _end_of_last_blank_line(pending, searched)
        if end:
            block = _decode(pending[:end], name, first_line)
            del pending[:end]
            first_line += len(block.lines)
            yield block
        searched = pending.rfind(b"\n") + 1
    if pending:
        yield _decode(pending, name, first_line)


def encode_lines(lines: Iterable[str], ends_with_newline: bool) -> bytes:
    """The bytes of consecutive lines: those of `block.lines` are the bytes the block was read from."""
    return ("\n".join(lines) + "\n" * ends_with_newline).encode("utf-8")


def _read(stream: BinaryIO, name: str) -> bytes:
    try:
        return stream.read1(READ_SIZE)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        message = f"damaged gzip data: {error} (copy the file again, or rename it if it is not compressed)"
        raise DataError(message, name) from error


def _refuse_archives(start: bytearray, name: str) -> None:
    for magic, message in ARCHIVES:
        if start.startswith(magic):
            raise DataError(message, name)


def _end_of_last_blank_line(data: bytearray, start: int) -> int:
    """Just after the last blank line of `data[start:]`, or 0 if it has none; `start` begins a line."""
    end = data.rfind(b"\n", start)
    while end >= start:  # backwards, since the last blank line is rarely far from the end
        begin = max(data.rfind(b"\n", start, end) + 1, start)
        if not data[begin:end].removesuffix(b"\r").strip(b" "):
            return end + 1
        end = begin - 1
    return 0


def _decode(data: bytearray, name: str, first_line: int) -> Block:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte 0x{data[error.start]:02x} is not UTF-8 (convert the file, for example with iconv)"
        raise DataError(message, name, first_line + data.count(b"\n", 0, error.start)) from None
    if "\0" in text:
        message = "a NUL character (if the file is UTF-16, convert it, for example with iconv)"
        raise DataError(message, name, first_line + text.count("\n", 0, text.index("\0")))
    if "\r" in text and (lone := LONE_CARRIAGE_RETURN.search(text)):
        message = r"a carriage return inside a line (if they end the lines, convert with tr '\r' '\n')"
        raise DataError(message, name, first_line + text.count("\n", 0, lone.start()))
    lines = text.split("\n")
    ends_with_newline = not lines[-1]
    if ends_with_newline:
        lines.pop()
    return Block(first_line, lines, ends_with_newline)
