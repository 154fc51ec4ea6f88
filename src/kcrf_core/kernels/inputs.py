"""Rows of inputs, which kernels are evaluated on.

Three blocks stand side by side, each possibly empty: categorical columns as integer codes, real columns, and sparse
attributes. Windows are already laid out, so a row says all that a clique at that position looks at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..system import row_squares

if TYPE_CHECKING:
    import scipy.sparse

NOTHING = -1  # a code that equals no other: a value too rare to be kept
UNSEEN = -2  # likewise, for a value that training never saw; it still counts in k(x, x)

ROWS_AT_ONCE = 4096  # where a copy of all would take memory for nothing


@dataclass(frozen=True)
class Group:
    """Some of the columns of inputs, by number."""

    codes: tuple[int, ...] = ()
    real: tuple[int, ...] = ()
    bag: bool = False


@dataclass(frozen=True)
class Inputs:
    """Inputs x of N cliques of one term: rows whose inner product the kernels are made of."""

    codes: np.ndarray  # [N, C] int32, NOTHING where a column has no value, UNSEEN where a strange one
    sizes: np.ndarray  # [C] int64, codes of column c are below sizes[c]
    real: np.ndarray  # [N, R] float64
    bag: scipy.sparse.csr_array | None  # [N, A] float64, or None
    unseen: np.ndarray  # [N] float64, squared length of attributes that training never saw

    @property
    def own_bag(self) -> scipy.sparse.csr_array:
        """Attributes of inputs that have some."""
        assert self.bag is not None
        return self.bag

    def __len__(self) -> int:
        return len(self.unseen)

    @property
    def is_empty(self) -> bool:
        """True if no row has a value or an attribute, and there is no real column."""
        bag = self.bag is not None and self.bag.nnz > 0
        return not (bag or self.real.shape[1] or (self.codes != NOTHING).any())

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [self.codes, self.real, self.unseen]
        if self.bag is not None:
            arrays += [self.bag.data, self.bag.indices, self.bag.indptr]
        return sum(array.nbytes for array in arrays)

    def take(self, rows: slice | np.ndarray) -> Inputs:
        bag = None if self.bag is None else self.bag[rows]
        return Inputs(self.codes[rows], self.sizes, self.real[rows], bag, self.unseen[rows])

    def seen(self) -> Inputs:
        """Leave out values that training never saw: a kernel is fitted to those that it has seen."""
        strange = self.codes.min(initial=NOTHING) < NOTHING
        codes = np.maximum(self.codes, NOTHING) if strange else self.codes
        return replace(self, codes=codes, unseen=np.zeros(len(self)))

    def columns(self, group: Group) -> Inputs:
        """Return the rows with some of the columns."""
        return Inputs(
            _chosen(self.codes, group.codes),
            self.sizes[list(group.codes)],
            _chosen(self.real, group.real),
            self.bag if group.bag else None,
            self.unseen if group.bag else np.zeros(len(self)),
        )

    def squared_norms(self) -> np.ndarray:
        """Return <x, x> of each row, [N] float64."""
        norms = self.unseen + (self.codes != NOTHING).sum(axis=1)
        norms += row_squares(self.real)
        if self.bag is not None:
            norms += self.bag.multiply(self.bag).sum(axis=1)
        return norms

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first of each group of equal rows, and for each row the number of its group (Lemma 6)."""
        numbers = np.empty((len(self), 0))
        if self.bag is not None:
            numbers = _row_numbers(self.bag)[:, None].astype(np.float64)

        def bits(rows: slice | np.ndarray) -> np.ndarray:
            # Rows as whole numbers, equal where the rows are, [n, columns].
            parts = [self.codes[rows], self.real[rows], numbers[rows]]
            return (np.hstack(parts).astype(np.float64) + 0.0).view(np.uint64)  # minus zero equals zero

        N, width = len(self), bits(slice(0, 0)).shape[1]
        if width == 0:
            return np.zeros(min(1, N), dtype=np.int64), np.zeros(N, dtype=np.int64)
        # By a hash of their bits, which sorts far faster than rows do; rows that share one by accident are found below.
        multipliers = np.random.default_rng(0).integers(1, 2**63, width, dtype=np.uint64) * 2 + 1
        hashes = np.empty(N, dtype=np.uint64)
        blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, N, ROWS_AT_ONCE)]
        for rows in blocks:
            own = bits(rows)
            hashes[rows] = ((own ^ (own >> np.uint64(29))) * multipliers).sum(axis=1, dtype=np.uint64)
        _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
        group = group.ravel()
        if not all(np.array_equal(bits(rows), bits(first[group[rows]])) for rows in blocks):
            packed = bits(slice(None)).view(np.dtype((np.void, 8 * width))).ravel()
            _, first, group = np.unique(packed, return_index=True, return_inverse=True)
        # In the order in which they first occur.
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return first[order].astype(np.int64), rank[group.ravel()]


def _row_numbers(bag: scipy.sparse.csr_array) -> np.ndarray:
    """Return a number for each row [N], the same for equal rows alone; indices are sorted."""
    seen: dict[bytes, int] = {}
    numbers, indices = np.empty(bag.shape[0], dtype=np.int64), bag.indices.data
    # Ones may have no memory of their own.
    values = None if bag.data.strides == (0,) else bag.data.data
    for t, (first, last) in enumerate(pairwise(bag.indptr.tolist())):
        # The rows themselves would take as much memory as the bag.
        digest = blake2b(indices[first:last], digest_size=16)
        if values is not None:
            digest.update(values[first:last])
        numbers[t] = seen.setdefault(digest.digest(), len(seen))
    return numbers


def _chosen(matrix: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
    """Return some columns; all of them in their order without a copy."""
    if columns == tuple(range(matrix.shape[1])):
        return matrix
    return np.ascontiguousarray(matrix[:, list(columns)])
