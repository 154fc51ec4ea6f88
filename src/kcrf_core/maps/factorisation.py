"""K ~= G G^T, factorised some columns at a time over all training positions.

New pivots P extend G by (K_NP - G G_P^T) L^-T, L the Cholesky factor of what is left among them. Rows of G that belong
to pivots come from the kernel matrix of the pivots alone, in double precision; so nothing but the next columns at a
position depends on the columns before, and rows of G that memory has no room for are worked out again, block after
block, by the very same products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels import Inputs, Kernel, Pivots, gram
from ..system import Workers, in_place, linear_algebra, ranges
from .triangles import ROWS_AT_ONCE, factorise, square_gram

ROWS_PER_TASK = 1024
CANDIDATES_PER_TASK = 8

# A pivot whose residual is a smaller part of the mean diagonal than this adds rounding, not information.
FLOORS = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-11}


@dataclass(frozen=True)
class Basis:
    """Chosen pivots, in order; the first m of them are the basis of size m."""

    rows: np.ndarray  # [M] int64, positions of the training data
    residual: np.ndarray  # [N] float64, k(x, x) - |Phi(x)|^2 of each training position
    trace: float  # sum of k(x, x) over training positions
    curve: np.ndarray  # [M+1] float64, sum of residuals with the first 0, 1, ..., M pivots

    @property
    def unexplained(self) -> float:
        """The part of the trace that the pivots leave."""
        return float(self.residual.sum() / self.trace) if self.trace > 0 else 0.0


@dataclass(frozen=True)
class Candidates:
    """Positions that may become pivots, and how they stand to the pivots there are."""

    rows: np.ndarray  # [c] positions
    mine: np.ndarray  # [c, m] float64, their rows of G
    left: np.ndarray  # [c, c] float64, K - G G^T among them

    def take(self, which: np.ndarray) -> Candidates:
        return Candidates(self.rows[which], self.mine[which], self.left[np.ix_(which, which)])


class _Columns:
    """Columns of K - G G^T at some positions, row by row of G."""

    def __init__(self, candidates: Candidates, inputs: Inputs, kernel: Kernel, dtype: np.dtype):
        self._pivots = Pivots(inputs.take(candidates.rows), kernel, dtype)
        self._mine = np.ascontiguousarray(candidates.mine.T, dtype=dtype)  # [m, c]

    def at(self, inputs: Inputs, G: np.ndarray) -> np.ndarray:
        """[n, c] for n positions and their rows of G."""
        out = self._pivots.gram(inputs)
        if len(self._mine):
            out -= G @ self._mine
        return out


@dataclass(frozen=True)
class KnownColumns:
    """Columns at all positions, and how they come about."""

    maker: _Columns
    values: np.ndarray  # [N, c]


@dataclass(frozen=True)
class _Block:
    """How a block of columns of G comes from those before it."""

    columns: _Columns
    picked: np.ndarray | None  # which of the columns became pivots; None for all
    inverse: np.ndarray  # [b, b] L^-T

    def of(self, columns: np.ndarray) -> np.ndarray:
        return (columns if self.picked is None else columns[:, self.picked]) @ self.inverse


class Factorisation:
    """G, d and what was chosen so far."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        size: int,
        workers: Workers,
        dtype: np.dtype,
        progress: Callable[[int, int], None] | None = None,
        enough: float = 0.0,
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, dtype
        self._enough = enough  # part of the trace that may be left
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N] d
        self.floor = FLOORS[dtype] * float(self.diagonal.mean())
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self.tasks = ranges(len(inputs), ROWS_PER_TASK)
        self._progress = progress
        self._triangle = np.zeros((size, size))  # of the kernel matrix of the pivots
        workers.memory.spend(self, self._triangle.nbytes)
        self._in_double = True  # whether the triangle was found in double precision throughout
        self._blocks: list[_Block] = []
        # [rows that fit, size], filled column by column. Rows are contiguous: each task works on rows of its own.
        self._G: np.ndarray | None = None

    def done(self) -> bool:
        return len(self.chosen) >= self.size or self.curve[-1] <= self._enough * self.curve[0]

    def candidates(self, rows: np.ndarray) -> Candidates:
        """What is left among some positions."""
        part, m = self.inputs.take(rows), len(self.chosen)
        left = gram(self.kernel, part, part)
        mine = np.zeros((len(rows), m))
        if not m:
            return Candidates(rows, mine, left)
        pivots, triangle = self.inputs.take(np.array(self.chosen)), self._triangle[:m, :m]

        def substitute(some: slice) -> None:
            cross = gram(self.kernel, pivots, part.take(some))  # [m, n]
            mine[some] = _forward_substituted(triangle, cross).T

        def subtract(some: slice) -> None:
            left[some] -= mine[some] @ mine.T

        parts = ranges(len(rows), CANDIDATES_PER_TASK)
        self.workers.run(substitute, parts)
        self.workers.run(subtract, parts)
        return Candidates(rows, mine, left)

    def columns(self, candidates: Candidates) -> KnownColumns:
        """Columns of K - G G^T at all positions."""
        maker = self._columns_of(candidates)
        out = np.empty((len(self.inputs), len(candidates.rows)), dtype=self.dtype)

        def task(part: slice) -> None:
            out[part] = maker.at(self.inputs.take(part), self.rows(part))

        self.workers.run(task, self.tasks)
        return KnownColumns(maker, out)

    def _columns_of(self, candidates: Candidates) -> _Columns:
        return _Columns(candidates, self.inputs, self.kernel, self.dtype)

    def append(
        self,
        candidates: Candidates,
        triangle: np.ndarray,  # [b, b] Cholesky factor of what is left among those that become pivots
        picked: np.ndarray | None = None,  # which they are; None for all
        known: KnownColumns | None = None,  # columns of the candidates, where the triangle was found from them
    ) -> None:
        """Take candidates as pivots."""
        self._in_double &= known is None
        maker = self._columns_of(candidates) if known is None else known.maker
        chosen = candidates if picked is None else candidates.take(picked)
        m, b = len(self.chosen), len(chosen.rows)
        inverse = linear_algebra.solve_triangular(triangle, np.eye(b), lower=True).T.astype(self.dtype)
        block = _Block(maker, picked, inverse)
        G = self._open()
        gains = np.empty((len(self.tasks), b))

        def task(numbered: tuple[int, slice]) -> None:
            number, part = numbered
            if known is None:
                new = block.of(maker.at(self.inputs.take(part), self.rows(part)))
            else:
                new = block.of(known.values[part])
            if part.stop <= len(G):
                G[part, m : m + b] = new
            squares = np.square(new, dtype=np.float64)
            self.residual[part] -= squares.sum(axis=1)
            gains[number] = squares.sum(axis=0)

        self.workers.run(task, enumerate(self.tasks))
        self._triangle[m : m + b, :m] = chosen.mine
        self._triangle[m : m + b, m : m + b] = triangle
        self._blocks.append(block)
        self.chosen.extend(chosen.rows.tolist())
        self.residual[self.chosen] = 0.0
        np.maximum(self.residual, 0.0, out=self.residual)
        for gain in gains.sum(axis=0):
            self.curve.append(max(self.curve[-1] - float(gain), 0.0))
        if self._progress is not None:
            self._progress(len(self.chosen), self.size)

    def rows(self, part: slice) -> np.ndarray:
        """Rows of G that a task has, as far as there are columns: [n, m]."""
        m = len(self.chosen)
        if m and self._G is not None and part.stop <= len(self._G):
            return self._G[part, :m]
        inputs = self.inputs.take(part)
        out = np.empty((len(inputs), self.size), dtype=self.dtype)
        first = 0
        for block in self._blocks:
            new = block.of(block.columns.at(inputs, out[:, :first]))
            out[:, first : first + new.shape[1]] = new
            first += new.shape[1]
        return out[:, :m]

    def error_products(self, candidates: Candidates, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K_BN m of some candidates [b, C] and G^T m [M, C] for errors m [N, C], summed in double precision."""
        pivots = Pivots(self.inputs.take(candidates.rows), self.kernel, self.dtype)

        def task(part: slice) -> tuple[np.ndarray, np.ndarray]:
            return pivots.gram(self.inputs.take(part)).T @ errors[part], self.rows(part).T @ errors[part]

        C = errors.shape[1]
        whole, inside = np.zeros((len(candidates.rows), C)), np.zeros((len(self.chosen), C))
        for product, reached in self.workers.map(task, self.tasks):
            whole = whole + product.astype(np.float64)  # by all of the kernel
            inside = inside + reached.astype(np.float64)  # by what pivots explain
        return whole, inside

    def _open(self) -> np.ndarray:
        """The rows of G that are held: whole tasks, as many as fit."""
        if self._G is None:
            row = max(self.size, 1) * self.dtype.itemsize
            held = self.workers.memory.reserve(self, len(self.inputs) * row, ROWS_PER_TASK * row) // row
            self._G = np.empty((held, self.size), dtype=self.dtype)
        return self._G

    def basis(self) -> Basis:
        """What was chosen, less pivots that are a mixture of others as double precision sees it. It ends the work."""
        rows = np.array(self.chosen, dtype=np.int64)
        # The last block may have brought more than it takes to leave no more than enough.
        needed = int(np.searchsorted(-np.array(self.curve), -self._enough * self.curve[0]))
        residual = self.residual.copy()
        if needed < len(rows):
            for part in self.tasks:
                surplus = self.rows(part)[:, needed:]
                residual[part] += np.square(surplus, dtype=np.float64).sum(axis=1)
        self._G, self._triangle = None, np.empty((0, 0))  # room for the matrix of the pivots
        kept = np.arange(len(rows))
        if not self._in_double:
            kept = independent_pivots(self.kernel, self.inputs.take(rows), self.floor, self.workers)
        return truncated(rows, residual, self.curve, kept[kept < needed])


def new_factorisation(
    inputs: Inputs,
    kernel: Kernel,
    size: int,
    workers: Workers,
    dtype: np.dtype,
    progress: Callable[[int, int], None] | None = None,
    enough: float = 0.0,
) -> Factorisation:
    """One that is worked out on the device of the workers, where that knows the kernel, or by their threads."""
    asked = inputs, kernel, size, workers, dtype, progress, enough
    made = None if workers.device is None else workers.device.factorisation(*asked)
    return Factorisation(*asked) if made is None else made


def _forward_substituted(triangle: np.ndarray, right: np.ndarray) -> np.ndarray:
    """L^-1 R in the place of R [m, c]; LAPACK would copy an L [m, m] that is part of a larger matrix."""
    for part in ranges(len(right), ROWS_AT_ONCE):
        right[part] -= triangle[part, : part.start] @ right[: part.start]
        in_place.substitute(triangle[part, part], right[part])
    return right


def truncated(rows: np.ndarray, residual: np.ndarray, curve: list[float], kept: np.ndarray) -> Basis:
    """Those of the chosen rows that are kept."""
    gains = -np.diff(curve)[kept]
    return Basis(rows[kept], residual, curve[0], curve[0] - np.concatenate([[0.0], np.cumsum(gains)]))


def independent_pivots(kernel: Kernel, pivots: Inputs, floor: float, workers: Workers) -> np.ndarray:
    """Numbers of pivots that are no mixture of those before them."""
    K = square_gram(kernel, pivots, workers)
    if factorise(K, workers) and (np.diagonal(K) ** 2 > floor).all():
        return np.arange(len(pivots))
    K = square_gram(kernel, pivots, workers)
    kept: list[int] = []
    G = np.zeros_like(K)  # [M, kept]
    for i in range(len(K)):
        column = K[:, i] - G[:, : len(kept)] @ G[i, : len(kept)]
        if column[i] > floor:
            G[:, len(kept)] = column / np.sqrt(column[i])
            kept.append(i)
    return np.array(kept, dtype=np.int64)
