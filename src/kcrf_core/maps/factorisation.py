"""K ~= G G^T, factorised some columns at a time over all training positions.

New pivots P extend G by (K_NP - G G_P^T) L^-T, L the Cholesky factor of what is left among them. Rows of G that belong
to pivots come from the kernel matrix of the pivots alone, in double precision; so nothing but the next columns at a
position depends on the columns before, and rows of G that memory has no room for are worked out again, block after
block, by the very same products. G and kernel values are arrays of a `KernelSource`; what is left at each position is
looked at in this process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..kernels import Inputs, Kernel
from ..system import DOUBLE, Array, Workers, linear_algebra, ranges
from .kernel_sources import Candidates, KernelSource, ThreadSource, kernel_source

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


class _Columns:
    """Columns of K - G G^T at some positions, row by row of G."""

    def __init__(self, candidates: Candidates, source: KernelSource, dtype: np.dtype):
        self._values = source.values(candidates.rows)
        self._mine = source.backend.contiguous(source.backend.cast(candidates.mine, dtype).T)  # [m, c]

    def at(self, part: slice, G: Array) -> Array:
        """Return [n, c] for n positions and their rows of G."""
        out = self._values(part)
        if len(self._mine):
            out -= G @ self._mine
        return out


@dataclass(frozen=True)
class KnownColumns:
    """Columns at all positions, and how they come about."""

    maker: _Columns
    there: Array  # [N, c]
    values: np.ndarray  # the same in this process


@dataclass(frozen=True)
class _Block:
    """How a block of columns of G comes from those before it."""

    columns: _Columns
    picked: Array | None  # which of the columns became pivots; None for all
    inverse: Array  # [b, b] L^-T

    def of(self, columns: Array) -> Array:
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
        enough: float = 0.0,  # part of the trace that may be left
        source: KernelSource | None = None,  # None: threads
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, dtype
        self._source = source or ThreadSource(inputs, kernel, workers, dtype)
        self.backend, self._enough, self._progress = self._source.backend, enough, progress
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N] d
        self.floor = FLOORS[dtype] * float(self.diagonal.mean())
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self.tasks = ranges(len(inputs), self._source.rows_at_once)
        self._triangle = self.backend.zeros((size, size))  # of the kernel matrix of the pivots
        self._source.memory.spend(self, 8 * size * size)
        self._in_double = True  # whether the triangle was found in double precision throughout
        self._blocks: list[_Block] = []
        # [rows that fit, size], filled column by column. Rows are contiguous: each task works on rows of its own.
        self._G: Array | None = None

    def done(self) -> bool:
        return len(self.chosen) >= self.size or self.curve[-1] <= self._enough * self.curve[0]

    def candidates(self, rows: np.ndarray) -> Candidates:
        """Return what is left among some positions."""
        m = len(self.chosen)
        return self._source.candidates(rows, self.chosen, self._triangle[:m, :m])

    def columns(self, candidates: Candidates) -> KnownColumns:
        """Return columns of K - G G^T at all positions."""
        maker = self._columns_of(candidates)
        out = self.backend.empty((len(self.inputs), len(candidates.rows)), self.dtype)

        def task(part: slice) -> None:
            out[part] = maker.at(part, self.rows(part))

        self._source.run(task, self.tasks)
        return KnownColumns(maker, out, self.backend.numpy(out))

    def _columns_of(self, candidates: Candidates) -> _Columns:
        return _Columns(candidates, self._source, self.dtype)

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
        m, b, backend = len(self.chosen), len(chosen.rows), self.backend
        inverse = linear_algebra.solve_triangular(triangle, np.eye(b), lower=True).T
        which = None if picked is None else backend.array(picked)
        block = _Block(maker, which, backend.array(inverse, self.dtype))
        G, count = self._open(), len(self.tasks)
        taken: list[Array] = [None] * count
        gains: list[Array] = [None] * count

        def task(numbered: tuple[int, slice]) -> None:
            number, part = numbered
            new = block.of(maker.at(part, self.rows(part)) if known is None else known.there[part])
            if part.stop <= len(G):
                G[part, m : m + b] = new
            squares = backend.cast(new, DOUBLE)
            squares = squares * squares
            taken[number], gains[number] = squares.sum(1), squares.sum(0)

        self._source.run(task, enumerate(self.tasks))
        self.residual -= backend.numpy(backend.xp.concatenate(taken))
        self._triangle[m : m + b, :m] = chosen.mine
        self._triangle[m : m + b, m : m + b] = backend.array(triangle, DOUBLE)
        if len(G) < len(self.inputs):
            self._blocks.append(block)
        self.chosen.extend(chosen.rows.tolist())
        self.residual[self.chosen] = 0.0
        np.maximum(self.residual, 0.0, out=self.residual)
        for gain in backend.numpy(backend.xp.stack(gains)).sum(axis=0):
            self.curve.append(max(self.curve[-1] - float(gain), 0.0))
        if self._progress is not None:
            self._progress(len(self.chosen), self.size)

    def rows(self, part: slice) -> Array:
        """Return rows of G that a task has, as far as there are columns: [n, m]."""
        m = len(self.chosen)
        if m and self._G is not None and part.stop <= len(self._G):
            return self._G[part, :m]
        out = self.backend.empty((part.stop - part.start, self.size), self.dtype)
        first = 0
        for block in self._blocks:
            new = block.of(block.columns.at(part, out[:, :first]))
            out[:, first : first + new.shape[1]] = new
            first += new.shape[1]
        return out[:, :m]

    def error_products(self, candidates: Candidates, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return K_BN m of candidates [b, C] and G^T m [M, C] for errors m [N, C], summed in double precision."""
        values, there = self._source.values(candidates.rows), self.backend.array(errors, self.dtype)

        def task(part: slice) -> tuple[Array, Array]:
            return values(part).T @ there[part], self.rows(part).T @ there[part]

        C, cast = errors.shape[1], self.backend.cast
        whole, inside = self.backend.zeros((len(candidates.rows), C)), self.backend.zeros((len(self.chosen), C))
        for product, reached in self._source.map(task, self.tasks):
            whole = whole + cast(product, DOUBLE)  # by all of the kernel
            inside = inside + cast(reached, DOUBLE)  # by what pivots explain
        return self.backend.numpy(whole), self.backend.numpy(inside)

    def _open(self) -> Array:
        """Return the rows of G that are held: whole tasks, as many as fit."""
        if self._G is None:
            row, at_once = max(self.size, 1) * self.dtype.itemsize, self._source.rows_at_once
            held = self._source.memory.reserve(self, len(self.inputs) * row, at_once * row) // row
            self._G = self.backend.empty((held, self.size), self.dtype)
        return self._G

    def basis(self) -> Basis:
        """Return what was chosen, less pivots that are mixtures of others in double precision. It ends the work."""
        rows = np.array(self.chosen, dtype=np.int64)
        # The last block may have brought more than it takes to leave no more than enough.
        needed = int(np.searchsorted(-np.array(self.curve), -self._enough * self.curve[0]))
        residual = self.residual.copy()
        if needed < len(rows):
            for part in self.tasks:
                surplus = self.backend.cast(self.rows(part)[:, needed:], DOUBLE)
                residual[part] += self.backend.numpy((surplus * surplus).sum(1))
        self._G, self._triangle = None, self.backend.zeros((0, 0))  # room for the matrix of the pivots
        kept = np.arange(len(rows)) if self._in_double else self._source.independent(rows, self.floor)
        kept = kept[kept < needed]
        gains = -np.diff(self.curve)[kept]
        curve = self.curve[0] - np.concatenate([[0.0], np.cumsum(gains)])
        return Basis(rows[kept], residual, self.curve[0], curve)


def new_factorisation(
    inputs: Inputs,
    kernel: Kernel,
    size: int,
    workers: Workers,
    dtype: np.dtype,
    progress: Callable[[int, int], None] | None = None,
    enough: float = 0.0,
) -> Factorisation:
    """Return one on the device of the workers, where that knows the kernel, or by their threads."""
    source = kernel_source(inputs, kernel, workers, dtype)
    return Factorisation(inputs, kernel, size, workers, dtype, progress, enough, source)
