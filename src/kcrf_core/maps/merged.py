"""One-hot columns that stand in the same training rows, as one.

Features seen only together, above all those of words seen once, have collinear columns, here equal ones. For k of them
only the sum of their weights matters, and the prior shares it out evenly: one column of sqrt(k) with one weight v gives
the same scores, w = v / sqrt(k) each, and the same prior v^2 = k w^2. The optimum is the same exactly, and so are the
steps of L-BFGS, which never tells such features apart; on CoNLL-2000 with the chunking template 341,628 columns become
241,690.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from ..kernels import Inputs
from . import _conjunctions
from .feature_maps import ExplicitMap
from .sparse_rows import sparse_block

# Below this many features the vectors of a solver are small anyway; above, a tenth less must be gained.
FEWEST_FEATURES = 20_000
WORTH_MERGING = 0.9


@dataclass(frozen=True)
class MergedColumns:
    """Which column each feature belongs to."""

    column: np.ndarray  # [D] int32, below G
    size: int  # G

    @cached_property
    def counts(self) -> np.ndarray:
        """k of each column, [G]."""
        return np.bincount(self.column, minlength=self.size)

    @property
    def _share(self) -> np.ndarray:
        """1 / sqrt(k) of each feature, [D]."""
        return 1 / np.sqrt(self.counts)[self.column]

    def rows(self, one_hot: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Rows [n, G] out of rows of single features [n, D]; those of new data may have only some of a column."""
        indices = self.column[one_hot.indices]
        values = one_hot.data * self._share[one_hot.indices]
        shape = (one_hot.shape[0], self.size)
        out = scipy.sparse.csr_array((values, indices, one_hot.indptr.copy()), shape=shape)  # changed in place below
        out.sum_duplicates()
        return out

    def spread(self, weights: np.ndarray) -> np.ndarray:
        """Weights [D + R, C] of single features out of weights [G + R, C] of columns; R real ones follow."""
        shared = weights[self.column] * self._share[:, None]
        return np.concatenate([shared, weights[self.size :]])

    def gathered(self, weights: np.ndarray) -> np.ndarray:
        """Weights of columns [G + R, C] that give training rows the scores of weights of features [D + R, C]."""
        D = len(self.column)
        sums = scipy.sparse.csr_array((self._share, (self.column, np.arange(D))), shape=(self.size, D))
        return np.concatenate([sums @ weights[:D], weights[D:]])


def merged_columns(one_hot: scipy.sparse.csr_array) -> MergedColumns | None:
    """Columns with the same rows merged; None where that is not worth it."""
    D = one_hot.shape[1]
    if D < FEWEST_FEATURES:
        return None
    hashes, counts = np.zeros((D, 2), dtype=np.uint64), np.zeros(D, dtype=np.int64)
    _conjunctions.add_supports(one_hot.indptr.astype(np.int64), one_hot.indices.astype(np.int32), hashes, counts)
    first = np.empty(D, dtype=np.int32)
    _conjunctions.first_alike(hashes, np.full(1 << (2 * D).bit_length(), -1, dtype=np.int32), first)
    leaders = np.flatnonzero(first == np.arange(D))
    if len(leaders) > WORTH_MERGING * D:
        return None
    number = np.empty(D, dtype=np.int32)
    number[leaders] = np.arange(len(leaders), dtype=np.int32)
    return MergedColumns(number[first], len(leaders))


class MergedMap(ExplicitMap):
    """The linear kernel on merged columns."""

    def __init__(self, merged: MergedColumns, inputs: Inputs, dtype: np.dtype):
        super().__init__(merged.rows(sparse_block(inputs)), inputs.real, dtype)
        self._counts = merged.counts

    def column_squares(self, counts: np.ndarray | None = None) -> np.ndarray:
        """Those of single features: scaled by them, L-BFGS takes the steps that it would take without merging."""
        squares = super().column_squares(counts)
        squares[: len(self._counts)] /= self._counts
        return squares

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Mean of k(x, x), which merging does not change."""
        rows = self._matrix.shape[0] if counts is None else counts.sum()
        return max(float(super().column_squares(counts).sum()) / max(rows, 1), 1e-12)
