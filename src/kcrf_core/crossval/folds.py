"""Dividing sequences into folds: at random, by groups that stay together, or as a file says.

What is dealt are units: single sequences, groups of them, or blocks of a few long ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import Corpus
from ..encoding import Dataset
from ..errors import ConfigError, DataError, suggestion
from ..system import counted, listed
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


def groups_of(corpus: Corpus, column: str, names: Sequence[str]) -> np.ndarray:
    """The group of each sequence, [S], by a column whose value is the same throughout; `names` are those of all."""
    if corpus.attributes is not None:
        raise ConfigError("attribute files have no columns to group by: give a file of folds")
    if column == names[-1]:
        raise ConfigError(f"'{column}' is the label, which cannot say what belongs together")
    if column not in names:
        inputs = list(names[:-1])
        raise ConfigError(
            f"there is no column '{column}' to group by{suggestion(column, inputs)} (columns: {listed(inputs)})"
        )
    values = corpus.columns[list(names).index(column)]
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
    first = codes[corpus.offsets[:-1]]
    strange = np.flatnonzero(codes != np.repeat(first, np.diff(corpus.offsets)))
    if len(strange):
        t = int(strange[0])
        raise DataError(
            f"'{values[t]}' in the column '{column}' within a sequence that began with another value: a sequence must "
            "belong to one group",
            corpus.source,
            int(corpus.lines[t]),
        )
    return first


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


def read_folds(text: str, source: str, corpus: Corpus | Dataset) -> np.ndarray:
    """Fold numbers, [S], out of a file with one on each line."""
    numbers = []
    for line, entry in enumerate(text.split("\n"), start=1):
        if not entry.strip():
            continue
        try:
            numbers.append(int(entry))
        except ValueError:
            raise DataError(f"'{entry.strip()}' is not the number of a fold (one on each line)", source, line) from None
    if len(numbers) != corpus.sequences:
        folds, sequences = counted(len(numbers), "fold"), counted(corpus.sequences, "sequence")
        raise DataError(f"{folds}, but {corpus.source} has {sequences}", source)
    if len(set(numbers)) < 2:
        raise DataError("all sequences are in one fold: there must be at least two", source)
    if max(map(abs, numbers)) > 2**62:
        raise DataError("a fold number is too large", source)
    return np.array(numbers, dtype=np.int64)
