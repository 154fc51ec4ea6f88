"""Lexicons and clusters of words, which values of a column are looked up in.

A lexicon has entries of one or several words. At each position the longest entry that begins there counts. Its first
word is B, its other words are I. A word inside an entry that began before it is I, whatever begins there, so that
entries that overlap are one run. A position then depends on at most L - 1 others to each side, where L is the number of
words of the longest entry; sequences that arrive line by line get what whole ones get.

Clusters are paths of 0 and 1 in a binary tree, as Brown's algorithm gives them; their prefixes are coarser clusters.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._lazy import cached_property
from ..runtime import by_characters
from ..system import offsets_of
from .word_vectors import WordVectors, rows_of

NONE = "none"  # the value of words that a lexicon or clusters do not have
BEGIN, INSIDE = 1, 2  # in the place of 0, where there is no entry
SPACES = re.compile("[ \\t\\r\\n]+")


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Distinct entries, the words of each separated by one space; in lower case if `fold`."""

    source: str  # name of the file
    entries: Sequence[str]  # sorted
    fold: bool

    @classmethod
    def of(cls, source: str, entries: Iterable[str], fold: bool) -> Lexicon:
        found = {" ".join(filter(None, SPACES.split(entry))) for entry in entries} - {""}
        return cls(source, sorted(set(by_characters(list(found), "lower")) if fold else found), fold)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256("\n".join((str(self.fold), *self.entries)).encode()).hexdigest()

    @cached_property
    def index(self) -> dict[str, int]:
        """Numbers of the words of entries."""
        words = dict.fromkeys(word for entry in self.entries for word in entry.split(" "))
        return dict(zip(words, range(len(words)), strict=True))

    @property
    def longest(self) -> int:
        """Number of words of the longest entry."""
        return len(self.levels)

    @property
    def about(self) -> dict[str, Any]:
        """File, size and digest."""
        case = "fold" if self.fold else "keep"
        return {"file": self.source, "entries": len(self.entries), "longest": self.longest, "case": case,
                "digest": self.digest}  # fmt: skip

    @cached_property
    def levels(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """A trie: for beginnings of 1, 2, ... words their sorted keys, True for whole entries, and for longer ones.

        The key of a beginning is the number of the one without its last word, times the number of words, plus the
        number of that word.
        """
        entries = [entry.split(" ") for entry in self.entries]
        lengths = np.array([len(entry) for entry in entries])
        words = np.array([self.index[word] for entry in entries for word in entry])
        first, node, levels = offsets_of(lengths)[:-1], np.zeros(len(entries), dtype=np.int64), []
        for depth in range(lengths.max()):
            inside = np.flatnonzero(lengths > depth)
            keys, number = np.unique(node[inside] * len(self.index) + words[first[inside] + depth], return_inverse=True)
            node[inside] = number = number.ravel()
            whole, longer = np.zeros((2, len(keys)), dtype=bool)
            whole[number[lengths[inside] == depth + 1]] = True
            longer[number[lengths[inside] > depth + 1]] = True
            levels.append((keys, whole, longer))
        return levels

    def numbers(self, values: Sequence[str]) -> np.ndarray:
        """Return the number of each value among the words of entries, [n] int32, -1 for none.

        If `fold`, a word that no entry has in lower case counts without the punctuation around it.
        """
        get = self.index.get
        if not self.fold:
            return np.fromiter((get(text, -1) for text in values), np.int32, len(values))
        texts = zip(by_characters(values, "lower"), by_characters(values, "stripped"), strict=True)
        return np.fromiter((get(text, get(plain, -1)) for text, plain in texts), np.int32, len(values))

    def places(self, words: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return 0 outside of entries, BEGIN and INSIDE, [N] int32, for the numbers of words [N] in sequences."""
        ends = np.zeros(len(words), dtype=np.int64)  # of the longest entry that begins at each position; 0 for none
        beyond = np.append(words, -1).astype(np.int64)  # the word after each, -1 beyond the ends of sequences
        beyond[offsets[:-1]] = -1
        at, node = np.flatnonzero(words >= 0), np.zeros(1, dtype=np.int64)
        for depth, (keys, whole, longer) in enumerate(self.levels):
            word = (beyond if depth else words)[at + depth]
            wanted = node * len(self.index) + word
            node = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            known = (word >= 0) & (keys[node] == wanted)
            at, node = at[known], node[known]
            entries = at[whole[node]]
            ends[entries] = entries + depth + 1
            at, node = at[longer[node]], node[longer[node]]
        before = np.concatenate([[0], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
        inside = before > np.arange(len(words))
        return np.where(inside, np.int32(INSIDE), (ends > 0).astype(np.int32) * np.int32(BEGIN))


@dataclass(frozen=True, eq=False)
class Clusters:
    """Distinct words, and the path of each."""

    source: str  # name of the file
    words: Sequence[str]
    paths: Sequence[str]  # distinct
    path_numbers: np.ndarray  # [V] int32

    @cached_property
    def digest(self) -> str:
        total = hashlib.sha256("\n".join((*self.words, "", *self.paths)).encode())
        total.update(np.ascontiguousarray(self.path_numbers).data)
        return total.hexdigest()

    @cached_property
    def index(self) -> dict[str, int]:
        """Numbers of words."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    @property
    def longest(self) -> int:
        """Length of the longest path."""
        return max(map(len, self.paths))

    @property
    def about(self) -> dict[str, Any]:
        """File, size and digest."""
        return {"file": self.source, "words": len(self.words), "paths": len(self.paths), "digest": self.digest}

    def prefixes(self, values: Sequence[str], length: int | None) -> list[str]:
        """Return the first bits of the path of each value, all of them without a length; NONE for unknown words."""
        texts = [*(path[:length] for path in self.paths), NONE]
        places = np.append(self.path_numbers, len(self.paths))[rows_of(self.index, values)]
        return [texts[place] for place in places.tolist()]


Lookup = WordVectors | Lexicon | Clusters
