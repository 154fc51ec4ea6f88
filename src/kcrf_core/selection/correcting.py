"""Corrections: a list that a person works through, and data with the labels that are accepted.

A worklist is a table with TABs between columns: line, text, gold, suggested, probability, reason. Users may delete rows
and change suggested labels; the rest is applied.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ..corpora import PLAIN, Layout, stream_corpus
from ..errors import DataError
from .label_audit import DoubtfulPosition

HEADER = ("line", "text", "gold", "suggested", "probability", "reason")


@dataclass(frozen=True)
class Correction:
    """A label in a line of a file, and its replacement."""

    line: int
    gold: str
    suggested: str


def worklist(positions: Iterable[DoubtfulPosition]) -> str:
    """Return the table as text."""
    rows = [HEADER]
    for each in positions:
        text = each.text.replace("\t", " ").replace("\n", " ")
        rows.append((str(each.line), text, each.gold, each.suggested, f"{each.probability:.4g}", each.reason))
    return "".join("\t".join(row) + "\n" for row in rows)


def read_worklist(text: str, path: str) -> list[Correction]:
    """Return the changes that a worklist still has."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]  # words may have other characters that end lines
    if tuple(lines[0].split("\t")) != HEADER:
        raise DataError(f"no worklist: its first line should be {' '.join(HEADER)}, with TABs between them", path, 1)
    changes = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) < 4 or not cells[0].isdecimal() or not cells[3].strip():
            raise DataError("a row should have a line number, a text, a gold and a suggested label", path, number)
        changes.append(Correction(int(cells[0]), cells[2], cells[3]))
    return changes


def changes_of(positions: Iterable[DoubtfulPosition], least: float) -> list[Correction]:
    """Return corrections of positions that are wrong with at least this probability."""
    return [Correction(each.line, each.gold, each.suggested) for each in positions if each.wrong >= least]


def corrected(
    path: str, changes: Sequence[Correction], format_: str, columns: Sequence[str] | None = None, layout: Layout = PLAIN
) -> tuple[bytes, bytes]:
    """Return the bytes of a file without and with changes of labels; `columns` of CoNLL-U end with the label's."""
    by_line: dict[int, Correction] = {}
    for change in changes:
        if by_line.setdefault(change.line, change) != change:
            raise DataError("the worklist has two corrections of this line: keep one", path, change.line)
    before: list[bytes] = []
    after: list[bytes] = []
    for parsed in stream_corpus(path, format_, columns, layout):
        data, corpus, done = parsed.block.data, parsed.corpus, 0
        here = np.flatnonzero(np.isin(corpus.lines, list(by_line))).tolist()
        begins, ends = parsed.label_places() if here else ((), ())
        for t in here:
            change = by_line.pop(int(corpus.lines[t]))
            if corpus.columns[-1][t] != change.gold:
                raise DataError(f"the label is not {change.gold!r}: is the worklist of other data?", path, change.line)
            if parsed.separator == " " and " " in change.suggested:
                raise DataError(f"no label can be {change.suggested!r}: spaces separate columns", path, change.line)
            quoted = layout.quoted and data[begins[t] : begins[t] + 1] == b'"'
            after += data[done : begins[t]], layout.written(change.suggested, quoted).encode()
            done = ends[t]
        before.append(data)
        after.append(data[done:])
    if by_line:
        raise DataError("there is no label in this line: is the worklist of other data?", path, min(by_line))
    return b"".join(before), b"".join(after)


def differences(before: bytes, after: bytes, names: tuple[str, str], context: int = 2) -> bytes:
    """Return a unified diff of two texts with the same number of lines."""
    old, new = _lines(before), _lines(after)
    changed = [number for number, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
    hunks: list[list[int]] = []
    for number in changed:
        if hunks and number - hunks[-1][-1] <= 2 * context + 1:
            hunks[-1].append(number)
        else:
            hunks.append([number])
    # A TAB ends names that have spaces.
    out = [b"%s %s%s\n" % (mark, os.fsencode(name), b"\t" * (" " in name))
           for mark, name in zip((b"---", b"+++"), names, strict=True)] if hunks else []  # fmt: skip
    for hunk in hunks:
        first, last = max(hunk[0] - context, 0), min(hunk[-1] + context + 1, len(old))
        out.append(b"@@ -%d,%d +%d,%d @@\n" % (first + 1, last - first, first + 1, last - first))
        for same, run in groupby(range(first, last), lambda number: old[number] == new[number]):
            lines = list(run)
            if same:
                out += [b" " + old[number] for number in lines]
            else:
                out += [b"-" + old[number] for number in lines] + [b"+" + new[number] for number in lines]
    return b"".join(out)


def _lines(text: bytes) -> list[bytes]:
    """Return lines with their ends, as a diff has them."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    if text.endswith(b"\n") or not text:
        return lines[:-1]
    return [*lines[:-1], lines[-1] + b"\\ No newline at end of file\n"]
