"""Lines of a file as they arrive, before their sequence is complete, for answers with a bounded delay."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import ConfigError
from . import FORMATS
from .formats import named_layout
from .layout import PLAIN, Layout
from .lines import Block, ParsedBlock, blocks, display_name, opened


@dataclass(frozen=True)
class Arrival:
    """Consecutive lines, parsed, with the ends of sequences before and after their positions."""

    parsed: ParsedBlock
    ends_before: bool  # a sequence ends before its first position, or anywhere if it has none
    ends_after: bool  # a blank line stands after its last position


def arriving_lines(
    path: str | os.PathLike[str], format: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
) -> Iterator[Arrival]:
    """Yield the lines of a file, as many at a time as there are; a sequence may go on in what comes next."""
    chosen = FORMATS[format]
    if chosen.sequence_per_line or not chosen.takes_columns:
        raise ConfigError(f"{chosen.title} is read in whole sequences, so it cannot be labelled line by line")
    name, layout = display_name(path), named_layout(path, layout)
    with opened(path) as stream:
        value: str | None = None  # of the column that tells sequences apart, in the sequence that goes on, if one does
        parts = (replace(block, before=value) for block in blocks(stream, name, sequence_per_line=True))
        for parsed in chosen.parse(parts, name, columns, layout):
            block, corpus, lines = parsed.block, parsed.corpus, parsed.corpus.lines
            if not len(lines):
                ends = _has_blank(block, 0, block.line_count, layout)
                value = None if ends else value
                yield Arrival(parsed, ends, False)
                continue
            before = _has_blank(block, 0, int(lines[0]) - block.first_line, layout)
            after = _has_blank(block, int(lines[-1]) + 1 - block.first_line, block.line_count, layout)
            if parsed.sequence_place is not None:
                first, *_ = own = list(corpus.columns[parsed.sequence_place])
                before |= value is not None and first not in ("", value)
                above = value if value is not None and corpus.sequences == 1 and not before else ""
                value = next(filter(None, reversed(own[int(corpus.offsets[-2]) :])), above)
                value = None if after else value
            yield Arrival(parsed, before, after)


def _has_blank(block: Block, first: int, last: int, layout: Layout) -> bool:
    """Return True if one of the lines first:last of a block, counted from 0, is blank."""
    blanks = layout.blanks.decode()
    return first < last and any(not line.strip(blanks) for line in block.content()[first:last])
