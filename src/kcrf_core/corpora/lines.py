"""Blocks of lines that all text formats share.

A file is read as blocks of whole sequences, so that a corpus can be tagged while it streams by. Lines are kept byte for
byte, because tagged output repeats them.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np

from .._lazy import cached_property
from ..errors import DataError
from ..files import CompressedText, is_compressed
from ..system import PAUSE, Pause
from . import _text
from .corpus import Corpus
from .layout import PLAIN, Layout
from .tables import Cells

LARGEST_BLOCK = (1 << 31) - 1  # bytes: lengths of values are 32-bit numbers
READ_SIZE = 1 << 20  # bytes; on CoNLL files smaller is slower with many columns, larger gains nothing

PREDICTED = "predicted"  # the name of the column of labels, where columns have names
PREDICTED_NAME = re.compile(rf"{PREDICTED}(_\d+)?")  # with a number where another column has it

BYTE_ORDER_MARK = "\ufeff"

Stream = io.BufferedReader | CompressedText

# Returns the end of the last whole sequence in data, or 0, and where to search from when there is more, given the data
# and where to search from.
Cut = Callable[[bytearray, int], tuple[int, int]]

ARCHIVES = {
    b"PK\x03\x04": "looks like a zip archive, as .npz files are, not like text (tag and evaluate without -m read text)",
    b"\x1f\x8b": "looks like gzip data, not like text (give the file a name ending in .gz, or pipe it through zcat)",
    **{b"BZh%d1AY&SY" % n: "looks like bzip2 data, not like text (pipe it through bzcat)" for n in range(1, 10)},
    b"\xfd7zXZ\0": "looks like xz data, not like text (pipe it through xzcat)",
    b"\x28\xb5\x2f\xfd": "looks like zstd data, not like text (pipe it through zstdcat)",
}


def mark_length(data: bytes | bytearray) -> int:
    """Return the length of the byte order mark that data begins with, 0 without one."""
    mark = BYTE_ORDER_MARK.encode()
    return len(mark) if data.startswith(mark) else 0


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file that hold whole sequences; only the last one of a file may lack its line feed."""

    first_line: int  # number of the first one in the file, from 1
    data: bytes  # as it was read; once `checked`, UTF-8 without NULs and without carriage returns inside lines
    before: str | None = None  # value of the column `Layout.sequence` in the sequence that goes on in the block
    remarks: tuple[str, ...] = ()  # for users, about how texts became the lines

    @property
    def ends_with_newline(self) -> bool:
        return self.data.endswith(b"\n")

    @property
    def begin(self) -> int:
        """Place of the first line, behind a byte order mark."""
        return mark_length(self.data) if self.first_line == 1 else 0

    @cached_property
    def line_count(self) -> int:
        lines = np.count_nonzero(np.frombuffer(self.data, np.uint8) == ord("\n"))
        return int(lines) + (not self.ends_with_newline)

    @cached_property
    def lines(self) -> list[str]:
        """Lines without their line feeds, otherwise untouched."""
        lines = self.data.decode("utf-8").split("\n")
        return lines[:-1] if self.ends_with_newline else lines

    def content(self) -> list[str]:
        """Return the lines without byte order mark and carriage returns."""
        content = [line.removesuffix("\r") for line in self.lines]
        if self.first_line == 1:
            content[0] = content[0].removeprefix(BYTE_ORDER_MARK)
        return content


@dataclass(frozen=True)
class ParsedBlock:
    """A block and its corpus; line `corpus.lines[t] - block.first_line` of the block is position t."""

    block: Block
    corpus: Corpus
    separator: str | None  # between columns; None as long as there was no data
    ends: np.ndarray | None = None  # [N] where the line of each position ends in block.data; None: no more columns
    layout: Layout = PLAIN
    header_end: int | None = None  # where the line with the names of columns ends in block.data, if that is in it
    sequence_place: int | None = None  # of the column that tells sequences apart

    @property
    def cells(self) -> Cells:
        """The columns of the corpus, as they were parsed."""
        assert isinstance(self.corpus.columns, Cells)
        return self.corpus.columns

    @property
    def row_ends(self) -> np.ndarray:
        """Ends of the lines of positions, for formats that take more columns."""
        assert self.ends is not None
        return self.ends

    @property
    def sequence_values(self) -> list[str]:
        """Values of the column that tells sequences apart, of each sequence that has one."""
        if self.sequence_place is None:
            return []
        column, first = self.cells.coded(self.sequence_place), self.corpus.offsets[:-1]
        return [value for code in column.codes[first].tolist() if (value := column.values[code])]

    def label_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where the label of each position begins and ends in block.data, [N] each, with its quotes."""
        cells = self.cells
        begins = cells.starts[-1]
        return begins, self.row_ends if self.layout.quoted else begins + cells.lengths[-1]


def display_name(path: str | os.PathLike[str]) -> str:
    """Return the name of an input to show in messages."""
    path = os.fspath(path)
    return "<stdin>" if path == "-" else path


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Stream]:
    """Open a file for `blocks`: `-` is standard input, which stays open; `*.gz` is decompressed."""
    path = os.fspath(path)
    if path == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        yield sys.stdin.buffer  # type: ignore[misc]  # typeshed leaves open what it is
        return
    with open(path, "rb") as stream:
        yield CompressedText(stream, display_name(path)) if is_compressed(path) else stream


def may_wait(stream: Stream) -> bool:
    """Return True if data of a stream may be long in coming, as from a pipe and never from a file."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # nothing that the system knows
        return True


def _has_more(stream: Stream) -> bool:
    """Return True if there is something to read at once; False where that cannot be found out."""
    try:
        return bool(select.select([stream], [], [], 0)[0])
    except (OSError, ValueError):  # Windows has this for sockets alone
        return False


def blocks(stream: Stream, name: str, sequence_per_line: bool = False, layout: Layout = PLAIN) -> Iterator[Block]:
    """Yield the blocks of `blocks_and_pauses`."""
    chunks = chunks_and_pauses(stream)
    return (block for block in blocks_and_pauses(chunks, name, sequence_per_line, layout) if block is not PAUSE)


def chunks_and_pauses(stream: Stream) -> Iterator[bytes | Pause]:
    """Yield the bytes of a stream as they arrive, with a `PAUSE` wherever more has to be waited for."""
    waits = may_wait(stream)
    while True:
        if waits and not _has_more(stream):
            yield PAUSE
        chunk = stream.read1(READ_SIZE)
        if not chunk:
            return
        yield chunk


def blocks_and_pauses(
    chunks: Iterable[bytes | Pause],
    name: str,
    sequence_per_line: bool = False,
    layout: Layout = PLAIN,
    cut: Cut | None = None,
) -> Iterator[Block | Pause]:
    """Cut chunks of a file after blank lines, after any line that is a sequence, or by `cut`, as late as it has come.

    All sequences that are complete are handed out before more is asked for, so that a pipe is answered at
    once; what is kept is never more than one unfinished sequence and one read. A `PAUSE` among the chunks is one among
    the blocks.
    """
    pending = bytearray()
    first_line = 1
    searched = 0  # no blank line ends before this byte, which begins a line
    for chunk in chunks:
        if chunk is PAUSE:
            yield PAUSE
            continue
        pending += chunk
        if len(pending) > LARGEST_BLOCK:
            line = first_line + pending.count(b"\n", 0, searched)
            raise DataError("more than 2 GiB without a blank line: separate sequences by blank lines", name, line)
        for magic, message in ARCHIVES.items() if first_line == 1 else ():
            if pending.startswith(magic):
                raise DataError(message, name)
        end = 0
        if b"\n" in chunk:
            if sequence_per_line:
                end = searched = pending.rfind(b"\n") + 1
            elif cut is not None:
                end, searched = cut(pending, searched)
            else:
                end = _end_of_last_blank_line(pending, searched, layout.blanks)
                searched = pending.rfind(b"\n") + 1
        if end:
            with memoryview(pending) as view:
                block = Block(first_line, bytes(view[:end]))
            del pending[:end]
            searched -= end
            first_line += block.line_count
            yield block
    if pending:
        yield Block(first_line, bytes(pending))


def encode_lines(lines: Iterable[str], ends_with_newline: bool) -> bytes:
    """Return the bytes of consecutive lines, for formats of plug-ins that change lines of a block."""
    return ("\n".join(lines) + "\n" * ends_with_newline).encode("utf-8")


def names_beside(names: Iterable[str], header: Sequence[str]) -> list[str]:
    """Return names of new columns, with a number behind those that the header has.

    >>> names_beside(["marginal", "predicted"], ["word", "predicted"])
    ['marginal', 'predicted_2']
    """
    out = []
    for name in names:
        candidates = chain([name], (f"{name}_{number}" for number in count(2)))
        out.append(next(candidate for candidate in candidates if candidate not in header))
    return out


def append_labels(parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """Return the bytes of a block with one more column: `numbers` [N] int32 are those of the labels."""
    texts = [f"{parsed.separator}{parsed.layout.written(label)}" for label in labels]
    ends = parsed.row_ends
    if parsed.header_end is not None:
        (name,) = names_beside([PREDICTED], parsed.corpus.header or ())
        texts, ends = [*texts, f"{parsed.separator}{name}"], np.concatenate([[parsed.header_end], ends])
        numbers = np.concatenate([[len(labels)], numbers]).astype(np.int32)
    return put_texts(parsed, texts, numbers, ends, ends)


def put_texts(
    parsed: ParsedBlock, texts: Sequence[str], numbers: np.ndarray, begins: np.ndarray, ends: np.ndarray
) -> bytes:
    """Return the bytes of a block with texts in the places from `begins` [N] to `ends` [N]."""
    encoded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in encoded], dtype=np.int64)
    size = len(parsed.block.data) + int(lengths[numbers].sum()) - int((ends - begins).sum())
    out = np.empty(size, dtype=np.uint8)
    joined = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    _text.put_values(parsed.block.data, begins, ends, numbers, joined, np.cumsum(lengths), out)
    return out.tobytes()


def _end_of_last_blank_line(data: bytearray, start: int, blanks: bytes) -> int:
    """Return the place after the last blank line of `data[start:]`, or 0 if it has none; `start` begins a line."""
    end = data.rfind(b"\n", start)
    while end >= start:  # backwards, since the last blank line is rarely far from the end
        begin = max(data.rfind(b"\n", start, end) + 1, start)
        if not data[begin:end].removesuffix(b"\r").strip(blanks):
            return end + 1
        end = begin - 1
    return 0


def checked(block: Block, name: str, lone_returns: bool = False) -> Block:
    """Return the block, or raise an error where its bytes are not text; carriage returns in lines may be allowed."""
    data = block.data

    def refuse(at: int, message: str) -> None:
        raise DataError(message, name, block.first_line + data.count(b"\n", 0, at))

    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(error.start, f"byte 0x{data[error.start]:02x} is not UTF-8 (convert the file, for example with iconv)")
    if (zero := data.find(b"\0")) >= 0:
        refuse(zero, "a NUL character (if the file is UTF-16, convert it, for example with iconv)")
    if b"\r" in data and not lone_returns:
        raw = np.frombuffer(data, np.uint8)
        returns = np.flatnonzero(raw[:-1] == ord("\r"))
        if len(lone := returns[raw[returns + 1] != ord("\n")]):
            message = r"a carriage return inside a line (if they end the lines, convert with tr '\r' '\n')"
            refuse(int(lone[0]), message)
    return block
