"""Heads of maps: what stands between weights W of a term and those that rows are multiplied with, without any rows.

    scores     core rows times `ready(W)`
    gradient   `finish` of the sum of core rows^T R

A head is a small value beside the rows, so that partitions of rows can be elsewhere: they get what is ready, in the
precision of a pass, and what comes back from all of them is summed before it is finished. Explicit maps have factors of
columns there, those of pivots the triangle L: ready(W) = L^-T W, finish(S) = L^-1 S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ..system import Budget, Workers, linear_algebra
from . import native
from .kept_places import KeptWeights
from .rounding import Extent, Rounding, summation_error
from .triangles import Triangle, inverted


class Head(Protocol):
    """Part of a map that the owner of a term's weights needs."""

    @property
    def size(self) -> int: ...  # D

    @property
    def nested(self) -> bool: ...

    @property
    def real_size(self) -> int: ...

    @property
    def scale(self) -> np.ndarray: ...  # [D less real columns], or [0]: factors of columns

    def ready(self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None) -> np.ndarray:
        """Return weights of core rows: [D, C], or [K] where only some places have parameters."""

    def finish(self, sums: np.ndarray, columns: np.ndarray | None, dtype: np.dtype, workers: Workers) -> np.ndarray:
        """The gradient's block out of sums [D, C], or [K] at places in these rows, for a pass in a precision."""

    def squares(self, raw: np.ndarray) -> np.ndarray:
        """Sum of squares of each column, [D], out of what `raw_squares` of rows add up to."""

    def rounding(
        self,
        W: np.ndarray | KeptWeights,
        error_sum: float,
        positions: int,
        extent: Extent,
        outside: Callable[[float], float],
    ) -> Rounding:
        """Bound what rounding may change, for rows of this extent; `outside` is for maps of a whole space.

        It is given what values of the pivots may be off by.
        """


@dataclass(frozen=True, eq=False)
class ExplicitHead:
    """Factors of sparse columns; real ones, which come last, have none."""

    size: int
    real_size: int
    scale: np.ndarray  # [D - R], or [0] for ones
    counts: np.ndarray | None = None  # [D - R] features that share each column; None: one each

    nested = False

    def ready(self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None) -> np.ndarray:
        if isinstance(W, KeptWeights):
            factors = self._factors(W.places.kept // W.places.width)
            return (W.block if factors is None else W.block * factors).astype(dtype)
        if not len(self.scale):
            return W.astype(dtype, copy=False)
        out, split = np.empty(W.shape, dtype=dtype), len(self.scale)
        team = native.ALONE if workers is None else workers.team
        native.scaled_rows(team, np.ascontiguousarray(W[:split], dtype=np.float64), self.scale, out[:split])
        out[split:] = W[split:]
        return out

    def _factors(self, rows: np.ndarray) -> np.ndarray | None:
        """Factors of the columns that some rows of W are for."""
        return np.concatenate([self.scale, np.ones(self.real_size)])[rows] if len(self.scale) else None

    def finish(self, sums: np.ndarray, columns: np.ndarray | None, dtype: np.dtype, workers: Workers) -> np.ndarray:
        if not len(self.scale):
            return sums
        if columns is not None:
            return sums * self._factors(columns)
        sums[: len(self.scale)] *= self.scale[:, None]
        return sums

    def squares(self, raw: np.ndarray) -> np.ndarray:
        raw = raw.copy()
        if len(self.scale):
            raw[: len(self.scale)] *= np.square(self.scale)
        if self.counts is not None:
            raw[: len(self.counts)] /= self.counts
        return raw

    def rounding(
        self,
        W: np.ndarray | KeptWeights,
        error_sum: float,
        positions: int,
        extent: Extent,
        outside: Callable[[float], float],
    ) -> Rounding:
        squares = W.column_squares() if isinstance(W, KeptWeights) else np.einsum("dc,dc->c", W, W)
        return self.rounding_of(float(np.sqrt(squares.max(initial=0.0))), error_sum, positions, extent)

    def rounding_of(self, longest: float, error_sum: float, positions: int, extent: Extent) -> Rounding:
        """Bound it from the length of the longest column of weights."""
        return Rounding(
            loss=error_sum * extent.largest * summation_error(extent.widest) * longest,
            gradient=extent.largest * summation_error(positions) * error_sum,
        )


@dataclass(frozen=True, eq=False)
class PivotHead:
    """The triangle of pivots B, L L^T = K_BB."""

    system: Triangle
    curve: np.ndarray  # [M+1] unexplained part of the trace with the first 0..M pivots

    nested, real_size = True, 0

    @classmethod
    def of(cls, triangle: np.ndarray, curve: np.ndarray, memory: Budget) -> PivotHead:
        return cls(Triangle(triangle, memory), curve)

    @property
    def triangle(self) -> np.ndarray:
        return self.system.values

    @property
    def size(self) -> int:
        return len(self.triangle)

    @property
    def scale(self) -> np.ndarray:
        return np.empty(0)

    def leading(self, m: int, memory: Budget) -> PivotHead:
        """Return the head of the first m pivots."""
        return PivotHead.of(np.ascontiguousarray(self.triangle[:m, :m]), self.curve[: m + 1], memory)

    def inverse(self, m: int, dtype: np.dtype) -> np.ndarray:
        """L^-T of the first m pivots, [m, m]: kernel values times this are rows of the map."""
        return inverted(np.ascontiguousarray(self.triangle[:m, :m])).T.astype(dtype)

    def dual(self, W: np.ndarray) -> np.ndarray:
        """alpha = L^-T W: scores are k(x, B) alpha."""
        return linear_algebra.solve_triangular(self.triangle, W, lower=True, trans="T", check_finite=False)

    def ready(self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None) -> np.ndarray:
        assert isinstance(W, np.ndarray)  # pivots have parameters at all places
        # What is to be proven, which is in double precision, is solved by substitution.
        if workers is not None and dtype != np.float64:
            alpha = self.system.solve(W, workers, transposed=True)
        else:
            alpha = self.dual(W)
        return alpha.astype(dtype, copy=False)

    def finish(
        self,
        sums: np.ndarray,
        columns: np.ndarray | None,
        dtype: np.dtype,
        workers: Workers,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        if dtype == np.float64:
            return linear_algebra.solve_triangular(self.triangle, sums, lower=True, check_finite=False)
        return self.system.solve(sums, workers, out=out)

    def squares(self, raw: np.ndarray) -> np.ndarray:
        """Return what each pivot took from the trace when it was chosen."""
        return -np.diff(self.curve) * raw[0]

    @cached_property
    def _inverse_norm(self) -> float:
        """|L^-1|, from LAPACK's estimates of its norms by rows and by columns."""
        norms = []
        for kind, axis in (("I", 0), ("1", 1)):  # of L^T, which LAPACK can take as it lies in memory
            reciprocal = linear_algebra.lapack.dtrcon(self.triangle.T, norm=kind, uplo="U")[0]
            norms.append(1 / max(reciprocal * float(np.abs(self.triangle).sum(axis=axis).max()), 1e-300))
        return float(np.sqrt(norms[0] * norms[1]))

    def rounding(
        self,
        W: np.ndarray | KeptWeights,
        error_sum: float,
        positions: int,
        extent: Extent,
        outside: Callable[[float], float],
    ) -> Rounding:
        assert isinstance(W, np.ndarray)
        alpha = self.dual(W)
        sizes = float(np.linalg.norm(alpha)), float(np.abs(alpha).sum(axis=0).max(initial=0.0))
        return self.rounding_of(*sizes, self._inverse_norm, error_sum, positions, extent, outside)

    def rounding_of(
        self,
        length: float,
        tallest: float,
        inverse: float,
        error_sum: float,
        positions: int,
        extent: Extent,
        outside: Callable[[float], float],
    ) -> Rounding:
        """Bound it from the length of alpha, the largest sum of sizes of its columns, and |L^-1|."""
        M, largest, value = max(self.size, 1), extent.largest, extent.value_error
        # L L^T is the kernel matrix of the pivots but for this, in norm: rounded values, and a rounded factorisation.
        # Seen in extended precision on random inputs: 0.05 to 6 times the root of M times a rounding, here it is 16.
        gram = largest * np.sqrt(M) * (summation_error(1) + value)
        return Rounding(
            loss=error_sum * largest * (summation_error(M) + value) * tallest,
            gradient=inverse * largest * np.sqrt(M) * (summation_error(positions) + value) * error_sum,
            prior=gram * length**2,
            prior_gradient=inverse * gram * length,
            factor=gram * inverse**2,
            outside=outside(gram) ** 2 if extent.outside else 0.0,
        )
