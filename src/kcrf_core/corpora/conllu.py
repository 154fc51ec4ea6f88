"""CoNLL-U files, as Universal Dependencies have them: one word per line in ten columns separated by TABs, a blank line
after each sentence.

Words are positions. Comments (`#`), lines of multiword tokens (`1-2`) and of empty nodes (`1.1`) are not: they are
passed over when reading and stay as they are when a file is tagged. Of the columns those are taken that are asked for
by name, the label's last; all are strings, and `_` is a value like others. A label that is predicted takes the place
of what stands in its column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..errors import DataError
from ..system import counted
from .corpus import Corpus
from .formats import Format
from .lines import Block, ParsedBlock, encode_lines

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DEFAULT = ("form", "upos")  # what else there is, people or programs have added knowing the label

_NOT_A_WORD = re.compile(r"[0-9]+[-.][0-9]+")


def parse_blocks(blocks: Iterable[Block], name: str, columns: Sequence[str] = DEFAULT) -> Iterator[ParsedBlock]:
    """Parse the consecutive blocks of one file, each as it comes."""
    places = CONLLU.column_places(columns)
    for block in blocks:
        yield _parse_block(block, name, tuple(columns), places)


def _parse_block(block: Block, name: str, names: tuple[str, ...], places: list[int]) -> ParsedBlock:
    rows: list[list[str]] = []
    numbers: list[int] = []
    starts: list[int] = []
    words = 0  # of the sentence so far
    for number, line in enumerate(block.content(), start=block.first_line):
        if line.startswith("#"):
            continue
        if not line.strip(" "):
            words = 0
            continue
        row = line.split("\t")
        if len(row) != len(COLUMNS):
            count = counted(len(row), "column")
            raise DataError(f"{count}, expected 10 (CoNLL-U, tab-separated; is a value missing?)", name, number)
        if row[0] != str(words + 1):
            if _NOT_A_WORD.fullmatch(row[0]):
                continue
            message = f"'{row[0]}' where the ID of word {words + 1} was expected"
            hint = " (is a blank line between two sentences missing?)" if row[0] == "1" else ""
            raise DataError(message + hint, name, number)
        if words == 0:
            starts.append(len(rows))
        words += 1
        rows.append(row)
        numbers.append(number)
    corpus = Corpus(
        source=name,
        columns=tuple([row[place] for row in rows] for place in places),
        offsets=np.array([*starts, len(rows)], dtype=np.int64),
        lines=np.array(numbers, dtype=np.int64),
        names=names,
        file_format=CONLLU.name,
    )
    return ParsedBlock(block, corpus, "\t")


def put_labels(parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """The bytes of a block with labels in their column: `numbers` [N] say which of the labels."""
    place = CONLLU.column_places(parsed.corpus.names)[-1]
    lines = list(parsed.block.lines)
    at = (parsed.corpus.lines - parsed.block.first_line).tolist()
    for line, number in zip(at, numbers.tolist(), strict=True):
        row = lines[line].split("\t")
        ending = "\r" if place == len(row) - 1 and row[place].endswith("\r") else ""
        row[place] = labels[number] + ending
        lines[line] = "\t".join(row)
    return encode_lines(lines, parsed.block.ends_with_newline)


CONLLU = Format(
    "conllu",
    "CoNLL-U",
    parse_blocks,
    suffixes=(".conllu",),
    columns=COLUMNS,
    default_columns=DEFAULT,
    plain_columns=("id", "form"),
    no_value="_",
    put_labels=put_labels,
)
