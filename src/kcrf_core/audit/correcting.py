"""Corrections: a list that a person works through, and data with the labels that are accepted.

A worklist is a table with TABs between columns: line, text, gold, suggested, probability, reason. Rows may be taken
out, and suggested labels changed; what is left is what will be applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..corpora import FORMATS, Layout
from ..errors import DataError
from .audit import DoubtfulPosition

HEADER = ("line", "text", "gold", "suggested", "probability", "reason")


@dataclass(frozen=True)
class Correction:
    """A label in a line of a file, and what shall stand in its place."""

    line: int
    gold: str
    suggested: str


def worklist(positions: Iterable[DoubtfulPosition]) -> str:
    """The table as text."""
    rows = [HEADER]
    rows += [(str(each.line), _cell(each.text), each.gold, each.suggested, f"{each.probability:.4g}", each.reason)
             for each in positions]  # fmt: skip
    return "".join("\t".join(row) + "\n" for row in rows)


def read_worklist(text: str, path: str) -> list[Correction]:
    """The changes that a worklist still has."""
    lines = text.splitlines()
    if not lines or tuple(lines[0].split("\t")) != HEADER:
        raise DataError(f"no worklist: its first line should be {' '.join(HEADER)}, with TABs between them", path, 1)
    changes = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 4 or not cells[0].isdecimal() or not cells[3].strip():
            raise DataError("a row should have a line number, a text, a gold and a suggested label", path, number)
        changes.append(Correction(int(cells[0]), cells[2], cells[3].strip()))
    return changes


def changes_of(positions: Iterable[DoubtfulPosition], least: float) -> list[Correction]:
    """Those of positions that are wrong with at least this probability."""
    return [Correction(each.line, each.gold, each.suggested) for each in positions if each.wrong >= least]


def corrected(
    text: str, changes: Sequence[Correction], format_: str, column: str | None, layout: Layout, path: str
) -> str:
    """The text of a file with labels changed, and nothing else; `column` is the label's of CoNLL-U."""
    kind = FORMATS[format_]
    lines = text.split("\n")
    for change in changes:
        if not 1 <= change.line <= len(lines):
            raise DataError(f"there is no line {change.line}: is the worklist of other data?", path)
        line = lines[change.line - 1]
        new = _relabelled(line, change, kind, column, layout)
        if new is None:
            raise DataError(f"the label is not {change.gold!r}: is the worklist of other data?", path, change.line)
        lines[change.line - 1] = new
    return "\n".join(lines)


def _relabelled(line: str, change: Correction, kind, column: str | None, layout: Layout) -> str | None:
    """A line with its label exchanged; None where it has another one."""
    if kind.columns:  # CoNLL-U
        place, cells = kind.column_places([kind.columns[0], column])[-1], line.split("\t")
        if place >= len(cells) or cells[place].rstrip("\r") != change.gold:
            return None
        cells[place] = cells[place].replace(change.gold, change.suggested, 1)
        return "\t".join(cells)
    if kind.attributes:  # the label comes first
        return change.suggested + line[len(change.gold) :] if line.split("\t")[0] == change.gold else None
    content = line.rstrip()
    written, wanted = layout.written(change.gold), layout.written(change.suggested)
    before = content.removesuffix(written)
    if before == content or (before and before[-1] not in (layout.separator or "\t ")):
        return None
    return before + wanted + line[len(content) :]


def _cell(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")
