"""CoNLL-U files of Universal Dependencies: one word per line in ten columns, a blank line after each sentence.

Words are positions. Comments (`#`), lines of multiword tokens (`1-2`) and of empty nodes (`1.1`) are skipped when
reading and stay as they are when a file is tagged. Columns are chosen by name, the label's last; all are strings, and
`_` is a value like others. A predicted label replaces the value in its column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..errors import DataError
from .conll import Rows, split
from .corpus import Corpus
from .formats import Format
from .layout import Layout
from .lines import Block, ParsedBlock, put_texts
from .tables import Cells

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DEFAULT = ("form", "upos")  # the others were annotated by people or programs that knew the label

NO_WORD = 0  # in the place of a number
_NUMBER, _NO_WORD = re.compile("[1-9][0-9]{0,17}"), re.compile("[0-9]+[-.][0-9]+")
_LAYOUT = Layout(separator="\t", comment=("#",))


def parse_block(
    block: Block, name: str, columns: tuple[str, ...], layout: Layout, known: ParsedBlock | None
) -> ParsedBlock:
    """Parse one block, as `Format` says."""
    places = CONLLU.column_places(columns)
    rows = split(block, block.data, name, "\t", len(COLUMNS), _LAYOUT, block.begin, what="CoNLL-U, ")
    kept, offsets = _words(rows, name)
    cells = rows.cells
    corpus = Corpus(
        source=name,
        columns=Cells(
            cells.data, *(np.stack([own[place][kept] for place in places]) for own in (cells.starts, cells.lengths))
        ),
        offsets=offsets,
        lines=rows.lines[kept],
        names=columns,
    )
    return ParsedBlock(block, corpus, "\t")


def _words(rows: Rows, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that are words, whose IDs count from 1 in each sentence, and where sentences begin in them."""
    ids = rows.cells.coded(0)
    # Multiword tokens and empty nodes have `NO_WORD` in the place of a number.
    others = [NO_WORD if _NO_WORD.fullmatch(text) else -1 for text in ids.values]
    known = [int(text) if _NUMBER.fullmatch(text) else other for text, other in zip(ids.values, others, strict=True)]
    numbers = np.array(known, dtype=np.int64)[ids.codes]
    kept = np.flatnonzero(numbers != NO_WORD)
    begins = np.searchsorted(kept, rows.offsets)
    expected = np.arange(1, len(kept) + 1) - np.repeat(begins[:-1], np.diff(begins))
    wrong = np.flatnonzero(numbers[kept] != expected)
    if len(wrong):
        bad, number = int(kept[wrong[0]]), int(expected[wrong[0]])
        hint = " (is a blank line between two sentences missing?)" if ids[bad] == "1" else ""
        raise DataError(f"'{ids[bad]}' where the ID of word {number} was expected{hint}", name, int(rows.lines[bad]))
    return kept, np.unique(begins)


def put_labels(parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """Return the bytes of a block with labels in their column: `numbers` [N] are those of the labels."""
    return put_texts(parsed, labels, numbers.astype(np.int32, copy=False), *parsed.label_places())


CONLLU = Format(
    "conllu",
    "CoNLL-U",
    parse_block,
    suffixes=(".conllu",),
    columns=COLUMNS,
    default_columns=DEFAULT,
    plain_columns=("id", "form"),
    no_value="_",
    put_labels=put_labels,
)
