"""CRFsuite's chunking template as attributes, the way its Python users build them: strings, position by position.

The same 19 attributes as `chunking.yaml`, boundary symbols included, and one attribute for the first and the last
position of a sentence: python-crfsuite has no weights for those, and with them its objective with all states and
transitions is exactly ours, where the edge term has a weight for each first and each last label.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FIRST, LAST = "__BOS__", "__EOS__"


def read_sentences(path: str | Path) -> Iterator[list[list[str]]]:
    """Sentences of a CoNLL file, each a list of rows."""
    rows: list[list[str]] = []
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            row = line.split()
            if row:
                rows.append(row)
            elif rows:
                yield rows
                rows = []
    if rows:
        yield rows


def attributes(rows: list[list[str]]) -> list[list[str]]:
    """Attributes of each position; rows are word, part of speech and perhaps more."""
    words = ["_B-2", "_B-1", *(row[0] for row in rows), "_B+1", "_B+2"]
    tags = ["_B-2", "_B-1", *(row[1] for row in rows), "_B+1", "_B+2"]
    out = []
    for t in range(len(rows)):
        w0, w1, w2, w3, w4 = words[t : t + 5]
        p0, p1, p2, p3, p4 = tags[t : t + 5]
        out.append(
            [
                f"w[-2]={w0}",
                f"w[-1]={w1}",
                f"w[0]={w2}",
                f"w[1]={w3}",
                f"w[2]={w4}",
                f"w[-1]|w[0]={w1}|{w2}",
                f"w[0]|w[1]={w2}|{w3}",
                f"pos[-2]={p0}",
                f"pos[-1]={p1}",
                f"pos[0]={p2}",
                f"pos[1]={p3}",
                f"pos[2]={p4}",
                f"pos[-2]|pos[-1]={p0}|{p1}",
                f"pos[-1]|pos[0]={p1}|{p2}",
                f"pos[0]|pos[1]={p2}|{p3}",
                f"pos[1]|pos[2]={p3}|{p4}",
                f"pos[-2]|pos[-1]|pos[0]={p0}|{p1}|{p2}",
                f"pos[-1]|pos[0]|pos[1]={p1}|{p2}|{p3}",
                f"pos[0]|pos[1]|pos[2]={p2}|{p3}|{p4}",
            ]
        )
    out[0].append(FIRST)
    out[-1].append(LAST)
    return out
