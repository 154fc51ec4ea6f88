"""A map for data in which inputs recur: each distinct input is held and computed once (Lemma 6).

Identical cliques share one coefficient, so they share one row of Phi: scores are computed for distinct rows and copied
to positions, and residuals are summed over the positions of each distinct row before they are multiplied with Phi^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..system import Workers, offsets_of, ranges
from . import native
from .feature_map import Block, FeatureMap, sums_of_rows
from .heads import Empty, Extent, Head
from .native import Products
from .partition_sums import Partitions

ROWS_PER_TASK = 1024


class RepeatedMap(FeatureMap):
    """A map on U distinct rows, seen through the N positions that they stand at."""

    def __init__(self, distinct: FeatureMap, group: np.ndarray, workers: Workers):
        self.distinct, self.group, self._workers = distinct, group, workers  # [N] which row each position has
        self.size, self.dense_size = distinct.size, 0
        self.nested, self.real_size = distinct.nested, distinct.real_size
        self.narrows_weights, self.beyond_single = distinct.narrows_weights, distinct.beyond_single
        self._group = np.ascontiguousarray(group, dtype=np.int32)
        U = int(group.max(initial=-1)) + 1
        self._rows, self._counts = U, np.bincount(group, minlength=U)
        # Positions of each distinct row, in compressed rows.
        self._positions = np.argsort(group, kind="stable").astype(np.int32)  # [N]
        self._ends = offsets_of(self._counts)  # [U+1]
        self._seen: tuple[Partitions, Partitions] | None = None  # partitions of positions and those of distinct rows

    @property
    def head(self) -> Head:
        return self.distinct.head

    def spec(self, rows: np.ndarray) -> RepeatedSpec:
        chosen, group = np.unique(self.group[rows], return_inverse=True)
        return RepeatedSpec(self.distinct.spec(chosen), group.ravel())

    def prepare(self, W: Block, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty) -> np.ndarray:
        ready = self.distinct.prepare(W, dtype, self._workers, empty)
        scores = np.empty((self._rows, W.shape[1]), dtype=dtype)  # of all distinct rows
        products = self.distinct.native(ready, W.shape[1])
        for number, own in enumerate(products or ()):
            native.all_scores(self._workers.team, own, self._rows, scores, number == 0)
        if products is None:
            parts = ranges(self._rows, ROWS_PER_TASK)
            self._workers.run(lambda part: self.distinct.add_scores(ready, part, scores[part], True), parts)
        return scores

    def add_scores(self, prepared: np.ndarray, rows: slice, out: np.ndarray, fresh: bool = False) -> None:
        native.all_scores(native.ALONE, self._products(prepared, rows), len(out), out, fresh)

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> None:
        return None  # residuals of all positions have to be there first

    def dense_rows(self, dtype: np.dtype) -> np.ndarray:
        return np.empty((len(self.group), 0), dtype=dtype)

    def native(self, prepared: np.ndarray, columns: int) -> list[Products]:
        return [self._products(prepared, slice(0, len(self.group)))]

    def _products(self, prepared: np.ndarray, rows: slice) -> Products:
        """Return the scores of positions as products with rows of one entry each."""
        indptr = np.arange(rows.start, rows.stop + 1, dtype=np.int64)
        return native.sparse(indptr, self._group, prepared[:0, 0], prepared.ravel(), prepared.shape[1])

    def _partitions(self, partitions: Partitions | None) -> Partitions | None:
        """Return partitions of distinct rows."""
        if partitions is None:
            return None
        if self._seen is None or self._seen[0] is not partitions:
            self._seen = partitions, partitions.of_groups(self.group)
        return self._seen[1]

    def adjoint(
        self, sums: np.ndarray | None, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        partitions, shared = self._partitions(partitions), self._shared(R, workers)
        sums = sums_of_rows(self.distinct, shared, workers, partitions)
        return self.distinct.adjoint(sums, shared, workers, out, partitions)

    def adjoint_of_squares(
        self, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        return self.distinct.adjoint_of_squares(self._shared(R, workers), workers, out, self._partitions(partitions))

    def _shared(self, R: np.ndarray, workers: Workers) -> np.ndarray:
        """Return the sum of R [N, C] over positions of each distinct row, [U, C]."""
        shared, R = np.empty((self._rows, R.shape[1]), dtype=R.dtype), np.ascontiguousarray(R)
        own = native.sparse(self._ends, self._positions, R[:0, 0], R.ravel(), R.shape[1])
        native.all_scores(workers.team, own, self._rows, shared, True)
        return shared

    def in_double(self, held: bool) -> RepeatedMap:
        distinct = self.distinct.in_double(held)
        return self if distinct is self.distinct else RepeatedMap(distinct, self.group, self._workers)

    def extent(self, scale: np.ndarray) -> Extent:
        return self.distinct.extent(scale)

    def outside_roots(self, gram: float, errors: np.ndarray, partitions: Partitions | None = None) -> float:
        shared = np.zeros((self._rows, errors.shape[1]))  # errors of distinct rows
        np.add.at(shared, self.group, errors)
        return self.distinct.outside_roots(gram, shared, self._partitions(partitions))

    def leading(self, m: int) -> RepeatedMap:
        return RepeatedMap(self.distinct.leading(m), self.group, self._workers)

    def features(self, workers: Workers, inverse: np.ndarray | None = None) -> np.ndarray:
        return self.distinct.features(workers, inverse)[self.group]

    def real_gram(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        chosen, group = np.unique(self.group[rows], return_inverse=True)
        return self.distinct.real_gram(chosen, np.bincount(group.ravel(), counts))

    def raw_squares(self, counts: np.ndarray | None, partitions: Partitions | None = None) -> np.ndarray:
        return self.distinct.raw_squares(self._counted(counts), self._partitions(partitions))

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        return self.distinct.mean_diagonal(self._counted(counts))

    def _counted(self, counts: np.ndarray | None) -> np.ndarray:
        """Return the counts of distinct rows, [U]."""
        return self._counts if counts is None else np.bincount(self.group, counts, minlength=self._rows)

    def residual(self, workers: Workers) -> np.ndarray | None:
        found = self.distinct.residual(workers)
        return None if found is None else found[self.group]

    def subset(self, rows: np.ndarray) -> FeatureMap:
        chosen, group = np.unique(self.group[rows], return_inverse=True)
        inner = self.distinct if len(chosen) == self._rows else self.distinct.subset(chosen)
        return RepeatedMap(inner, group.ravel(), self._workers)

    def seen_with(self, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
        pairs = np.unique(self.group[rows].astype(np.int64) * width + columns)
        return self.distinct.seen_with(pairs // width, pairs % width, width)

    def used_columns(self, least_rows: int = 1) -> np.ndarray:
        # Conjunctions, which have cut-offs, are held row by row.
        return self.distinct.used_columns()

    def narrow(self, columns: np.ndarray) -> RepeatedMap:
        return RepeatedMap(self.distinct.narrow(columns), self.group, self._workers)


@dataclass(frozen=True, eq=False)
class RepeatedSpec:
    """Distinct rows, and where each of them stands."""

    distinct: Any  # spec of their row block
    group: np.ndarray  # [n]

    @property
    def columns(self) -> np.ndarray | None:
        return self.distinct.columns

    @property
    def nbytes(self) -> int:
        return self.distinct.nbytes + 4 * self.group.nbytes

    @property
    def table(self) -> int:
        return self.distinct.table

    def load(self, workers: Workers) -> RepeatedMap:
        return RepeatedMap(self.distinct.load(workers), self.group, workers)
