"""Dividing sequences into folds: at random, by groups that stay together, or as a file says.

What is dealt are units: single sequences, groups of them, or blocks of a few long ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import Corpus
from ..training import deal


@dataclass(frozen=True)
class Units:
    """Sequences, or groups of sequences that no division may part."""

    of_sequence: np.ndarray  # [S] int64, the unit of each sequence
    what: str  # in the plural, for messages
    contents: np.ndarray | None  # [S, A], what each sequence brings; None where only their number counts

    def dealt(self, which: np.ndarray, count: int, seed: Sequence[int]) -> list[np.ndarray]:
        """The sequences numbered `which` in `count` folds, each in ascending order."""
        rng = np.random.default_rng(list(seed))
        if self.contents is None:
            return [which[np.sort(part)] for part in np.array_split(rng.permutation(len(which)), count)]
        units, unit = np.unique(self.of_sequence[which], return_inverse=True)
        totals = np.zeros((len(units), self.contents.shape[1]))
        np.add.at(totals, unit, self.contents[which])
        fold_of = deal(totals, count, rng)[unit]
        return [which[fold_of == fold] for fold in range(count)]

    def count(self, which: np.ndarray) -> int:
        return len(np.unique(self.of_sequence[which]))


def label_contents(corpus: Corpus) -> np.ndarray:
    """How often each label occurs in each sequence, and a one for the sequence itself: [S, Y + 1]."""
    labels = {label: number for number, label in enumerate(sorted(set(corpus.columns[-1])))}
    codes = np.fromiter(map(labels.__getitem__, corpus.columns[-1]), np.int64, corpus.positions)
    sequence = np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
    counts = np.ones((corpus.sequences, len(labels) + 1))
    counts[:, :-1] = 0
    np.add.at(counts, (sequence, codes), 1)
    return counts


def size_contents(corpus: Corpus) -> np.ndarray:
    """Positions of each sequence, and a one for the sequence itself: [S, 2]."""
    return np.stack([np.diff(corpus.offsets).astype(np.float64), np.ones(corpus.sequences)], axis=1)
