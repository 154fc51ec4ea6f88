"""Encoded data: a corpus as arrays of numbers.

Columns form three blocks, like those of `kernels.Inputs`: codes, real columns and attributes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..chains import HALF_KNOWN, borders_of, borders_within
from ..corpora import joined_weights
from ..system import complete_sequences, offsets_of, piece_rows

if TYPE_CHECKING:
    import scipy.sparse

UNKNOWN = -1  # a label that the encoding does not know
UNOBSERVED = -2  # a label that was not observed


@dataclass(frozen=True)
class Dataset:
    """N encoded positions in S sequences, with labels if they are known."""

    offsets: np.ndarray  # [S+1] int64
    lines: np.ndarray  # [N] int64, line of each position in its source
    labels: np.ndarray | None  # [N] int32 numbers of gold labels, else UNKNOWN, UNOBSERVED, or HALF_KNOWN and below
    weights: np.ndarray | None  # [S] float64
    codes: np.ndarray  # [N, C] int32
    real: np.ndarray  # [N, R] float64
    bag: scipy.sparse.csr_array | None  # [N, A] float64, with entries for attributes of value zero
    bag_unseen: np.ndarray  # [N] float64, squared length of unseen attributes
    source: str | None = None  # the name of its file, for messages
    missing: tuple[tuple[str, int], ...] = ()  # features with missing values, and their numbers; for messages only
    cut: np.ndarray | None = None  # [S, 2] bool, True where the beginning or end of a sequence was cut off
    partitions: np.ndarray | None = None  # [P+1] int64, sequences where partitions begin and end; None: by positions
    hashes: np.ndarray | None = None  # [N] uint64 of inputs as they were (`hashing`), of training data
    half_known: np.ndarray | None = None  # [K, Y] float64 weights, rows k of labels HALF_KNOWN - k

    @property
    def borders(self) -> np.ndarray:
        """Sequences where partitions begin and end, [P+1]; see `chains.problem`."""
        return borders_of(self.offsets, self.partitions)

    @property
    def known_labels(self) -> np.ndarray:
        """Labels of data that has them."""
        assert self.labels is not None
        return self.labels

    @property
    def own_bag(self) -> scipy.sparse.csr_array:
        """Attributes of data that has some."""
        assert self.bag is not None
        return self.bag

    @property
    def nonzero_bag(self) -> scipy.sparse.csr_array | None:
        """Attributes without those of value zero."""
        if self.bag is None or self.bag.data.all():
            return self.bag
        bag = self.bag.copy()
        bag.eliminate_zeros()
        return bag

    @property
    def positions(self) -> int:
        return len(self.lines)

    @property
    def sequences(self) -> int:
        return len(self.offsets) - 1

    def span(self, first: int, last: int) -> Dataset:
        """Return the sequences first:last as views of the arrays."""
        rows, sequences = slice(int(self.offsets[first]), int(self.offsets[last])), slice(first, last)
        cut = None if self.cut is None else self.cut[sequences]
        offsets = self.offsets[first : last + 1] - rows.start
        return replace(self._taken(rows, sequences), offsets=offsets, cut=cut, missing=(), partitions=None)

    def _taken(self, rows: slice | np.ndarray, sequences: slice | np.ndarray) -> Dataset:
        """Return the data of some positions and the weights of their sequences."""
        return replace(
            self,
            lines=self.lines[rows],
            labels=None if self.labels is None else self.labels[rows],
            weights=None if self.weights is None else self.weights[sequences],
            codes=self.codes[rows],
            real=self.real[rows],
            bag=None if self.bag is None else self.bag[rows],
            bag_unseen=self.bag_unseen[rows],
            hashes=None if self.hashes is None else self.hashes[rows],
        )

    def subset(self, which: Sequence[int] | np.ndarray) -> Dataset:
        """Return the sequences numbered `which`, in that order."""
        which = np.asarray(which, dtype=np.int64)
        cut = None if self.cut is None else self.cut[which]
        return self.pieces(self.offsets[which], self.offsets[which + 1], which, cut)

    def pieces(self, first: np.ndarray, last: np.ndarray, which: np.ndarray, cut: np.ndarray | None) -> Dataset:
        """Return pieces as sequences: positions first:last of the sequences `which`, [P] each, with cuts [P, 2]."""
        return replace(
            self._taken(piece_rows(first, last), which),
            offsets=offsets_of(last - first),
            cut=cut,
            partitions=None if self.partitions is None else borders_within(self.partitions, which),
        )


def join_datasets(parts: Sequence[Dataset]) -> Dataset:
    """Join consecutive datasets of the same encoding."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    bag = None
    if first.bag is not None:
        import scipy.sparse

        bag = scipy.sparse.csr_array(scipy.sparse.vstack([part.bag for part in parts], format="csr"))
    missing: Counter[str] = Counter()
    for part in parts:
        missing.update(dict(part.missing))
    cuts = [np.zeros((p.sequences, 2), dtype=bool) if p.cut is None else p.cut for p in parts]
    labels, half_known = joined_labels([(part.labels, part.half_known) for part in parts])
    return Dataset(
        offsets=offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
        lines=np.concatenate([part.lines for part in parts]),
        labels=labels,
        weights=joined_weights([(part.weights, part.sequences) for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        real=np.concatenate([part.real for part in parts]),
        bag=bag,
        bag_unseen=np.concatenate([part.bag_unseen for part in parts]),
        source=first.source,
        missing=tuple(missing.items()),
        cut=None if all(part.cut is None for part in parts) else np.concatenate(cuts),
        hashes=joined_hashes([part.hashes for part in parts]),
        half_known=half_known,
    )


def joined_labels(
    parts: Sequence[tuple[np.ndarray | None, np.ndarray | None]],
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return all labels, and one table of those that are half known, from those of parts; None if one has no labels."""
    labels, tables, before = [], [], 0
    for own, table in parts:
        if own is None:
            return None, None
        labels.append(np.where(own <= HALF_KNOWN, own - np.int32(before), own))
        if table is not None:
            tables.append(table)
            before += len(table)
    return np.concatenate(labels), np.concatenate(tables) if tables else None


def joined_hashes(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return the hashes of all parts; None if one of them has none."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


@dataclass(frozen=True)
class Amount:
    """Size of some encoded data, for messages."""

    sequences: int = 0
    positions: int = 0
    unobserved: int = 0  # labels that are not observed, or half known
    complete: int = 0  # sequences that have all their labels
    missing: tuple[tuple[str, int], ...] = ()  # features with missing values, and their numbers

    @classmethod
    def of(cls, dataset: Dataset) -> Amount:
        hidden = 0 if dataset.labels is None else int(np.count_nonzero(dataset.labels <= UNOBSERVED))
        complete = dataset.sequences
        if hidden:
            complete = int(complete_sequences(dataset.known_labels, dataset.offsets).sum())
        return cls(dataset.sequences, dataset.positions, hidden, complete, dataset.missing)

    def plus(self, other: Amount) -> Amount:
        """Return the sum of both."""
        missing = Counter(dict(self.missing))
        missing.update(dict(other.missing))
        return Amount(
            self.sequences + other.sequences,
            self.positions + other.positions,
            self.unobserved + other.unobserved,
            self.complete + other.complete,
            tuple(missing.items()),
        )
