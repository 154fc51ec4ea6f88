r"""CRFsuite attribute files: `label<TAB>attribute<TAB>attribute:weight`, a blank line after each sequence.

Inside the name of an attribute `\:` is a colon and `\\` a backslash; any other backslash stands for itself,
as in CRFsuite. The weight follows the last colon that is not escaped; without one it is 1. An empty field
is no attribute. Labels are taken as they stand. A line `@weight:2.5` at the head of a sequence weighs it.
Unlike CRFsuite we know no comments: `#` is a character like others, and tokens do begin with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from ..errors import DataError
from .conll import number_positions
from .corpus import AttributeRows, Corpus
from .formats import Format
from .lines import Block, ParsedBlock, encode_lines
from .weight_lines import parse_weight, sequence_weights

WEIGHT = "@weight"

# Lone surrogates cannot come out of a UTF-8 file, so they can stand for the escaped characters while whole
# blocks are taken apart. Pairs of backslashes go first: `\\:` is a backslash and a colon that separates.
ESCAPES = (("\\\\", "\ud800", "\\"), ("\\:", "\ud801", ":"))

# Narrower than what float() takes, which includes nan, infinity, 1_000, spaces and the digits of all scripts.
NUMBER_CHARACTERS = frozenset("0123456789+-.eE")

NOT_A_NUMBER = r"is not a finite number (a colon inside a name is written \:)"


def escaped(name: str) -> str:
    """The name of an attribute as it is written."""
    return name.replace("\\", "\\\\").replace(":", "\\:")


def parse_blocks(blocks: Iterable[Block], name: str) -> Iterator[ParsedBlock]:
    """Parse the consecutive blocks of one file, each as it comes."""
    for block in blocks:
        yield parse_block(block, name)


def parse_block(block: Block, name: str) -> ParsedBlock:
    """Parse one block; its corpus has the labels as the only column."""
    lines = [line if line.strip(" ") else "" for line in block.content()]
    weight_lines = _take_weight_lines(lines, name, block.first_line)
    numbers, offsets = number_positions(lines, block.first_line)
    rows = [line.split("\t") for line in lines if line]
    labels = [row[0] for row in rows]
    _check_labels(rows, labels, name, numbers)
    corpus = Corpus(
        source=name,
        columns=(labels,),
        offsets=offsets,
        lines=numbers,
        weights=sequence_weights(weight_lines, numbers, offsets, WEIGHT, name),
        attributes=_attribute_rows(rows, name, numbers),
    )
    return ParsedBlock(block, corpus, "\t")


def label_column(parsed: ParsedBlock) -> ParsedBlock:
    """The same sequences as lines with nothing but their labels, for output; as many lines as there were."""
    corpus, lines = parsed.corpus, list(parsed.block.lines)
    places = (corpus.lines - parsed.block.first_line).tolist()
    endings = ["\r" if line.endswith("\r") else "" for line in lines]
    # A weight is no position: an empty line in its place keeps the number of lines.
    for place, line in enumerate(parsed.block.content()):
        if line.startswith(f"{WEIGHT}:"):
            lines[place] = endings[place]
    for place, label in zip(places, corpus.columns[0], strict=True):
        lines[place] = f"{label}{endings[place]}"
    data = encode_lines(lines, parsed.block.ends_with_newline)
    stops = np.cumsum([len(line.encode()) + 1 for line in lines]) - 1  # where each line feed stands
    returns = np.array([len(ending) for ending in endings])
    ends = (stops - returns)[places].astype(np.int64)
    return ParsedBlock(Block(parsed.block.first_line, data), corpus, parsed.separator, ends)


def _take_weight_lines(lines: list[str], name: str, first_line: int) -> dict[int, float]:
    """Empty the lines that weigh a sequence, in place; their values by line number."""
    weights: dict[int, float] = {}
    for index, line in enumerate(lines):
        if not line.startswith(WEIGHT):
            continue
        head, *others = line.split("\t")
        keyword, _, text = head.partition(":")
        if keyword != WEIGHT:
            continue
        number = first_line + index
        if index > 0 and (lines[index - 1] or number - 1 in weights):
            raise DataError(f"{WEIGHT} stands only at the head of a sequence, and once", name, number)
        if any(others):
            raise DataError(f"{WEIGHT} stands on a line of its own", name, number)
        weight = parse_weight(text, WEIGHT, f"{WEIGHT}:2.5", name, number)
        weights[number] = weight
        lines[index] = ""
    return weights


def _check_labels(rows: list[list[str]], labels: list[str], name: str, numbers: np.ndarray) -> None:
    if "" in labels:
        message = "no label before the first TAB (write any known label if there is none)"
        raise DataError(message, name, int(numbers[labels.index("")]))
    for t, row in enumerate(rows):
        if len(row) == 1 and " " in row[0]:  # else a whole line would pass as a label, silently
            raise DataError("spaces but no TAB (attribute files are tab-separated)", name, int(numbers[t]))


def _attribute_rows(rows: list[list[str]], name: str, numbers: np.ndarray) -> AttributeRows:
    # The first field of a row is its label, which is not empty: it is counted with the others, then left out.
    counts = np.fromiter((len(row) - row.count("") for row in rows), dtype=np.int64, count=len(rows)) - 1
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)  # [N+1]
    fields = [field for row in rows for field in row[1:] if field]  # [nnz]
    names, values, bad = _split_fields(fields)
    if bad is not None:
        line = int(numbers[np.searchsorted(indptr, bad, side="right") - 1])
        if not names[bad]:
            raise DataError(rf"attribute {fields[bad]!r} has no name (a colon is written \:)", name, line)
        raise DataError(f"the weight of attribute {fields[bad]!r} {NOT_A_NUMBER}", name, line)
    return AttributeRows(indptr, names, values)


def _split_fields(fields: list[str]) -> tuple[list[str], np.ndarray, int | None]:
    """Names [nnz] and weights [nnz] of attribute fields, and which one is bad, if any."""
    text = "\t".join(fields)  # a string for the whole block: the escapes cost nothing per field
    escaped = "\\" in text
    if escaped:
        for escape, stand_in, _ in ESCAPES:
            text = text.replace(escape, stand_in)
    if ":" not in text:
        names, values = text.split("\t") if fields else [], np.ones(len(fields))
    else:
        marked = text.split("\t")
        colons = [field.rfind(":") for field in marked]
        names = [field if at < 0 else field[:at] for field, at in zip(marked, colons, strict=True)]
        values = _parse_numbers(["1" if at < 0 else field[at + 1 :] for field, at in zip(marked, colons, strict=True)])
    if escaped:
        text = "\t".join(names)
        for _, stand_in, character in ESCAPES:
            text = text.replace(stand_in, character)
        names = text.split("\t")
    bad = np.flatnonzero(~np.isfinite(values))
    candidates = ([int(bad[0])] if len(bad) else []) + ([names.index("")] if "" in names else [])
    return names, values, min(candidates, default=None)


def _parse_numbers(texts: list[str]) -> np.ndarray:
    """The numbers that are written in `texts`, nan where there is none."""
    if NUMBER_CHARACTERS.issuperset("".join(texts)):
        with suppress(ValueError):
            return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    return np.array([_parse_number(text) for text in texts])  # one is bad: the caller wants to know which


def _parse_number(text: str) -> float:
    try:
        return float(text) if NUMBER_CHARACTERS.issuperset(text) else float("nan")
    except ValueError:
        return float("nan")


CRFSUITE = Format(
    "crfsuite",
    "CRFsuite",
    parse_blocks,
    suffixes=(".crfsuite",),
    attributes=True,
    with_columns=label_column,
)
