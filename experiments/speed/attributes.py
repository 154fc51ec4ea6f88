"""Attributes of CoNLL-2000 as users of CRFsuite build them in Python: strings, position by position.

`attributes` has CRFsuite's chunking template: the same 19 attributes as `chunking.yaml`, boundary symbols included, and
one attribute for the first and the last position of a sentence: python-crfsuite has no weights for those, and with them
its objective with all states and transitions is exactly ours, where the edge term has a weight for each first and each
last label.

`default_attributes` has the default features of kcrf, with the names of `kcrf export --to crfsuite`. Strings of a word,
and of five tags, are made once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

FIRST, LAST = "__BOS__", "__EOS__"
BEFORE, AFTER = ["_B-2", "_B-1"], ["_B+1", "_B+2"]
AFFIXES = range(1, 5)


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


def default_attributes(rows: list[list[str]]) -> list[list[str]]:
    words = [*BEFORE, *(row[0] for row in rows), *AFTER]
    tags = [*BEFORE, *(row[1] for row in rows), *AFTER]
    out = []
    for t in range(len(rows)):
        item = _of_tags(*tags[t : t + 5]).copy()
        for offset in (-2, -1, 0, 1, 2):
            item += _of_word(words[t + 2 + offset], offset)
        out.append(item)
    return out


@cache
def parts(word: str) -> list[str]:
    """Return lower case, prefixes, suffixes and shape of a word: runs of capitals, small letters, digits and others."""
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word)
    affixes = [*(word[:length] for length in AFFIXES), *(word[-length:] for length in AFFIXES)]
    return [word.lower(), *affixes, "".join(kind for kind, _ in groupby(kinds))]


@cache
def _of_word(word: str, offset: int) -> list[str]:
    beyond = word in (*BEFORE, *AFTER)
    lower, *affixes, shape = [word] * 10 if beyond else parts(word)
    out = [f"c0[{offset}]={word}"]
    if abs(offset) < 2:
        out += [f"c0.lower[{offset}]={lower}", f"c0.shape[{offset}]={shape}"]
    if offset == 0:
        kinds = [f"{kind}{length}" for kind in ("prefix", "suffix") for length in AFFIXES]
        out += [f"c0.{kind}[0]={affix}" for kind, affix in zip(kinds, affixes, strict=True)]
    return out


@cache
def _of_tags(*tags: str) -> list[str]:
    names = "c1", "c1/c1[1]", "c1/c1[1]/c1[2]"
    return [
        f"{name}[{first - 2}]={'/'.join(tags[first : first + length])}"
        for length, name in enumerate(names, 1)
        for first in range(6 - length)
    ]
