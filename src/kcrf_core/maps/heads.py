"""Input transforms of maps, between weights W of a term and those of rows; and the effects of rounding.

    scores     row block times `ready(W)`
    gradient   `finish` of the sum of row block^T R

A transform (`Head`) is a small value beside the rows, so that partitions of rows can be elsewhere: they get the weights
that are ready, in the precision of a pass, and their answers are summed before `finish`. Explicit maps have factors of
columns there, those of pivots the triangle L: ready(W) = L^-T W, finish(S) = L^-1 S.

**Rounding.** Let scores be F + dF where F = Phi W exactly, errors m, and the gradient of the loss g + dg where
g = Phi^T m. The loss is convex in the scores, so Lemma 9 becomes

    min P >= P - <m, dF> - (sigma^2 / 2) (|gradient| + |dg|)^2

A map says how large dF and dg can be. That of pivots adds what its triangle L is off by: L L^T = K_BB + E changes
|W|^2 by alpha^T E alpha, the gradient by L^-1 E alpha / sigma^2, and squared lengths of gradients by the factor
1 / (1 - |E| |L^-1|^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from .._lazy import cached_property
from ..system import Budget, Workers, linear_algebra, ranges
from . import native
from .sparse_weights import KeptWeights
from .triangles import Triangle, inverted

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]  # like np.empty

# A sum of n rounded products is off by up to n units in the last place, and practically never by more than a few times
# their root (Higham and Mary 2019).
ROOTS = 8
ROWS_AT_ONCE = 1 << 12  # of weights that are widened to double precision
UNIT = float(np.finfo(np.float64).eps) / 2


def summation_error(terms: int) -> float:
    """Bound the error of a sum of so many products, as a part of the sum of their sizes."""
    return ROOTS * sqrt(max(terms, 1)) * UNIT


@dataclass(frozen=True)
class Extent:
    """Largest length and width of rows of a map."""

    largest: float  # length of a row; of pivots its square, k(x, x)
    widest: int = 0  # values of a row
    value_error: float = 0.0  # of kernel values in double precision, as a part of the largest
    outside: bool = False  # True if a map that stands for the whole space leaves some of it out

    def joined(self, other: Extent) -> Extent:
        """Return the extent of the rows of both."""
        return Extent(
            max(self.largest, other.largest),
            max(self.widest, other.widest),
            max(self.value_error, other.value_error),
            self.outside or other.outside,
        )


@dataclass(frozen=True)
class Evaluated:
    """An evaluation whose rounding errors `Head.rounding` bounds."""

    error_sum: float  # of sizes of errors
    positions: int
    extent: Extent
    outside: Callable[[float], float]  # of maps of a whole space, given a bound on the errors of the pivots' values


@dataclass(frozen=True)
class Rounding:
    """Bounds on what rounding may change, of one map at some weights."""

    loss: float = 0.0  # <m, dF>
    gradient: float = 0.0  # the gradient of the loss, in length
    prior: float = 0.0  # |W|^2
    prior_gradient: float = 0.0  # W, in length, where it stands in the gradient as W / sigma^2
    factor: float = 0.0  # |gradient|^2, as a part
    outside: float = 0.0  # |gradient|^2 outside the span of a map that stands for the whole space


@dataclass(frozen=True, eq=False)
class ExplicitHead:
    """Factors of sparse columns; real ones, which come last, have none."""

    size: int
    real_size: int
    scale: np.ndarray  # [D - R], or [0] for ones
    counts: np.ndarray | None = None  # [D - R] features that share each column; None: one each

    nested = False

    def ready(
        self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None, empty: Empty = np.empty
    ) -> np.ndarray:
        """Return the weights of the row block: [D, C], or [K] where only some places have parameters."""
        if isinstance(W, KeptWeights):
            factors = self._factors(W.places.kept // W.places.width)
            return (W.block if factors is None else W.block * factors).astype(dtype)
        if not len(self.scale):
            return W.astype(dtype, copy=False)
        out, split = empty(W.shape, dtype), len(self.scale)
        team = native.ALONE if workers is None else workers.team
        for part in ranges(split, split if W.dtype == np.float64 else ROWS_AT_ONCE):
            block = np.ascontiguousarray(W[part], dtype=np.float64)
            rows, columns = block.shape
            native.laid_out(team, block.ravel(), self.scale[part], None, None, None, columns, rows, out[part].ravel())
        out[split:] = W[split:]
        return out

    def _factors(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the factors of the columns that some rows of W are for."""
        return np.concatenate([self.scale, np.ones(self.real_size)])[rows] if len(self.scale) else None

    def finish(self, sums: np.ndarray, columns: np.ndarray | None, dtype: np.dtype, workers: Workers) -> np.ndarray:
        """Return the gradient's block, from sums [D, C], or [K] at places in these rows, for a pass in a precision."""
        if not len(self.scale):
            return sums
        if columns is not None:
            return sums * self._factors(columns)
        sums[: len(self.scale)] *= self.scale[:, None]
        return sums

    def squares(self, raw: np.ndarray) -> np.ndarray:
        """Return the sum of squares of each column, [D], from the sum of `raw_squares` of rows."""
        raw = raw.copy()
        if len(self.scale):
            raw[: len(self.scale)] *= np.square(self.scale)
        if self.counts is not None:
            raw[: len(self.counts)] /= self.counts
        return raw

    def rounding(self, W: np.ndarray | KeptWeights, about: Evaluated) -> Rounding:
        """Bound the effects of rounding on an evaluation at W."""
        squares = W.column_squares() if isinstance(W, KeptWeights) else np.einsum("dc,dc->c", W, W)
        longest = float(np.sqrt(squares.max(initial=0.0)))
        return Rounding(
            loss=about.error_sum * about.extent.largest * summation_error(about.extent.widest) * longest,
            gradient=about.extent.largest * summation_error(about.positions) * about.error_sum,
        )


class PivotHead:
    """The triangle of pivots B, L L^T = K_BB."""

    nested, real_size, scale = True, 0, np.empty(0)

    def __init__(self, triangle: np.ndarray, curve: np.ndarray, memory: Budget):
        self.triangle, self.size, self._system = triangle, len(triangle), Triangle(triangle, memory)
        self.curve = curve  # [M+1] unexplained part of the trace with the first 0..M pivots

    def leading(self, m: int, memory: Budget) -> PivotHead:
        """Return the transform of the first m pivots."""
        return PivotHead(np.ascontiguousarray(self.triangle[:m, :m]), self.curve[: m + 1], memory)

    def inverse(self, m: int, dtype: np.dtype) -> np.ndarray:
        """Return L^-T of the first m pivots, [m, m]: kernel values times this are rows of the map."""
        return inverted(np.ascontiguousarray(self.triangle[:m, :m])).T.astype(dtype)

    def dual(self, W: np.ndarray) -> np.ndarray:
        """Return alpha = L^-T W: scores are k(x, B) alpha."""
        return linear_algebra.solve_triangular(self.triangle, W, lower=True, trans="T", check_finite=False)

    def ready(self, W: np.ndarray | KeptWeights, dtype: np.dtype, workers: Workers | None) -> np.ndarray:
        assert isinstance(W, np.ndarray)  # pivots have parameters at all places
        # Passes in double precision, which may prove something, go by substitution.
        if workers is not None and dtype != np.float64:
            alpha = self._system.solve(W, workers, transposed=True)
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
        return self._system.solve(sums, workers, out=out)

    def squares(self, raw: np.ndarray) -> np.ndarray:
        return -np.diff(self.curve) * raw[0]  # what each pivot took from the trace when it was chosen

    @cached_property
    def inverse_norm(self) -> float:
        """Estimate of |L^-1|, from LAPACK's estimates of its norms by rows and by columns."""
        norms = []
        for kind, axis in (("I", 0), ("1", 1)):  # of L^T, which LAPACK can take as it lies in memory
            reciprocal = linear_algebra.lapack.dtrcon(self.triangle.T, norm=kind, uplo="U")[0]
            norms.append(1 / max(reciprocal * float(np.abs(self.triangle).sum(axis=axis).max()), 1e-300))
        return float(np.sqrt(norms[0] * norms[1]))

    def rounding(self, W: np.ndarray | KeptWeights, about: Evaluated) -> Rounding:
        assert isinstance(W, np.ndarray)
        alpha, inverse = self.dual(W), self.inverse_norm
        length, tallest = float(np.linalg.norm(alpha)), float(np.abs(alpha).sum(axis=0).max(initial=0.0))
        M, extent, error_sum = max(self.size, 1), about.extent, about.error_sum
        largest, value = extent.largest, extent.value_error
        # L L^T is the kernel matrix of the pivots but for this, in norm: rounded values, and a rounded factorisation.
        # Seen in extended precision on random inputs: 0.05 to 6 times the root of M times a rounding, here it is 16.
        gram = largest * np.sqrt(M) * (summation_error(1) + value)
        return Rounding(
            loss=error_sum * largest * (summation_error(M) + value) * tallest,
            gradient=inverse * largest * np.sqrt(M) * (summation_error(about.positions) + value) * error_sum,
            prior=gram * length**2,
            prior_gradient=inverse * gram * length,
            factor=gram * inverse**2,
            outside=about.outside(gram) ** 2 if extent.outside else 0.0,
        )


Head = ExplicitHead | PivotHead
