"""Choosing pivots: which training inputs span a reduced feature map (Section 5.3).

Both methods factorise K ~= G G^T column by column, K the kernel matrix of all training positions, and keep
d = diag(K) - diag(G G^T), what is left at each position. They differ in which position comes next:

    greedy    the largest d: incomplete Cholesky, the rule of the paper
    random    drawn with probability ~ d: randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), in
              blocks of proposals that are accepted or rejected so that the outcome is distributed as if
              drawn one by one (Epperly, Tropp, Webber 2024)

All heavy work is matrix products over blocks of columns, and threads share the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

from .dataset import Inputs
from .errors import ConfigError, NumericError
from .kernels import Kernel, Pivots, gram
from .parallel import Workers, ranges

DEFAULT_SIZE = 1000
ROWS_PER_TASK = 2048
GREEDY_BLOCK = 48
RANDOM_BLOCK = 160

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
) -> Basis:
    """Up to `size` pivots by a method of `METHODS`; fewer where the kernel's rank is reached before."""
    if method not in METHODS:
        raise ConfigError(f"unknown method '{method}' to choose pivots (one of {', '.join(METHODS)})")
    factor = _Factorisation(inputs, kernel, min(size, len(inputs)), workers, np.dtype(dtype), progress)
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
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, dtype
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N] d
        self.floor = FLOORS[dtype] * float(self.diagonal.mean())
        # [N, size], filled column by column. Rows are contiguous: each task works on rows of its own.
        self.G = np.empty((len(inputs), size), dtype=dtype)
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self._tasks = ranges(len(inputs), ROWS_PER_TASK)
        self._progress = progress

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
        gains = -np.diff(self.curve)[kept]
        curve = self.curve[0] - np.concatenate([[0.0], np.cumsum(gains)])
        return Basis(rows[kept], self.residual, self.curve[0], curve)


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
    while len(factor.chosen) < factor.size:
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
    while len(factor.chosen) < factor.size:
        open_rows = np.flatnonzero(factor.residual > factor.floor)
        if not len(open_rows):
            return
        d = factor.residual[open_rows]
        block = min(RANDOM_BLOCK, max(8, factor.size // 10))
        proposals = open_rows[rng.choice(len(open_rows), block, p=d / d.sum())]
        accepted, triangle = _accept(factor, proposals, rng)
        if accepted:
            factor.append(accepted, factor.residual_columns(np.array(accepted)), triangle)


def _accept(factor: _Factorisation, proposals: np.ndarray, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """Go through proposals in order; keep each with probability (residual now) / (residual when drawn)."""
    H = factor.residual_block(proposals)
    drawn = factor.residual[proposals]
    chances = rng.random(len(proposals))
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


METHODS = {"greedy": _greedy, "random": _random}


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
