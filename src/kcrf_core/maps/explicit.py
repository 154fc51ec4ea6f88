"""Maps that hold the columns of Phi, sparse and dense ones; equal columns may be merged.

**Merged columns.** Features seen only together, above all those of words seen once, have equal columns of ones. For k
of them only the sum of their weights matters, and the prior shares it out evenly: one column of sqrt(k) with one weight
v gives the same scores, w = v / sqrt(k) each, and the same prior v^2 = k w^2: the same optimum, and steps of L-BFGS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._lazy import cached_property
from ..kernels import Inputs
from ..system import Team, Workers, ranges
from . import _conjunctions, _sparse, native
from .columns import ColumnOrder, all_ones, sparse_block, zero_entries
from .compressed import NOTHING, CompressedRows
from .conjunction_table import empty_slots
from .feature_map import Block, FeatureMap
from .heads import Empty, ExplicitHead, Extent
from .native import Products
from .partition_sums import Partitions, summed_by
from .sparse_weights import KeptPlaces, KeptWeights, SparseWeights, Weights

if TYPE_CHECKING:
    import scipy.sparse

ENTRIES_PER_TASK = 1 << 14  # of the transpose
MOST_TASKS = 256
ENTRIES_PER_FEATURE = 4  # as long as that takes what is done once for a feature, above all to write its sums
ROWS_PER_GRAM = 2048

# Below this many features the vectors of a solver are small anyway; above, a tenth less must be gained.
FEWEST_FEATURES = 20_000
WORTH_MERGING = 0.9

ZEROS = 1 << 62  # added to rows with a zero, which are other rows to a hash than those with a one


class ExplicitMap(FeatureMap):
    """The linear kernel's own features: D = sparse columns, then real ones."""

    def __init__(
        self,
        sparse: scipy.sparse.csr_array | CompressedRows,
        dense: np.ndarray,
        dtype: np.dtype | type,
        counts: np.ndarray | None = None,  # [sparse columns] features that share each column; None: one each
        rest: np.ndarray | None = None,  # of real columns that are rounded already: see below
        by_columns: CompressedRows | None = None,  # the transpose of sparse columns, where it has been computed
    ):
        self.rows = sparse if isinstance(sparse, CompressedRows) else CompressedRows.of(sparse)
        self.columns = self.rows.by_columns() if by_columns is None else by_columns
        self._marked = np.empty(0, dtype=np.int64)  # borders of partitions that are marked there
        self._dense, self._counts = np.ascontiguousarray(dense, dtype=dtype), counts
        # Difference between real columns and their rounded values, for evaluations in double precision; None: zero.
        self._rest = rest
        if dense.dtype != self._dense.dtype:
            lost = (dense - self._dense).astype(dtype)
            self._rest = lost if lost.any() else None
        self.sparse_size, self.dense_size = self.rows.width, self._dense.shape[1]
        self.size, self.real_size = self.sparse_size + self.dense_size, self.dense_size
        self.narrows_weights = not len(self.rows.scale)

    def spec(self, rows: np.ndarray) -> ExplicitSpec:
        part = self.rows.take(rows)
        there = np.zeros(self.sparse_size, dtype=bool)
        there[part.indices] = True
        if part.zeros is not None:
            there[part.zeros[1]] = True
        used = np.flatnonzero(there)
        block = replace(part, scale=NOTHING).narrow(used)
        columns = np.concatenate([used, np.arange(self.sparse_size, self.size)]).astype(np.int32)
        return ExplicitSpec(block, self._dense[rows], None if self._rest is None else self._rest[rows], columns)

    @classmethod
    def of(cls, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        return cls(CompressedRows.of_inputs(inputs), inputs.real, dtype)

    def prepare(
        self, W: Block, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty
    ) -> tuple[np.ndarray | KeptWeights, np.ndarray]:
        split = self.sparse_size
        if isinstance(W, KeptWeights):
            block = W.laid_out(self.rows.scale, dtype, native.ALONE if workers is None else workers.team)
            return replace(W, block=block), native.padded(W.places.tail(W.block, split), dtype)
        ready = np.ascontiguousarray(self.head.ready(W, dtype, workers, empty))
        return ready[:split], native.padded(ready[split:], dtype)

    def add_scores(
        self, prepared: tuple[np.ndarray | KeptWeights, np.ndarray], rows: slice, out: np.ndarray, fresh: bool = False
    ) -> None:
        sparse, dense = prepared
        if self.dense_size:
            own = native.dense(self.real(rows, out.dtype), out.shape[1], dense)
            native.all_scores(native.ALONE, own, len(out), out, fresh)
        elif fresh:
            out[...] = 0
        if self.sparse_size:
            own = self._sparse_products(sparse, out.shape[1], self.rows.indptr[rows.start : rows.stop + 1])
            native.all_scores(native.ALONE, own, len(out), out, False)

    def _sparse_products(self, sparse: np.ndarray | KeptWeights, columns: int, indptr: np.ndarray) -> Products:
        """Return the products of sparse columns in rows that end there."""
        held, starts = (
            (sparse.block, sparse.places.starts) if isinstance(sparse, KeptWeights) else (sparse.ravel(), None)
        )
        return native.sparse(indptr, self.rows.indices, self.rows.values_in(held.dtype), held, columns, starts)

    def adjoint_rows(self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None) -> np.ndarray | None:
        if not self.dense_size:
            return None
        sums = native.new_sums(self.dense_size, R.shape[1], R.dtype) if sums is None else sums
        native.add_sums(self.real(rows, R.dtype), R, sums)
        return sums

    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None:
        return None if self._dense.dtype != dtype or (self._rest is not None and dtype == np.float64) else self._dense

    def native(self, prepared: tuple[np.ndarray | KeptWeights, np.ndarray], columns: int) -> list[Products] | None:
        (sparse, dense), found = prepared, []
        if self.dense_size:
            values = self.dense_rows(dense.dtype)
            if values is None:
                return None
            found.append(native.dense(values, columns, dense))
        if self.sparse_size or not found:
            found.append(self._sparse_products(sparse, columns, self.rows.indptr))
        return found

    def real(self, rows: slice | np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return real columns of some rows; in double precision they are as given, whatever they are held in."""
        values = self._dense[rows].astype(dtype, copy=False)
        if self._rest is not None and dtype == np.float64:
            values += self._rest[rows]  # a copy already: what is held is narrower
        return values

    def in_double(self, held: bool) -> ExplicitMap:
        if not held or self.dense_rows(np.dtype(np.float64)) is not None:
            return self
        return ExplicitMap(self.rows, self.real(slice(None), np.dtype(np.float64)), np.float64, self._counts)

    def extent(self, scale: np.ndarray) -> Extent:
        rows = replace(self.rows, scale=scale)
        squares = np.square(self._dense, dtype=np.float64).sum(axis=1) + rows.row_squares()
        widest = int(np.diff(rows.indptr).max(initial=0)) + self.dense_size
        return Extent(float(np.sqrt(squares.max(initial=0.0))), widest)

    def adjoint(
        self, sums: np.ndarray | None, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        return self._gathered(self.columns, sums, R, workers.team, out, partitions)

    def adjoint_of_squares(
        self, R: np.ndarray, workers: Workers, out: Block | None, partitions: Partitions | None
    ) -> Block:
        return self._squares(R, workers.team, out, partitions)

    def _squares(self, R: np.ndarray, team: Team, out: Block | None, partitions: Partitions | None) -> Block:
        def of_real(part: slice) -> np.ndarray:
            return np.square(self._dense[part], dtype=np.float64).T @ R[part]

        squares = replace(self.columns, values=np.square(self.columns.values), scale=NOTHING)
        sums = summed_by(partitions, len(R), of_real) if self.dense_size else None
        return self._gathered(squares, sums, R, team, out, partitions)

    def _gathered(
        self, part: CompressedRows, sums: np.ndarray | None, R: np.ndarray, team: Team, out: Block | None,
        partitions: Partitions | None,
    ) -> Block:  # fmt: skip
        """Return `adjoint` by a transpose: feature by feature, so that no thread needs a gradient of its own."""
        out = np.empty((self.size, R.shape[1])) if out is None else out
        R, C = np.ascontiguousarray(R), R.shape[1]
        borders = self._marked[:0] if partitions is None or len(partitions) == 1 else partitions.borders
        if not np.array_equal(borders, self._marked):
            _sparse.mark_partitions(part.indptr, part.indices, borders)
            self._marked = borders
        entries = (part.indptr, part.indices, part.values_in(R.dtype), part.scale, R, self._tasks)
        if isinstance(out, KeptWeights):
            native.gathered(team, *entries, out.block[None], out.places.kept, out.places.ends)
            if self.dense_size:
                assert sums is not None
                out.places.put_tail(out.block, self.sparse_size, np.ascontiguousarray(sums[:, :C]))
            return out
        native.gathered(team, *entries, out[: self.sparse_size])
        if self.dense_size:
            assert sums is not None
            out[self.sparse_size :] = sums[:, :C]
        return out

    @cached_property
    def _tasks(self) -> np.ndarray:
        """Runs (first, last) of features that take about equally long, the longest first, [tasks, 2]."""
        indptr = self.columns.indptr
        cost = indptr + ENTRIES_PER_FEATURE * np.arange(len(indptr))  # up to each feature
        runs = min(max(int(cost[-1]) // ENTRIES_PER_TASK, 1), MOST_TASKS)
        ends = np.unique(np.searchsorted(cost, np.linspace(0, cost[-1], runs + 1)))
        longest = np.argsort(-np.diff(cost[ends]), kind="stable")
        return np.stack([ends[:-1], ends[1:]], axis=1)[longest].astype(np.int64)

    @property
    def head(self) -> ExplicitHead:
        # Squares of columns are those of single features: scaled by them, L-BFGS goes as it would without merging.
        return ExplicitHead(self.size, self.real_size, self.rows.scale, self._counts)

    def raw_squares(self, counts: np.ndarray | None, partitions: Partitions | None = None) -> np.ndarray:
        counts = np.ones(self.rows.shape[0]) if counts is None else counts.astype(np.float64, copy=False)
        found = self._squares(counts[:, None], native.ALONE, None, partitions)
        assert isinstance(found, np.ndarray)
        return found[:, 0]

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float:
        # Merging columns does not change it.
        rows = self.rows.shape[0] if counts is None else counts.sum()
        squares = replace(self.head, counts=None).squares(self.raw_squares(counts))
        return max(float(squares.sum()) / max(rows, 1), 1e-12)

    def real_gram(self, rows: np.ndarray, counts: np.ndarray) -> np.ndarray:
        R = self.dense_size
        total = np.zeros((R, R))
        for part in ranges(len(rows), ROWS_PER_GRAM):
            phi = self._dense[rows[part]].astype(np.float64)
            total += (phi * counts[part, None]).T @ phi
        return total

    def subset(self, rows: np.ndarray) -> ExplicitMap:
        return ExplicitMap(self.rows.take(rows), self.real(rows, np.dtype(np.float64)), self._dense.dtype)

    def seen_with(self, rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
        order = slice(None) if (np.diff(rows) >= 0).all() else np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], np.arange(self.rows.shape[0] + 1)).astype(np.int64)
        beside = ends, np.ascontiguousarray(columns[order], dtype=np.int32), width
        places = self.columns.seen_places(*beside)
        if self.rows.zeros is not None:
            places = np.union1d(places, self.rows.zeros_by_columns().seen_places(*beside))
        found = [places]
        for r in range(self.dense_size):
            there = np.unique(columns[self._dense[rows, r] != 0])
            found.append((self.sparse_size + r) * width + there)
        return np.concatenate(found)

    def add_label_sums(
        self,
        rows: slice,
        labels: np.ndarray,
        places: KeptPlaces | None,
        numbers: np.ndarray,
        factors: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Add the sums of sparse columns over rows with each label of labellings [S, n] to out [S, d] float32.

        Those of the first labelling are subtracted from all. `numbers` [K] says where those of kept places go, -1 for
        nowhere; factors of columns are left out.
        """
        assert places is not None
        indptr = self.rows.indptr[rows.start : rows.stop + 1]
        columns = (places.kept % places.width).astype(np.int32)
        about = places.ends, columns, numbers, factors
        _sparse.add_label_sums(indptr, self.rows.indices, self.rows.values, *about, labels, out)

    def used_columns(self, least_rows: int = 1) -> np.ndarray:
        rows = np.append(np.diff(self.columns.indptr), np.full(self.dense_size, least_rows))
        return np.flatnonzero((rows >= least_rows) & (self.column_squares() > 0))

    def narrow(self, columns: np.ndarray) -> ExplicitMap:
        split = np.searchsorted(columns, self.sparse_size)
        sparse, dense = columns[:split], columns[split:] - self.sparse_size
        real = self.real(slice(None), np.dtype(np.float64))[:, dense]
        return ExplicitMap(self.rows.narrow(sparse), real, self._dense.dtype)


@dataclass(frozen=True, eq=False)
class ExplicitSpec:
    """Rows that the row block of an explicit map is made of."""

    rows: CompressedRows
    dense: np.ndarray  # [n, R]
    rest: np.ndarray | None  # likewise
    columns: np.ndarray  # [D'] int32, those of the map that the columns here are, ascending

    table = 0  # nothing is computed again

    @property
    def nbytes(self) -> int:
        """Bytes of the map, which has entries by rows and by columns."""
        entries = self.rows.indices.nbytes + self.rows.values.nbytes
        ends = 8 * (sum(self.rows.shape) + 2) + sum(array.nbytes for array in self.rows.zeros or ())
        return 2 * entries + ends + self.dense.nbytes + (0 if self.rest is None else self.rest.nbytes)

    def load(self, workers: Workers) -> ExplicitMap:
        return ExplicitMap(self.rows, self.dense, self.dense.dtype, rest=self.rest)


@dataclass(frozen=True)
class MergedColumns:
    """Assignment of features to columns."""

    column: np.ndarray  # [D] int32, below G
    size: int  # G

    @cached_property
    def counts(self) -> np.ndarray:
        """Number k of features of each column, [G]."""
        return np.bincount(self.column, minlength=self.size)

    @property
    def _share(self) -> np.ndarray:
        """Factor 1 / sqrt(k) of each feature, [D]."""
        return 1 / np.sqrt(self.counts)[self.column]

    def rows(self, features: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return rows [n, G] from rows of features [n, D]; those of new data may have only some of a column."""
        import scipy.sparse

        indices = self.column[features.indices]
        values = features.data * self._share[features.indices]
        shape = (features.shape[0], self.size)
        out = scipy.sparse.csr_array((values, indices, features.indptr.copy()), shape=shape)  # changed in place below
        out.sum_duplicates()
        return out

    def compressed(self, inputs: Inputs) -> CompressedRows:
        """Return rows of inputs; where they have all features of their columns, no entry has a value of its own."""
        rows, counts = CompressedRows.of_inputs(inputs), self.counts
        alike = not len(rows.values) and not len(rows.scale)
        if not alike or not _sparse.merge(rows.indptr, rows.indices, self.column, counts):
            return CompressedRows.of(self.rows(sparse_block(inputs)))
        indices = rows.indices[: rows.indptr[-1]].copy()
        zeros = None if rows.zeros is None else (rows.zeros[0], self.column[rows.zeros[1]])
        return CompressedRows(self.size, rows.indptr, indices, rows.values, np.sqrt(counts), zeros)

    def map_of(self, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        """Return the map of the linear kernel on merged columns."""
        return ExplicitMap(self.compressed(inputs), inputs.real, dtype, self.counts)

    def spread(self, weights: Weights) -> Weights:
        """Return weights [D + R, C] of single features from weights [G + R, C] of columns; R real ones are last."""
        D = len(self.column)
        if isinstance(weights, SparseWeights):
            real = weights.shape[0] - self.size
            rows = np.concatenate([self.column, np.arange(self.size, self.size + real)])
            return weights.take(rows).times(np.concatenate([self._share, np.ones(real)]))
        out = np.empty((D + len(weights) - self.size, weights.shape[1]))
        np.take(weights, self.column, axis=0, out=out[:D], mode="clip")  # any other mode makes a copy first
        out[:D] *= self._share[:, None]
        out[D:] = weights[self.size :]
        return out

    def gathered(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of columns [G + R, C] with the scores on training rows of weights of features [D + R, C]."""
        import scipy.sparse

        D = len(self.column)
        sums = scipy.sparse.csr_array((self._share, (self.column, np.arange(D))), shape=(self.size, D))
        return np.concatenate([sums @ weights[:D], weights[D:]])


class ColumnSupports:
    """Hashes of the rows that columns have ones in, and zeros, for inputs that come in parts."""

    def __init__(self, like: Inputs):
        columns = ColumnOrder.of(like).first_real
        self._rows, self._ones = 0, columns >= FEWEST_FEATURES
        self._hashes, self._counts = np.zeros((columns, 2), dtype=np.uint64), np.zeros(columns, dtype=np.int64)

    def add(self, inputs: Inputs) -> None:
        """Take more rows."""
        ones = all_ones(inputs) if self._ones else None
        if ones is None:
            self._ones = False
        else:
            _conjunctions.add_supports(*ones, self._hashes, self._counts, self._rows)
            zeros = zero_entries(inputs)
            if zeros is not None:
                _conjunctions.add_supports(*zeros, self._hashes, self._counts, ZEROS + self._rows)
            self._rows += len(inputs)

    def merged(self) -> MergedColumns | None:
        """Merge columns with the same rows; return None where that is not worth it, or attributes have values."""
        D = len(self._counts)
        if not self._ones:
            return None
        first = np.empty(D, dtype=np.int32)
        _conjunctions.first_alike(self._hashes, empty_slots(D), first)
        leaders = np.flatnonzero(first == np.arange(D))
        if len(leaders) > WORTH_MERGING * D:
            return None
        number = np.empty(D, dtype=np.int32)
        number[leaders] = np.arange(len(leaders), dtype=np.int32)
        return MergedColumns(number[first], len(leaders))
