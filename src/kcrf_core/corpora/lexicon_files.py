"""Files of lexicons and of clusters of words, read as text; mistakes are named with their line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ..errors import DataError
from ..system import counted
from .lexicons import Clusters, Lexicon
from .lines import blocks, checked, display_name, opened

BITS = re.compile("[01]+")


def load_lexicon(path: str, fold: bool) -> Lexicon:
    """Read a file with an entry on each line; `# ` begins a comment, `#word` an entry."""
    name, entries = display_name(path), []
    for number, line in _lines(path):
        if "\t" in line:
            expected = "a lexicon has one entry on each line, its words separated by spaces"
            raise DataError(f"a TAB inside the line, where {expected}", name, number)
        entries.append(line)
    out = Lexicon.of(os.path.basename(path), entries, fold)
    if not out.entries:
        raise DataError("no entries, where a lexicon has one on each line", name)
    return out


def load_clusters(path: str) -> Clusters:
    """Read lines of path, word and count, as Brown clustering writes them, or of word and path."""
    about = os.stat(path)
    return _read_clusters(path, about.st_ino, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=1)
def _read_clusters(path: str, *version: int) -> Clusters:
    """Read clusters, once while the file stays as it is: default features are made of them before they are fitted."""
    name, rows = display_name(path), []
    for number, line in _lines(path, comments=False):
        fields = line.split("\t") if "\t" in line else line.split(" ")
        fields = [field.strip(" ") for field in fields if field.strip(" ")]
        if not 2 <= len(fields) <= 3:
            expected = "path, word and count, or word and path, are expected"
            raise DataError(
                f"{counted(len(fields), 'value')}, where {expected}, separated by TABs or spaces", name, number
            )
        rows.append((number, fields))
    if not rows:
        raise DataError("an empty file, where clusters have a word and its path on each line", name)
    # A word may be of 0 and 1, too: paths are in the column that has nothing else.
    column = next((column for column in (0, 1) if all(BITS.fullmatch(fields[column]) for _, fields in rows)), None)
    if column is None:
        column = 0 if sum(BITS.fullmatch(fields[0]) is not None for _, fields in rows) * 2 > len(rows) else 1
    words: dict[str, int] = {}
    paths: dict[str, int] = {}
    numbers = []
    for number, fields in rows:
        text, word = fields[column], fields[1 - column]
        if not BITS.fullmatch(text):
            raise DataError(f"'{text}' is no path of 0 and 1, such as 0110", name, number)
        if word in words:
            raise DataError(f"'{word}' again, which line {words[word]} has", name, number)
        words[word] = number
        numbers.append(paths.setdefault(text, len(paths)))
    return Clusters(os.path.basename(path), tuple(words), tuple(paths), np.array(numbers, dtype=np.int32))


def _lines(path: str, comments: bool = True) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text that are not blank, with their numbers, without `comments` where it may have some."""
    name = display_name(path)
    with opened(path) as stream:
        for block in blocks(stream, name, sequence_per_line=True):
            for number, line in enumerate(checked(block, name).content(), start=block.first_line):
                line = line.strip(" \t")
                if line and not (comments and (line == "#" or line.startswith("# "))):
                    yield number, line
