"""Labelled sequences as training sees them: their labels, without their inputs.

Partitions are runs of whole sequences that one place goes through: a worker of a cluster, or a pass out of memory. By
default they are cut by positions alone, at least `FEWEST_PARTITIONS` of them where that leaves enough in each. A subset
of the data keeps the borders of the whole.

With two labels a node term has one score column, F = Phi v (1, -1)/sqrt(2), and the same prior |v|^2: exactly the
objective of two columns, whose rows sum to zero at the optimum (Lemma 13).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._lazy import cached_property
from ..system import complete_sequences, offsets_of, piece_rows, positions_within, sequence_rows

_HALF = np.sqrt(0.5)

HALF_KNOWN = -3  # labels HALF_KNOWN - k are rows k of a table of labels that are half known

# Positions of a partition: enough to hide what is done once for each, and few enough for the memory of a worker.
LEAST_PARTITION, LARGEST_PARTITION = 512, 1 << 18
FEWEST_PARTITIONS = 8


def partition_borders(offsets: np.ndarray) -> np.ndarray:
    """Return the sequences that partitions of the data begin with, and the number of sequences, [partitions + 1]."""
    positions = int(offsets[-1])
    count = max(min(FEWEST_PARTITIONS, positions // LEAST_PARTITION), -(-positions // LARGEST_PARTITION), 1)
    borders = np.searchsorted(offsets, np.linspace(0, positions, count + 1))
    borders[0], borders[-1] = 0, len(offsets) - 1
    return np.unique(borders).astype(np.int64) if len(offsets) > 1 else np.zeros(2, dtype=np.int64)


def borders_within(borders: np.ndarray, sequences: np.ndarray) -> np.ndarray | None:
    """Return the borders of partitions among ascending sequences, empty partitions left out; None in another order."""
    if len(sequences) == 0 or (np.diff(sequences) < 0).any():
        return None
    return np.unique(np.searchsorted(sequences, borders)).astype(np.int64)


def borders_of(offsets: np.ndarray, partitions: np.ndarray | None) -> np.ndarray:
    """Return the given borders, or those by positions; partitions of empty sequences join another partition."""
    borders = partition_borders(offsets) if partitions is None else partitions
    at = offsets[borders]
    kept = (np.diff(at, append=at[-1] + 1) > 0) & (at > at[0])
    kept[[0, -1]] = True
    return borders[kept]


@dataclass(frozen=True, eq=False)
class HalfKnown:
    """Labels that are half known: sets of possible labels, or soft labels with weights q_t(y_t)."""

    weights: np.ndarray  # [K, Y] float64: q_t of soft labels, 1 for labels of a set; 0 for those that are not possible
    soft: bool

    def narrowed(self, labels: np.ndarray) -> tuple[np.ndarray, HalfKnown]:
        """Return labels [n] with their rows of the table alone."""
        rows, places = np.unique(labels, return_inverse=True)
        rows = rows[rows <= HALF_KNOWN]
        numbered = np.where(places < len(rows), HALF_KNOWN - places, labels).astype(labels.dtype)
        return numbered, HalfKnown(self.weights[HALF_KNOWN - rows], self.soft)


def label_logs(labels: np.ndarray, label_count: int, half_known: HalfKnown | None) -> np.ndarray:
    """Return log weights [n, Y] of labels: of a known label 0 for it, and all 0 for one that is not observed."""
    out = np.where(labels[:, None] == np.arange(label_count), 0.0, -np.inf)
    out[labels < 0] = 0.0
    if half_known is not None:
        rows = np.flatnonzero(labels <= HALF_KNOWN)
        with np.errstate(divide="ignore"):
            out[rows] = np.log(half_known.weights[HALF_KNOWN - labels[rows]])
    return out


@dataclass(frozen=True)
class Problem:
    """Labelled sequences, without their inputs."""

    labels: np.ndarray  # [N] int32, negative where not observed
    offsets: np.ndarray  # [S+1] int64
    weights: np.ndarray  # [S] float64
    label_count: int  # Y
    # [S, 2] bool, true if a sequence was cut off from what stood before and after it; None: none was. It has no clique
    # of a first or last label there.
    cut: np.ndarray | None = None
    partitions: np.ndarray | None = None  # [P+1] int64, sequences where partitions begin and end; None: by positions
    least_count: float = 0.0  # pairs of labels that are rarer are taken for not seen
    half_known: HalfKnown | None = None
    positions: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "positions", len(self.labels))

    @cached_property
    def borders(self) -> np.ndarray:
        """Sequences where partitions begin and end, [P+1]."""
        return borders_of(self.offsets, self.partitions)

    def partition(self, number: int) -> Problem:
        first, last = self.borders[number : number + 2].tolist()
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        labels, half_known = self.labels[rows], self.half_known
        if half_known is not None:
            labels, half_known = half_known.narrowed(labels)
        return Problem(
            labels,
            self.offsets[first : last + 1] - self.offsets[first],
            self.weights[first:last],
            self.label_count,
            None if self.cut is None else self.cut[first:last],
            np.array([0, last - first], dtype=np.int64),
            half_known=half_known,
        )

    @property
    def weight(self) -> float:
        """Weighted number of positions with a label, or a tiny number instead of zero."""
        some = (self.labels >= 0) | (self.labels <= HALF_KNOWN)
        return max(float(self.position_weights() @ some), 1e-300)

    @cached_property
    def complete(self) -> np.ndarray:
        """Mask [S] of sequences that have all their labels."""
        return complete_sequences(self.labels, self.offsets)

    @property
    def convex(self) -> bool:
        """True if P is convex: all labels are known, or soft."""
        return (self.half_known is not None and self.half_known.soft) or bool(self.complete.all())

    def subset(self, which: np.ndarray) -> Problem:
        """Return the sequences numbered `which`."""
        rows, offsets = sequence_rows(self.offsets, which), offsets_of(np.diff(self.offsets)[which])
        cut, partitions = None if self.cut is None else self.cut[which], borders_within(self.borders, which)
        about = self.weights[which], self.label_count, cut, partitions, self.least_count
        return Problem(self.labels[rows], offsets, *about, half_known=self.half_known)

    def pieces(self, first: np.ndarray, last: np.ndarray) -> Problem:
        """Return positions first:last of each of some pieces of sequences, [P] both; none of them is empty."""
        offsets, cut, sequence = pieces_of(self.offsets, first, last, self.cut)
        labels, partitions = self.labels[piece_rows(first, last)], borders_within(self.borders, sequence)
        about = self.weights[sequence], self.label_count, cut, partitions, self.least_count
        return Problem(labels, offsets, *about, half_known=self.half_known)

    def with_end(self, end: int) -> np.ndarray:
        """Return a mask [S] of sequences whose first (0) or last (1) position is not cut off from others."""
        filled = np.diff(self.offsets) > 0
        return filled if self.cut is None else filled & ~self.cut[:, end]

    def position_weights(self) -> np.ndarray:
        """Return the weight of each position's sequence, [N]."""
        return np.repeat(self.weights, np.diff(self.offsets))

    def seen_pairs(self) -> np.ndarray:
        """Return a mask [Y^2] of the pairs of labels in a row that are not too rare."""
        counts = self.clique_counts(1).ravel()
        return (counts > 0) & (counts >= self.least_count)

    def clique_counts(self, order: int) -> np.ndarray:
        """Return weighted counts of `order` + 1 labels in a row, all of them observed, [Y] * (order + 1)."""
        Y = self.label_count
        inside = positions_within(self.offsets) >= order
        for back in range(order + 1):
            inside &= np.roll(self.labels, back) >= 0
        last = np.flatnonzero(inside)
        cliques = tuple(self.labels[last - back] for back in range(order, -1, -1))
        flat = np.ravel_multi_index(cliques, (Y,) * (order + 1)) if len(last) else last
        counts = np.bincount(flat, self.position_weights()[last], minlength=Y ** (order + 1))
        return counts.reshape((Y,) * (order + 1))


def pieces_of(
    offsets: np.ndarray, first: np.ndarray, last: np.ndarray, cut: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return the offsets [P+1] of pieces of sequences, where they are cut [P, 2], and the sequence of each [P].

    `cut` tells where the sequences are cut already; that of pieces is None if all of them are whole.
    """
    sequence = np.searchsorted(offsets, first, side="right") - 1
    inside = np.stack([first > offsets[sequence], last < offsets[sequence + 1]], axis=1)
    if cut is not None:
        inside |= cut[sequence]
    return offsets_of(last - first), inside if inside.any() else None, sequence


def score_columns(label_count: int) -> int:
    """Return the number of columns of node scores: one for two labels, else one for each."""
    return 1 if label_count == 2 else label_count


def spread(columns: np.ndarray, label_count: int) -> np.ndarray:
    """Return node scores [n, Y] of score columns [n, C]."""
    if label_count != 2:
        return columns
    scores = np.empty((len(columns), 2), dtype=columns.dtype)
    np.multiply(columns[:, 0], _HALF, out=scores[:, 0])
    np.negative(scores[:, 0], out=scores[:, 1])
    return scores


def gathered(residuals: np.ndarray, label_count: int) -> np.ndarray:
    """Apply the adjoint of `spread`: [n, Y] to [n, C]."""
    if label_count != 2:
        return residuals
    difference = (residuals[:, 0] - residuals[:, 1])[:, None]
    difference *= residuals.dtype.type(_HALF)
    return difference
