"""What a feature map is: an operator Phi [N, D] with Phi Phi^T = K, or nearly.

A map never hands out Phi itself. For weights W [D, C] and residuals R [N, C],

    prepare(W)            W in the form that `add_scores` takes, once per evaluation
    add_scores            out += Phi[rows] W
    adjoint_rows          the part of Phi^T R that is summed chunk by chunk while a chunk is in cache
    adjoint               Phi^T R from those sums and R, in double precision

Such sums are [dense_size, P] in double precision, with columns padded as `native` wants them. Where all values of the
map that are held densely are there (`dense_rows`), `native` gives its products as C functions. Those and the methods
here give the same bits.

W may also be `KeptWeights`, of which only some places have parameters; a result that goes into such has these alone.
`explicit` has maps that hold sparse and dense columns themselves, `reduced` one that holds kernel values with pivots,
`repeated_maps` one for data in which inputs recur.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..system import Workers, ranges
from . import _sparse, native
from .kept_places import KeptWeights
from .native import Products
from .portions import Portions, tree_sum
from .rounding import Rounding

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]  # like np.empty


class FeatureMap(Protocol):
    """What training needs of a map on its N positions."""

    @property
    def size(self) -> int: ...  # D

    @property
    def dense_size(self) -> int: ...  # values of a row that are held densely

    @property
    def narrows_weights(self) -> bool: ...  # `prepare` does nothing but cast them

    @property
    def nested(self) -> bool: ...  # the first m columns are the map of the first m pivots

    @property
    def real_size(self) -> int: ...  # last columns that are real features, of maps that are not nested

    def prepare(
        self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None = None, empty: Empty = np.empty
    ) -> Any: ...  # what `add_scores` and `native` take; `empty` makes arrays, perhaps of memory that was used before

    def add_scores(
        self, prepared: Any, rows: slice, out: np.ndarray, fresh: bool = False
    ) -> None: ...  # `fresh`: out [n, C] holds nothing yet

    def adjoint_rows(
        self, R: np.ndarray, rows: slice, sums: np.ndarray | None = None
    ) -> np.ndarray | None: ...  # added to the sums that are given, or to zeros; None where there are none

    def dense_rows(self, dtype: np.dtype) -> np.ndarray | None: ...  # [N, dense_size], None where not all are there

    def native(self, prepared: Any, columns: int) -> list[Products] | None: ...  # first the one that has sums, if any

    def adjoint(
        self,
        summed: np.ndarray | None,
        R: np.ndarray,
        workers: Workers,
        out: np.ndarray | KeptWeights | None = None,
        portions: Portions | None = None,
    ) -> np.ndarray | KeptWeights: ...  # may be put into `out` [D, C], and then is that; sums are taken by portions

    def column_squares(self, counts: np.ndarray | None = None, portions: Portions | None = None) -> np.ndarray: ...

    def mean_diagonal(self, counts: np.ndarray | None = None) -> float: ...

    def residual(self, workers: Workers) -> np.ndarray | None: ...

    def subset(self, rows: np.ndarray) -> FeatureMap: ...

    def in_double(self, held: bool) -> FeatureMap: ...  # whose passes in double precision find all digits of its values

    @property
    def beyond_single(self) -> bool: ...  # single precision does not see all of its columns

    def rounding(
        self, W: np.ndarray, error_sum: float, positions: int, errors: Callable[[], np.ndarray]
    ) -> Rounding: ...  # of such passes, for errors [N, C] whose sizes have this sum at most

    def used_columns(self) -> np.ndarray: ...

    def narrow(self, columns: np.ndarray) -> FeatureMap: ...


def accumulate(total: np.ndarray, part: np.ndarray) -> None:
    """total += part, in place and in double precision, without the interpreter's lock."""
    _sparse.accumulate(total.reshape(-1), part.reshape(-1))


def sum_of_parts(
    work: Callable[[slice], np.ndarray | None], parts: Sequence[slice], workers: Workers
) -> np.ndarray | None:
    """The sum of what `work` makes of parts, in their order and in double precision; None where that is nothing."""
    total: list[np.ndarray] = []

    def take(found: np.ndarray | None) -> None:
        if found is not None and total:
            accumulate(total[0], found)
        elif found is not None:
            total.append(found.astype(np.float64))

    workers.fold(work, parts, take)
    return total[0] if total else None


def new_sums(size: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """Zeros that sums over rows are added to."""
    return np.zeros((size, native.padded_columns(columns, dtype == np.float32)))


def sums_of_rows(
    feature_map: FeatureMap, R: np.ndarray, workers: Workers, portions: Portions | None = None
) -> np.ndarray | None:
    """What `adjoint_rows` gives for all rows; None where there are no sums."""
    if not feature_map.dense_size:
        return None
    values, (N, C) = feature_map.dense_rows(R.dtype), R.shape

    def of_portion(rows: slice) -> np.ndarray:
        n = rows.stop - rows.start
        if values is not None:
            nothing = np.zeros((values.shape[1], native.padded_columns(C, R.dtype == np.float32)), dtype=R.dtype)
            return native.all_sums(workers.team, native.dense(values[rows], nothing, C), R[rows])
        parts = [slice(rows.start + part.start, rows.start + part.stop) for part in ranges(n, native.rows_per_part(n))]
        found = sum_of_parts(lambda part: feature_map.adjoint_rows(R[part], part), parts, workers)
        return new_sums(feature_map.dense_size, C, R.dtype) if found is None else found

    return tree_sum([of_portion(rows) for rows in (portions or Portions.one(N)).slices])


def real_columns(feature_map: FeatureMap | None) -> int:
    """How many of a map's last columns are real features, which may depend on each other."""
    return 0 if feature_map is None or feature_map.nested else feature_map.real_size


def has_nested_columns(feature_map: FeatureMap | None) -> bool:
    """Whether the first m columns of a map are the map of its first m pivots."""
    return feature_map is not None and feature_map.nested
