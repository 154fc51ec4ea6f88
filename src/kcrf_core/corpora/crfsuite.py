r"""CRFsuite attribute files: `label<TAB>attribute<TAB>attribute:weight`, a blank line after each sequence.

Inside the name of an attribute `\:` is a colon and `\\` a backslash, as in CRFsuite. The weight follows the last
colon that is not escaped; without one it is 1. A line `@weight:2.5` at the head of a sequence weighs it. There are no
comments, unlike in CRFsuite: tokens do begin with `#`.
"""

from __future__ import annotations

import re

import numpy as np

from ..errors import DataError
from . import _text
from .columns import parse_weight
from .corpus import AttributeRows, Corpus, ones
from .formats import Format
from .layout import Layout
from .lines import Block, ParsedBlock
from .tables import Cells, NameCells, coded, packed_marks

WEIGHT = "@weight"

# The line, in it the number, and behind that nothing but TABs.
_WEIGHT = re.compile(rb"^(?:\xef\xbb\xbf)?(@weight(?::([^\t\r\n]*))?(?=[\t\r\n]|\Z)([^\r\n]*))", re.MULTILINE)

NOT_A_NUMBER = r"is not a finite number (a colon inside a name is written \:)"


def escaped(name: str) -> str:
    """Return the name of an attribute as it is written."""
    return name.replace("\\", "\\\\").replace(":", "\\:")


def parse_block(
    block: Block, name: str, columns: tuple[str, ...], layout: Layout, known: ParsedBlock | None
) -> ParsedBlock:
    """Parse one block; its corpus has the labels as the only column."""
    data, weights = block.data, dict[int, float]()
    if WEIGHT.encode() in data:
        data, weights = _taken_weights(block, name)
    lines = block.line_count
    starts, ends, numbers, offsets = (np.empty(lines + extra, np.int64) for extra in (0, 0, 0, 1))
    lengths, no_quotes = np.empty(lines, np.int32), np.empty(0, np.uint8)
    places = starts[None], lengths[None], ends, numbers, offsets
    rows, sequences, *_ = _text.split_rows(
        data, block.begin, 0, ord("\t"), *packed_marks(()), no_quotes, *places, ragged=True
    )
    starts, lengths, ends, numbers = starts[:rows], lengths[:rows], ends[:rows], numbers[:rows] + block.first_line
    offsets = offsets[: sequences + 1].copy()
    if not lengths.all():
        message = "no label before the first TAB (write any known label if there is none)"
        raise DataError(message, name, int(numbers[lengths.argmin()]))
    # Without a TAB a whole line would pass as a label, silently, if that may have spaces.
    lone = np.flatnonzero(starts + lengths == ends)
    labels = coded(data, starts[lone], lengths[lone])
    spaced = np.array([" " in label for label in labels.values], dtype=bool)[labels.codes]
    if spaced.any():
        message = "spaces but no TAB (attribute files are tab-separated)"
        raise DataError(message, name, int(numbers[lone[spaced.argmax()]]))
    first_lines = numbers[offsets[:-1]].tolist()
    for below in sorted(weights.keys() - set(first_lines)):
        if below < block.first_line + lines or not block.ends_with_newline:  # else it may not have arrived
            raise DataError(f"{WEIGHT} with no sequence below it (remove the line)", name, below - 1)
    corpus = Corpus(
        source=name,
        columns=Cells(data, starts[None], lengths[None]),
        offsets=offsets,
        lines=numbers,
        weights=np.array([weights.get(line, 1.0) for line in first_lines]) if weights else None,
        attributes=_attribute_rows(data, starts + lengths + 1, ends, name, numbers),
    )
    return ParsedBlock(block, corpus, "\t", ends)


def _taken_weights(block: Block, name: str) -> tuple[bytes, dict[int, float]]:
    """Return the bytes of a block, with spaces in the place of weights, and the weights by the line below each."""
    data, out, weights = block.data, bytearray(block.data), dict[int, float]()
    counted, line = 0, block.first_line
    for found in _WEIGHT.finditer(data):
        line += data.count(b"\n", counted, found.start())
        counted = found.start()
        before = data[data.rfind(b"\n", 0, max(counted - 1, 0)) + 1 : counted]
        if before.strip(b" \t\r\n\xef\xbb\xbf"):
            raise DataError(f"{WEIGHT} must come before the first line of a sequence, and only once", name, line)
        if found.group(3).strip(b"\t"):
            raise DataError(f"{WEIGHT} must be on a line of its own", name, line)
        weights[line + 1] = parse_weight((found.group(2) or b"").decode("utf-8"), WEIGHT, name, line)
        out[slice(*found.span(1))] = b" " * len(found.group(1))
    return bytes(out), weights


def label_column(parsed: ParsedBlock) -> ParsedBlock:
    """Return the sequences as lines with nothing but their labels, for output; as many lines as there were."""
    data, corpus = parsed.block.data, parsed.corpus
    cells, ends = parsed.cells, parsed.row_ends
    kept = cells.starts[0] + cells.lengths[0]  # where labels end, and other things begin
    # A weight is no position: an empty line in its place keeps the number of lines.
    weights = [found.span(1) for found in _WEIGHT.finditer(data)] if corpus.weights is not None else []
    cuts = np.concatenate([np.stack([kept, ends], axis=1), np.array(weights, np.int64).reshape(-1, 2)])
    if weights:
        cuts = cuts[np.argsort(cuts[:, 0])]
    out = np.empty(len(data) - int((cuts[:, 1] - cuts[:, 0]).sum()), np.uint8)
    nothing = np.zeros(len(cuts), np.int32)
    first, last = np.ascontiguousarray(cuts[:, 0]), np.ascontiguousarray(cuts[:, 1])
    _text.put_values(data, first, last, nothing, np.zeros(0, np.uint8), np.zeros(1, np.int64), out)
    gone = np.concatenate([[0], np.cumsum(last - first)])  # bytes cut before each cut
    ends = kept - gone[np.searchsorted(first, kept)]
    return ParsedBlock(Block(parsed.block.first_line, out.tobytes()), corpus, parsed.separator, ends)


def _attribute_rows(data: bytes, first: np.ndarray, last: np.ndarray, name: str, numbers: np.ndarray) -> AttributeRows:
    """Return the attributes of rows whose fields stand from `first` [N] to `last` [N]."""
    text = np.frombuffer(bytearray(data) if b"\\" in data else data, np.uint8)
    fields = np.count_nonzero(text == ord("\t"))  # at most
    starts, lengths = np.empty(fields, np.int64), np.empty(fields, np.int32)
    values, indptr = np.empty(fields), np.empty(len(first) + 1, np.int64)
    only_ones, bad, begin, end, nameless = _text.split_attributes(text, first, last, starts, lengths, values, indptr)
    if bad >= 0:
        field, line = data[begin:end].decode("utf-8"), int(numbers[bad])
        if nameless:
            raise DataError(rf"attribute {field!r} has no name (a colon is written \:)", name, line)
        raise DataError(f"the weight of attribute {field!r} {NOT_A_NUMBER}", name, line)
    count = int(indptr[-1])
    names = NameCells(text, starts[:count], lengths[:count])
    return AttributeRows(indptr, names, ones(count) if only_ones else values[:count].copy())


CRFSUITE = Format(
    "crfsuite", "CRFsuite", parse_block, suffixes=(".crfsuite",), attributes=True, with_columns=label_column
)
