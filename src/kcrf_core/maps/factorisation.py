"""K ~= G G^T, factorised some columns at a time over all training positions.

New pivots P extend G by (K_NP - G G_P^T) L^-T, L the Cholesky factor of what is left among them. Rows of G that belong
to pivots come from the kernel matrix of the pivots alone, in double precision; so nothing but the next columns at a
position depends on the columns before, and rows of G that memory has no room for are computed again, block after block,
by the very same products. G and kernel values are arrays of a `KernelSource`: threads of this process, or a device
beside them. The residual of each position is kept in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..errors import NumericError
from ..kernels import Inputs, Kernel, Pivots, gram
from ..system import (
    DOUBLE,
    FACTORISED_AT_ONCE,
    Array,
    Backend,
    Budget,
    Workers,
    factorise,
    in_place,
    linear_algebra,
    ranges,
)
from .triangles import square_gram

ROWS_PER_TASK = 1024
CANDIDATES_PER_TASK = 8

# A pivot whose residual is a smaller part of the mean diagonal than this adds rounding, not information.
FLOORS = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-11}

# k(x, x) - |Phi(x)|^2 below minus this part of k(x, x), or of the mean one if that is more, is not
# rounding, which was at most 1e-5 and 4e-13 on OCR, sensor readings and words with six kernels.
ROUNDING = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-8}

Item = TypeVar("Item")
Result = TypeVar("Result")
# Columns of K - G G^T, or of G, at some of the positions [n, c], given their rows of G before.
Columns = Callable[[slice, Array], Array]


@dataclass(frozen=True)
class Basis:
    """Chosen pivots, in order; the first m of them are the basis of size m."""

    rows: np.ndarray  # [M] int64, positions of the training data
    residual: np.ndarray  # [N] float64, k(x, x) - |Phi(x)|^2 of each training position
    trace: float  # sum of k(x, x) over training positions
    curve: np.ndarray  # [M+1] float64, sum of residuals with the first 0, 1, ..., M pivots
    negative: int = 0  # positions where k(x, x) - |Phi(x)|^2 is below zero by more than rounding

    @property
    def unexplained(self) -> float:
        """Part of the trace that the pivots leave unexplained."""
        return float(self.residual.sum() / self.trace) if self.trace > 0 else 0.0


@dataclass(frozen=True)
class Candidates:
    """Positions that may become pivots, and their relation to the pivots so far."""

    rows: np.ndarray  # [c] positions
    mine: Array  # [c, m] float64, their rows of G
    left: np.ndarray  # [c, c] float64, K - G G^T among them

    def take(self, which: np.ndarray) -> Candidates:
        return Candidates(self.rows[which], self.mine[which], self.left[np.ix_(which, which)])


class KernelSource(ABC):
    """Kernel values of inputs with some of them, in the precision of a factorisation and in double precision."""

    def __init__(self, inputs: Inputs, kernel: Kernel, workers: Workers):
        self.inputs, self.kernel, self.workers = inputs, kernel, workers

    backend: Backend
    memory: Budget  # for rows of G
    rows_at_once: int  # of a task

    def run(self, task: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call a task for its effects."""
        for item in items:
            task(item)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Return results in the order of items."""
        return map(task, items)

    @abstractmethod
    def values(self, rows: np.ndarray) -> Callable[[slice], Array]:
        """Return a function to k(x, x') of a part of the inputs with those at some positions, [n, c]."""

    @abstractmethod
    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: Array) -> Candidates:
        """Return the residual kernel among positions, for pivots with a triangle L [m, m]; in double precision."""

    def independent(self, rows: np.ndarray, floor: float) -> np.ndarray:
        """Return the numbers of rows that are linearly independent of the rows before them."""
        pivots = self.inputs.take(rows)
        K = square_gram(self.kernel, pivots, self.workers)
        if factorise(K, self.workers) and (np.diagonal(K) ** 2 > floor).all():
            return np.arange(len(pivots))
        K = square_gram(self.kernel, pivots, self.workers)
        kept: list[int] = []
        G = np.zeros_like(K)  # [M, kept]
        for i in range(len(K)):
            column = K[:, i] - G[:, : len(kept)] @ G[i, : len(kept)]
            if column[i] > floor:
                G[:, len(kept)] = column / np.sqrt(column[i])
                kept.append(i)
        return np.array(kept, dtype=np.int64)


class ThreadSource(KernelSource):
    """Kernel values by threads of this process."""

    rows_at_once = ROWS_PER_TASK

    def __init__(self, inputs: Inputs, kernel: Kernel, workers: Workers, dtype: np.dtype):
        super().__init__(inputs, kernel, workers)
        self.backend, self.memory, self._dtype = Backend(), workers.memory, dtype

    def run(self, task: Callable[[Item], object], items: Iterable[Item]) -> None:
        self.workers.run(task, items)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self.workers.map(task, items)

    def values(self, rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        pivots = Pivots(self.inputs.take(rows), self.kernel, self._dtype)
        return lambda part: pivots.gram(self.inputs.take(part))

    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: np.ndarray) -> Candidates:
        part, m = self.inputs.take(rows), len(chosen)
        left = gram(self.kernel, part, part)
        mine = np.zeros((len(rows), m))
        if not m:
            return Candidates(rows, mine, left)
        pivots = self.inputs.take(np.array(chosen))

        def substitute(some: slice) -> None:
            right = gram(self.kernel, pivots, part.take(some))  # [m, n]
            for block in ranges(m, FACTORISED_AT_ONCE):  # LAPACK would copy an L that is part of a larger matrix
                right[block] -= triangle[block, : block.start] @ right[: block.start]
                in_place.substitute(triangle[block, block], right[block])
            mine[some] = right.T

        def subtract(some: slice) -> None:
            left[some] -= mine[some] @ mine.T

        parts = ranges(len(rows), CANDIDATES_PER_TASK)
        self.workers.run(substitute, parts)
        self.workers.run(subtract, parts)
        return Candidates(rows, mine, left)


class Factorisation:
    """G, the residuals d and the pivots so far."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        size: int,
        workers: Workers,
        dtype: np.dtype,
        progress: Callable[[int, int], None] | None = None,
        enough: float = 0.0,  # part of the trace that may be left
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, dtype
        found = None if workers.device is None else workers.device.source(inputs, kernel, workers, dtype)
        self._source = ThreadSource(inputs, kernel, workers, dtype) if found is None else found
        self.backend, self._enough, self._progress = self._source.backend, enough, progress
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N] d
        self._explained = np.zeros_like(self.diagonal)  # [N] |Phi(x)|^2
        self.floor = FLOORS[dtype] * float(self.diagonal.mean())
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self.tasks = ranges(len(inputs), self._source.rows_at_once)
        self._triangle = self.backend.zeros((size, size))  # of the kernel matrix of the pivots
        self._source.memory.spend(self, 8 * size * size)
        self._in_double = True  # the triangle was found in double precision throughout
        self._blocks: list[Columns] = []  # of G
        # [rows that fit, size], filled column by column. Rows are contiguous: each task works on rows of its own.
        self._G: Array | None = None

    def done(self) -> bool:
        return len(self.chosen) >= self.size or self.curve[-1] <= self._enough * self.curve[0]

    def candidates(self, rows: np.ndarray) -> Candidates:
        """Return the residual kernel among some positions."""
        m = len(self.chosen)
        return self._source.candidates(rows, self.chosen, self._triangle[:m, :m])

    def columns(self, candidates: Candidates) -> tuple[Columns, Array]:
        """Return columns of K - G G^T, as a function and at all positions."""
        columns = self._columns_of(candidates)
        out = self.backend.empty((len(self.inputs), len(candidates.rows)), self.dtype)

        def task(part: slice) -> None:
            out[part] = columns(part, self.rows(part))

        self._source.run(task, self.tasks)
        return columns, out

    def _columns_of(self, candidates: Candidates) -> Columns:
        values, backend = self._source.values(candidates.rows), self.backend
        mine = backend.contiguous(backend.cast(candidates.mine, self.dtype).T)  # [m, c]

        def columns(part: slice, G: Array) -> Array:
            out = values(part)
            if len(mine):
                out -= G @ mine
            return out

        return columns

    def append(
        self,
        candidates: Candidates,
        triangle: np.ndarray,  # [b, b] Cholesky factor of what is left among those that become pivots
        picked: np.ndarray | None = None,  # which they are; None for all
        known: tuple[Columns, Array] | None = None,  # their columns, where the triangle was found from them
    ) -> None:
        """Take candidates as pivots."""
        self._in_double &= known is None
        columns = self._columns_of(candidates) if known is None else known[0]
        chosen = candidates if picked is None else candidates.take(picked)
        m, b, backend = len(self.chosen), len(chosen.rows), self.backend
        inverse = backend.array(linear_algebra.solve_triangular(triangle, np.eye(b), lower=True).T, self.dtype)
        which = slice(None) if picked is None else backend.array(picked)

        def block(part: slice, before: Array) -> Array:
            return columns(part, before)[:, which] @ inverse

        if self._G is None:  # whole tasks, as many as fit
            row, at_once = max(self.size, 1) * self.dtype.itemsize, self._source.rows_at_once
            held = self._source.memory.reserve(self, len(self.inputs) * row, at_once * row) // row
            self._G = backend.empty((held, self.size), self.dtype)
        G, count = self._G, len(self.tasks)
        taken: list[Array] = [None] * count
        gains: list[Array] = [None] * count

        def task(numbered: tuple[int, slice]) -> None:
            number, part = numbered
            new = block(part, self.rows(part)) if known is None else known[1][part][:, which] @ inverse
            if part.stop <= len(G):
                G[part, m : m + b] = new
            squares = backend.cast(new, DOUBLE)
            squares = squares * squares
            taken[number], gains[number] = squares.sum(1), squares.sum(0)

        self._source.run(task, enumerate(self.tasks))
        squares = backend.numpy(backend.xp.concatenate(taken))
        self._explained += squares
        self.residual -= squares
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
        """Return rows of G of a task, with all columns so far: [n, m]."""
        m = len(self.chosen)
        if m and self._G is not None and part.stop <= len(self._G):
            return self._G[part, :m]
        out = self.backend.empty((part.stop - part.start, self.size), self.dtype)
        first = 0
        for block in self._blocks:
            new = block(part, out[:, :first])
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

    def basis(self) -> Basis:
        """Return the pivots, less those that are mixtures of others in double precision. It ends the work."""
        if not self.chosen:
            raise without_pivots(self.diagonal)
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
        negative = negative_count(self.diagonal, self._explained, self.dtype)
        return Basis(rows[kept], residual, self.curve[0], curve, negative)


def negative_count(diagonal: np.ndarray, explained: np.ndarray, dtype: np.dtype) -> int:
    """Count positions where k(x, x) [N] is less than |Phi(x)|^2, by more than rounding.

    A positive semidefinite kernel has none.
    """
    rounding = ROUNDING[dtype] * np.maximum(np.abs(diagonal), np.abs(diagonal).mean())
    return int(np.count_nonzero(diagonal - explained < -rounding))


def without_pivots(diagonal: np.ndarray) -> NumericError:
    """Return an error that says why no position can be a pivot, by k(x, x) [N]."""
    message = "the kernel is zero at every position, so there is nothing to choose pivots from"
    if diagonal.any():
        message = "the kernel is not positive semidefinite: no input has a k(x, x) above zero"
    return NumericError(message)
