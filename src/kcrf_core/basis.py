"""Choosing pivots: which training inputs span a reduced feature map (Section 5.3).

All methods factorise K ~= G G^T column by column, K the kernel matrix of all training positions, and keep
d = diag(K) - diag(G G^T), what is left at each position. They differ in which position comes next:

    greedy    the largest d: incomplete Cholesky, the rule of the paper
    random    drawn with probability ~ d: randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), in
              blocks of proposals that are accepted or rejected so that the outcome is distributed as if
              drawn one by one (Epperly, Tropp, Webber 2024)
    uniform   any, with equal probability
    kmeans    the position nearest to the middle of each of M clusters, large clusters first

The last two are the usual baselines: they do not look at what is left.

All heavy work is matrix products over blocks of columns, and threads share the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.linalg import lapack, solve_triangular

from .dataset import Inputs
from .errors import ConfigError, NumericError
from .kernels import Kernel, Pivots, gram
from .parallel import Workers, ranges

DEFAULT_SIZE = 1000
ROWS_PER_TASK = 2048
GREEDY_BLOCK = 48
RANDOM_BLOCK = 160
KMEANS_PIVOTS, KMEANS_ROUNDS = 200, 5

# Pivots that a basis grows from: a part of those it may have, at most so many.
FIRST_SHARE, FIRST_PIVOTS = 8, 250

# A pivot whose residual is a smaller part of the mean diagonal than this adds rounding, not information.
FLOORS = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-11}

# The kernel matrix of `full` is factorised in memory, in double precision.
FULL_LIMIT = 20_000


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


def choose_pivots(
    method: str,
    inputs: Inputs,
    kernel: Kernel,
    size: int,
    rng: np.random.Generator,
    workers: Workers,
    dtype: np.dtype | type = np.float32,
    progress: Callable[[int, int], None] | None = None,
    residual: float = 0.0,
) -> Basis:
    """Up to `size` pivots by a method of `METHODS`.

    Fewer where the kernel's rank is reached before, or where no more than the part `residual` of the trace is left.
    """
    if method not in METHODS:
        raise ConfigError(f"unknown method '{method}' to choose pivots (one of {', '.join(METHODS)})")
    factor = _Factorisation(inputs, kernel, min(size, len(inputs)), workers, np.dtype(dtype), progress, residual)
    METHODS[method](factor, rng)
    if not factor.chosen:
        raise NumericError("the kernel is zero at every position, so there is nothing to choose pivots from")
    return factor.basis()


class _Factorisation:
    """G, d and what was chosen so far."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        size: int,
        workers: Workers,
        dtype: np.dtype,
        progress: Callable[[int, int], None] | None,
        enough: float = 0.0,
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, dtype
        self._enough = enough  # part of the trace that may be left
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N] d
        self.floor = FLOORS[dtype] * float(self.diagonal.mean())
        # [N, size], filled column by column. Rows are contiguous: each task works on rows of its own.
        self.G = np.empty((len(inputs), size), dtype=dtype)
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self._tasks = ranges(len(inputs), ROWS_PER_TASK)
        self._progress = progress

    def done(self) -> bool:
        return len(self.chosen) >= self.size or self.curve[-1] <= self._enough * self.curve[0]

    def residual_columns(self, rows: np.ndarray) -> np.ndarray:
        """Columns of K - G G^T at the given positions, [N, b]."""
        m = len(self.chosen)
        pivots = Pivots(self.inputs.take(rows), self.kernel, self.dtype)
        mine = self.G[rows, :m]  # [b, m]
        out = np.empty((len(self.inputs), len(rows)), dtype=self.dtype)

        def task(part: slice) -> None:
            pivots.gram(self.inputs.take(part), out[part])
            if m:
                out[part] -= self.G[part, :m] @ mine.T

        self.workers.run(task, self._tasks)
        return out

    def residual_block(self, rows: np.ndarray) -> np.ndarray:
        """(K - G G^T) among the given positions, [b, b] in double precision."""
        part = self.inputs.take(rows)
        mine = self.G[rows, : len(self.chosen)].astype(np.float64)
        return gram(self.kernel, part, part) - mine @ mine.T

    def append(self, rows: list[int], columns: np.ndarray, triangle: np.ndarray) -> None:
        """Take `rows` as pivots: their residual columns [N, b] and the Cholesky factor [b, b] among them."""
        m, b = len(self.chosen), len(rows)
        inverse = solve_triangular(triangle, np.eye(b), lower=True).T.astype(self.dtype)
        gains = np.empty((len(self._tasks), b))

        def task(numbered: tuple[int, slice]) -> None:
            number, part = numbered
            new = columns[part] @ inverse
            self.G[part, m : m + b] = new
            squares = np.square(new, dtype=np.float64)
            self.residual[part] -= squares.sum(axis=1)
            gains[number] = squares.sum(axis=0)

        self.workers.run(task, enumerate(self._tasks))
        self.chosen.extend(rows)
        self.residual[self.chosen] = 0.0
        np.maximum(self.residual, 0.0, out=self.residual)
        for gain in gains.sum(axis=0):
            self.curve.append(max(self.curve[-1] - float(gain), 0.0))
        if self._progress is not None:
            self._progress(len(self.chosen), self.size)

    def basis(self) -> Basis:
        """What was chosen, less pivots that are a mixture of others as double precision sees it."""
        rows = np.array(self.chosen, dtype=np.int64)
        part = self.inputs.take(rows)
        kept = _independent(gram(self.kernel, part, part), self.floor)
        # The last block may have brought more than it takes to leave no more than enough.
        needed = int(np.searchsorted(-np.array(self.curve), -self._enough * self.curve[0]))
        kept = kept[kept < needed]
        residual = self.residual + np.square(self.G[:, needed : len(rows)], dtype=np.float64).sum(axis=1)
        gains = -np.diff(self.curve)[kept]
        curve = self.curve[0] - np.concatenate([[0.0], np.cumsum(gains)])
        return Basis(rows[kept], residual, self.curve[0], curve)


def _independent(K: np.ndarray, floor: float) -> np.ndarray:
    """Rows of a kernel matrix that are no mixture of the rows before them."""
    triangle, info = lapack.dpotrf(K, lower=1, clean=1)
    if info == 0 and (np.diagonal(triangle) ** 2 > floor).all():
        return np.arange(len(K))
    kept: list[int] = []
    G = np.zeros_like(K)  # [M, kept]
    for i in range(len(K)):
        column = K[:, i] - G[:, : len(kept)] @ G[i, : len(kept)]
        if column[i] > floor:
            G[:, len(kept)] = column / np.sqrt(column[i])
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def _greedy(factor: _Factorisation, rng: np.random.Generator) -> None:
    """The largest residual next.

    The residual columns of the likeliest next pivots are worked out together. As long as the largest
    residual is one of theirs it is taken, which makes the order exactly that of one at a time.
    """
    while not factor.done():
        room = factor.size - len(factor.chosen)
        count = min(GREEDY_BLOCK, len(factor.residual))
        candidates = np.argsort(-factor.residual, kind="stable")[:count]  # of equals the first, as argmax does
        columns = factor.residual_columns(candidates)
        place = {int(row): k for k, row in enumerate(candidates)}
        residual = factor.residual.copy()
        panel = np.empty((len(residual), 0))
        taken: list[int] = []
        while len(taken) < room:
            best = int(np.argmax(residual))
            if residual[best] <= factor.floor or best not in place:
                break
            column = columns[:, place[best]].astype(np.float64) - panel @ panel[best]
            if column[best] <= factor.floor:  # rounding had hidden that nothing is left
                residual[best] = factor.residual[best] = 0.0
                continue
            column /= np.sqrt(column[best])
            panel = np.column_stack([panel, column])
            residual -= column * column
            residual[best] = 0.0
            taken.append(best)
        if not taken:
            if factor.residual.max(initial=0.0) <= factor.floor:
                return
            continue
        triangle = np.tril(panel[taken])  # rows of the panel at the pivots are its Cholesky factor
        factor.append(taken, columns[:, [place[row] for row in taken]], triangle)


def _random(factor: _Factorisation, rng: np.random.Generator) -> None:
    """Positions drawn with probability proportional to the residual, in blocks with rejection."""
    while not factor.done():
        open_rows = np.flatnonzero(factor.residual > factor.floor)
        if not len(open_rows):
            return
        d = factor.residual[open_rows]
        block = min(RANDOM_BLOCK, max(8, factor.size // 10))
        proposals = open_rows[rng.choice(len(open_rows), block, p=d / d.sum())]
        _take(factor, proposals, rng.random(block))


def _uniform(factor: _Factorisation, rng: np.random.Generator) -> None:
    """Positions in any order; those that add nothing are passed over."""
    _take_in_order(factor, rng.permutation(len(factor.inputs)))


def _kmeans(factor: _Factorisation, rng: np.random.Generator) -> None:
    """Medoids of clusters in the kernel's feature space, which a few pivots stand for."""
    N, workers = len(factor.inputs), factor.workers
    small = _Factorisation(factor.inputs, factor.kernel, min(KMEANS_PIVOTS, N), workers, factor.dtype, None)
    _random(small, rng)
    phi = small.G[:, : len(small.chosen)]  # [N, m]
    clusters = min(factor.size, N)
    centres = phi[rng.choice(N, clusters, replace=False)].astype(np.float64)
    nearest, distance = np.empty(N, dtype=np.int64), np.empty(N)
    for _ in range(KMEANS_ROUNDS):
        halves, transposed = np.square(centres).sum(axis=1) / 2, centres.T.astype(phi.dtype)

        def task(part: slice, halves: np.ndarray = halves, transposed: np.ndarray = transposed) -> None:
            scores = phi[part] @ transposed - halves.astype(phi.dtype)
            nearest[part] = scores.argmax(axis=1)
            distance[part] = -scores.max(axis=1) + np.square(phi[part], dtype=np.float64).sum(axis=1) / 2

        workers.run(task, ranges(N, ROWS_PER_TASK))
        counts = np.bincount(nearest, minlength=clusters)
        filled = counts > 0
        members = scipy.sparse.csr_array((np.ones(N), (nearest, np.arange(N))), shape=(clusters, N))
        centres[filled] = (members @ phi.astype(np.float64))[filled] / counts[filled, None]
    order = np.lexsort((distance, nearest))
    medoids = order[np.concatenate([[0], np.flatnonzero(np.diff(nearest[order])) + 1])]
    _take_in_order(factor, medoids[np.argsort(-counts[nearest[medoids]], kind="stable")])


def _take_in_order(factor: _Factorisation, rows: np.ndarray) -> None:
    for part in ranges(len(rows), RANDOM_BLOCK):
        if factor.done():
            return
        block = rows[part]
        block = block[factor.residual[block] > factor.floor]
        if len(block):
            _take(factor, block, np.zeros(len(block)))


def _take(factor: _Factorisation, proposals: np.ndarray, chances: np.ndarray) -> None:
    accepted, triangle = _accept(factor, proposals, chances)
    if accepted:
        factor.append(accepted, factor.residual_columns(np.array(accepted)), triangle)


def _accept(factor: _Factorisation, proposals: np.ndarray, chances: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Go through proposals in order; keep each that has more than its chance of the residual when it was drawn."""
    H = factor.residual_block(proposals)
    drawn = factor.residual[proposals]
    L = np.zeros_like(H)
    kept: list[int] = []  # places among the proposals
    room = factor.size - len(factor.chosen)
    for i in range(len(proposals)):
        now = H[i, i] - L[i, : len(kept)] @ L[i, : len(kept)]
        if now <= factor.floor:  # rounding had hidden that nothing is left: it must not be drawn again
            factor.residual[proposals[i]] = 0.0
        elif chances[i] * drawn[i] < now:
            k = len(kept)
            L[i:, k] = (H[i:, i] - L[i:, :k] @ L[i, :k]) / np.sqrt(now)
            kept.append(i)
            if len(kept) == room:
                break
    return [int(proposals[i]) for i in kept], L[kept, : len(kept)]


METHODS = {"random": _random, "greedy": _greedy, "uniform": _uniform, "kmeans": _kmeans}


class GrowingBasis(_Factorisation):
    """Random pivots to begin with, and room for more that are chosen by what training finds (see `growth`)."""

    @property
    def first(self) -> int:
        """Pivots to grow from."""
        return max(min(FIRST_PIVOTS, self.size // FIRST_SHARE), 1)

    def begin(self, count: int, rng: np.random.Generator) -> None:
        """Take `count` pivots, as `random` does."""
        whole, self.size = self.size, min(count, self.size)
        _random(self, rng)
        self.size = whole
        if not self.chosen:
            raise NumericError("the kernel is zero at every position, so there is nothing to choose pivots from")

    def cut_back(self, count: int) -> None:
        """Keep the first `count` pivots only."""
        for part in self._tasks:
            self.residual[part] += np.square(self.G[part, count : len(self.chosen)], dtype=np.float64).sum(axis=1)
        del self.chosen[count:], self.curve[count + 1 :]

    def open_rows(self) -> np.ndarray:
        """Positions that would add something."""
        return np.flatnonzero(self.residual > self.floor)

    def residual_products(self, rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """Rows of K - G G^T at the given positions times errors [N, C]: [b, C] in double precision."""
        m = len(self.chosen)
        pivots = Pivots(self.inputs.take(rows), self.kernel, self.dtype)
        errors = errors.astype(self.dtype, copy=False)

        def task(part: slice) -> tuple[np.ndarray, np.ndarray]:
            return pivots.gram(self.inputs.take(part)).T @ errors[part], self.G[part, :m].T @ errors[part]

        whole, inside = np.zeros((len(rows), errors.shape[1])), np.zeros((m, errors.shape[1]))
        for product, reached in self.workers.map(task, self._tasks):
            whole += product
            inside += reached
        return whole - self.G[rows, :m].astype(np.float64) @ inside


def full_basis(inputs: Inputs, kernel: Kernel, dtype: np.dtype | type = np.float64) -> Basis:
    """Every distinct input as a pivot, as far as the kernel's rank goes (Corollary 8: nothing is lost)."""
    rows, group = inputs.distinct()
    if len(rows) > FULL_LIMIT:
        raise ConfigError(
            f"map 'full' would need {len(rows):,} pivots (at most {FULL_LIMIT:,}); use 'reduced' with a size"
        )
    part = inputs.take(rows)
    K = gram(kernel, part, part)
    diagonal = np.diagonal(K).copy()
    floor = FLOORS[np.dtype(dtype)] * float(diagonal.mean())
    factor, order, rank, info = lapack.dpstrf(K, tol=floor, lower=1, overwrite_a=1)
    if info < 0 or rank == 0 or not diagonal.any():
        raise NumericError("the kernel is zero at every position, so there is nothing to choose pivots from")
    order = order - 1
    squares = np.tril(factor)[:, :rank] ** 2  # of Phi, rows in the order of pivots
    residual = np.empty(len(rows))
    residual[order] = np.maximum(diagonal[order] - squares.sum(axis=1), 0.0)
    residual[order[:rank]] = 0.0
    counts = np.bincount(group)
    total = float(counts @ diagonal)
    curve = np.maximum(total - np.concatenate([[0.0], np.cumsum(counts[order] @ squares)]), 0.0)
    return Basis(rows[order[:rank]], residual[group], total, curve)
