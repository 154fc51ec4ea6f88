"""CoNLL-U files, as Universal Dependencies have them: one word per line in ten columns separated by TABs, a blank line
after each sentence.

Words are positions. Comments (`#`), lines of multiword tokens (`1-2`) and of empty nodes (`1.1`) are not: they are
passed over when reading and stay as they are when a file is tagged. Of the columns those are taken that are asked for
by name, the label's last; all are strings, and `_` is a value like others. A label that is predicted takes the place
of what stands in its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..errors import DataError
from . import _text
from .conll import BYTE_ORDER_MARK, split
from .corpus import Corpus
from .formats import Format
from .layout import Layout
from .lines import Block, ParsedBlock, put_texts
from .tables import Cells

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
DEFAULT = ("form", "upos")  # what else there is, people or programs have added knowing the label

_LAYOUT = Layout(separator="\t", comment=("#",))


def parse_blocks(blocks: Iterable[Block], name: str, columns: Sequence[str] = DEFAULT) -> Iterator[ParsedBlock]:
    """Parse the consecutive blocks of one file, each as it comes."""
    places = CONLLU.column_places(columns)
    for block in blocks:
        yield _parse_block(block, name, tuple(columns), places)


def parse_after(block: Block, name: str, known: ParsedBlock) -> ParsedBlock:
    """Parse one block with the columns of another one."""
    names = known.corpus.names
    assert names is not None
    return _parse_block(block, name, names, CONLLU.column_places(names))


def _parse_block(block: Block, name: str, names: tuple[str, ...], places: list[int]) -> ParsedBlock:
    data = block.data
    begin = len(BYTE_ORDER_MARK) if block.first_line == 1 and data.startswith(BYTE_ORDER_MARK) else 0
    rows = split(block, data, name, "\t", len(COLUMNS), _LAYOUT, begin, what="CoNLL-U, ")
    starts, lengths = rows.cells.starts, rows.cells.lengths
    kept, begins = np.empty(len(rows.lines), np.int64), np.empty(len(rows.offsets), np.int64)
    words, sentences, bad, expected = _text.keep_words(data, starts[0], lengths[0], rows.offsets, kept, begins)
    if bad >= 0:
        found = data[starts[0, bad] : starts[0, bad] + lengths[0, bad]].decode("utf-8")
        hint = " (is a blank line between two sentences missing?)" if found == "1" else ""
        raise DataError(f"'{found}' where the ID of word {expected} was expected{hint}", name, int(rows.lines[bad]))
    kept = kept[:words]
    corpus = Corpus(
        source=name,
        columns=Cells(data, *(np.stack([table[place][kept] for place in places]) for table in (starts, lengths))),
        offsets=begins[: sentences + 1].copy(),
        lines=rows.lines[kept],
        names=names,
        file_format=CONLLU.name,
    )
    return ParsedBlock(block, corpus, "\t")


def put_labels(parsed: ParsedBlock, labels: Sequence[str], numbers: np.ndarray) -> bytes:
    """The bytes of a block with labels in their column: `numbers` [N] say which of the labels."""
    return put_texts(parsed, labels, numbers.astype(np.int32, copy=False), *parsed.label_places())


CONLLU = Format(
    "conllu",
    "CoNLL-U",
    parse_blocks,
    suffixes=(".conllu",),
    columns=COLUMNS,
    default_columns=DEFAULT,
    plain_columns=("id", "form"),
    no_value="_",
    parse_after=parse_after,
    put_labels=put_labels,
)
