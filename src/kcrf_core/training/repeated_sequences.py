"""Sequences that recur with the same inputs and labels: each is gone through once, with the weights of all.

P is a weighted sum over sequences, so this is the same P exactly. It is done for the last fit alone: kernels and pivots
have been fitted to the data as it is, and sequences held out to choose sigma2 or terms are drawn from it as it is.
Sequences with the same inputs and other labels stay apart; `repeated_maps` shares their inputs all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from ..chains import Problem
from ..encoding import Dataset
from ..features import FittedTerm
from ..objective.solvers import Observer
from ..system import counted, sequence_rows

# Part of the positions that must fall away: rows of maps are copied for it.
WORTH_COLLAPSING = 0.1


def collapse(
    problem: Problem, dataset: Dataset, fitted: Sequence[FittedTerm], observer: Observer
) -> tuple[Problem, Dataset, list[FittedTerm]]:
    """Return the data and terms with every distinct sequence once, where enough of them recur."""
    smaller, first = distinct_only(problem, [dataset], observer)
    if first is None:
        return problem, dataset, list(fitted)
    rows = sequence_rows(dataset.offsets, first)
    terms = [term if term.map is None else replace(term, map=term.map.subset(rows)) for term in fitted]
    return smaller, dataset.subset(first), terms


def distinct_only(
    problem: Problem, partitions: Iterable[Dataset], observer: Observer
) -> tuple[Problem, np.ndarray | None]:
    """Return the problem of distinct sequences and their numbers; None where too few recur for that to pay."""
    groups = SequenceGroups()
    for dataset in partitions:
        groups.add(dataset)
    if not groups.worth_collapsing:
        return problem, None
    first, group = groups.found
    observer.note(f"{counted(len(first), 'distinct sequence')} of {len(group):,}: each is gone through once")
    return replace(problem.subset(first), weights=np.bincount(group, problem.weights, minlength=len(first))), first


class SequenceGroups:
    """Groups of equal sequences, by hashes of data that may come in parts."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._first: list[int] = []
        self._groups: list[np.ndarray] = []
        self._sequences = self._positions = self._kept = 0

    def add(self, dataset: Dataset) -> None:
        """Take more sequences."""
        keys, lengths = _sequence_keys(dataset), np.diff(dataset.offsets).tolist()
        group = np.empty(dataset.sequences, dtype=np.int64)
        for k, (key, length) in enumerate(zip(keys, lengths, strict=True)):
            group[k] = number = self._seen.setdefault(key, len(self._seen))
            if number == len(self._first):
                self._first.append(self._sequences + k)
                self._kept += length
        self._groups.append(group)
        self._sequences, self._positions = self._sequences + dataset.sequences, self._positions + dataset.positions

    @property
    def worth_collapsing(self) -> bool:
        """True if enough positions fall away where each distinct sequence is gone through once."""
        return self._kept <= (1 - WORTH_COLLAPSING) * self._positions

    @property
    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the first of each group, and for each sequence the number of its group."""
        return np.array(self._first, dtype=np.int64), np.concatenate([np.empty(0, np.int64), *self._groups])


def _sequence_keys(dataset: Dataset) -> Iterator[bytes]:
    """Hashes of the inputs and labels of sequences."""
    for k in range(dataset.sequences):
        rows = slice(int(dataset.offsets[k]), int(dataset.offsets[k + 1]))
        key = blake2b(digest_size=16)
        if dataset.cut is not None:
            key.update(dataset.cut[k])
        for part in (dataset.known_labels, dataset.codes, dataset.real):
            key.update(np.ascontiguousarray(part[rows]).data)
        if dataset.bag is not None:
            ends = dataset.bag.indptr[rows.start : rows.stop + 1]
            key.update(np.diff(ends))
            for part in (dataset.bag.indices, dataset.bag.data):
                key.update(part[ends[0] : ends[-1]])
        yield key.digest()
