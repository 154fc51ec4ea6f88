"""Feature maps: operators Phi [N, D] with Phi Phi^T = K, or nearly.

A map never hands out Phi itself. For weights W [D, C] and residuals R [N, C],

    prepare(W)            W in the form that `add_scores` takes, once per evaluation
    add_scores            out += Phi[rows] W
    adjoint_rows          the part of Phi^T R that is summed chunk by chunk while a chunk is in cache
    adjoint               Phi^T R from those sums and R, in double precision

Such sums are [dense_size, P], with columns padded as `native` wants them. `native` gives products as C functions where
`dense_rows` are there, with the same bits. Of `KeptWeights` W, and in results that go there, only some places are held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..system import Workers, ranges
from . import native
from .heads import Empty, Extent, Head
from .native import Products
from .partition_sums import Partitions, tree_sum
from .sparse_weights import KeptWeights

Block = np.ndarray | KeptWeights  # weights [D, C], or those at some places


class FeatureMap(ABC):
    """A map on N positions.

    Maps with pivots, whose columns are nested, have `leading`, `features`, `residual` and `outside_roots`; those with
    features of their own have `seen_with` and `real_gram`.
    """

    size: int  # D
    dense_size: int  # values of a row that are held densely
    nested: bool = False  # True if the first m columns are the map of the first m pivots
    real_size: int = 0  # last columns that are real features, of maps that are not nested
    narrows_weights: bool = False  # True if `prepare` does nothing but cast weights
    beyond_single: bool = False  # True if single precision cannot tell all columns apart

    @property
    @abstractmethod
    def head(self) -> Head:
        """Input transform of the map: factors of columns, or the triangle of pivots."""

    @abstractmethod
    def prepare(self, W: Block, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty) -> Any:
        """Return W as `add_scores` and `native` take it; `empty` makes arrays, perhaps of memory that was used."""

    @abstractmethod
    def add_scores(self, prepared: Any, rows: slice, out: np.ndarray, fresh: bool = False) -> None:
        """Add Phi[rows] W to out [n, C]; `fresh`: out holds nothing yet."""

    @abstractmethod
    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> np.ndarray | None:
        """Add sums of rows to those that are given, or to zeros; None where there are none."""

    @abstractmethod
    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None:
        """Return the values [N, dense_size] that are held densely; None where not all are there."""

    @abstractmethod
    def native(self, prepared: Any, columns: int) -> list[Products] | None:
        """Return products as C functions, first the one that has sums, if any."""

    @abstractmethod
    def adjoint(
        self, sums: np.ndarray | None, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        """Return Phi^T R [D, C], perhaps put into `out`, from sums of rows and R; sums are taken by partitions."""

    def adjoint_of_squares(
        self, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        """Return `adjoint` with squares of entries, without the head's factors."""
        raise NotImplementedError(f"{type(self).__name__} is not explicit")

    @abstractmethod
    def raw_squares(self, counts: np.ndarray | None, partitions: Partitions | None = None) -> np.ndarray:
        """Return sums of squares before `head.squares`; rows count `counts` [N] times, or once."""

    def column_squares(self, counts: np.ndarray | None = None, partitions: Partitions | None = None) -> np.ndarray:
        """Return the sum of squares of each column, [D]; rows count `counts` [N] times, or once."""
        return self.head.squares(self.raw_squares(counts, partitions))

    @abstractmethod
    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        """Return the mean of k(x, x)."""

    def residual(self, workers: Workers) -> np.ndarray | None:
        """Return k(x, x) - |Phi(x)|^2 of each position, [N]; None: nothing lies outside."""
        return None

    @abstractmethod
    def extent(self, scale: np.ndarray) -> Extent:
        """Return the largest length and width of rows, columns times factors [D] or as they are."""

    def outside_roots(self, gram: float, errors: np.ndarray, partitions: Partitions | None = None) -> float:
        """Sum roots of residuals times errors: the gradient outside a map that stands for a whole space."""
        return 0.0

    @abstractmethod
    def spec(self, rows: np.ndarray) -> Any:
        """Return a spec of the row block of some rows, which makes it again anywhere."""

    @abstractmethod
    def subset(self, rows: np.ndarray) -> FeatureMap:
        """Return the map of some rows."""

    @abstractmethod
    def in_double(self, held: bool) -> FeatureMap:
        """Return the map whose passes in double precision find all digits; values are held, or computed every time."""

    def used_columns(self, least_rows: int = 1) -> np.ndarray:
        """Return columns that are not zero throughout, sparse ones if so many rows have them."""
        return np.flatnonzero(self.column_squares())

    @abstractmethod
    def narrow(self, columns: np.ndarray) -> FeatureMap:
        """Return the map with some of the columns, given in ascending order."""

    def leading(self, m: int) -> FeatureMap:
        """Return the map of the first m pivots, of a map whose columns are nested."""
        raise NotImplementedError(f"{type(self).__name__} has no pivots")

    def features(self, workers: Workers, inverse: np.ndarray | None = None) -> np.ndarray:
        """Return Phi [N, M]; kernel values times a matrix [M, M], where that is given."""
        raise NotImplementedError(f"{type(self).__name__} has no pivots")

    def seen_with(self, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
        """Return places in W [D, width] of features that some row [n] has, with its column [n].

        A row has an attribute whatever its value, and a real column where that is not zero.
        """
        raise NotImplementedError(f"{type(self).__name__} is not explicit")

    def real_gram(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return Phi^T Phi [R, R] of real columns on some rows [n], each counted so many times [n]."""
        raise NotImplementedError(f"{type(self).__name__} has no real columns")


def sum_of_parts(
    work: Callable[[slice], np.ndarray | None], parts: Sequence[slice], workers: Workers
) -> np.ndarray | None:
    """Sum what `work` returns for parts, in their order and in double precision; None where it never returns any."""
    total: list[np.ndarray] = []

    def take(found: np.ndarray | None) -> None:
        if found is not None and total:
            total[0] += found
        elif found is not None:
            total.append(found.astype(np.float64))

    workers.fold(work, parts, take)
    return total[0] if total else None


def sums_of_rows(
    feature_map: FeatureMap, R: np.ndarray, workers: Workers, partitions: Partitions | None = None
) -> np.ndarray | None:
    """Return the sums of `adjoint_rows` for all rows; None where there are none."""
    if not feature_map.dense_size:
        return None
    values, (N, C) = feature_map.dense_rows(R.dtype), R.shape

    def of_partition(rows: slice) -> np.ndarray:
        n = rows.stop - rows.start
        if values is not None:
            return native.all_sums(workers.team, native.dense(values[rows], C), R[rows])
        parts = [slice(rows.start + part.start, rows.start + part.stop) for part in ranges(n, native.rows_per_part(n))]
        found = sum_of_parts(lambda part: feature_map.adjoint_rows(R[part], part), parts, workers)
        return native.new_sums(feature_map.dense_size, C, R.dtype) if found is None else found

    return tree_sum([of_partition(rows) for rows in (partitions or Partitions.one(N)).slices])
