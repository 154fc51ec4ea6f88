"""Choice of pivots, the training inputs that span a reduced feature map (Section 5.3).

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

import numpy as np

from ..errors import ConfigError, NumericError
from ..kernels import Inputs, Kernel, gram
from ..system import Workers, linear_algebra, ranges
from . import METHODS
from .factorisation import FLOORS, Basis, Factorisation

# Where no number of pivots is given: as many as are chosen in about half a minute, N M^2 operations, and no more than
# it takes to leave a small part of the trace.
FEWEST_PIVOTS, MOST_PIVOTS, SELECTION_WORK = 500, 2000, 1e12
LITTLE_LEFT = 1e-4

GREEDY_BLOCK = 48
RANDOM_BLOCK = 160
KMEANS_PIVOTS, KMEANS_ROUNDS = 200, 5

# The kernel matrix of `full` is factorised in memory, in double precision.
FULL_LIMIT = 20_000


def automatic_size(positions: int) -> int:
    """Return the most pivots to choose where no number is given."""
    affordable = int((SELECTION_WORK / max(positions, 1)) ** 0.5)
    return min(max(affordable, FEWEST_PIVOTS), MOST_PIVOTS, positions)


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
    """Choose up to `size` pivots by a method of `METHODS`.

    Fewer where the kernel's rank is reached before, or where no more than the part `residual` of the trace is left.
    """
    if method not in METHODS:
        raise ConfigError(f"unknown method '{method}' to choose pivots (one of {', '.join(METHODS)})")
    factor = Factorisation(inputs, kernel, min(size, len(inputs)), workers, np.dtype(dtype), progress, residual)
    METHODS[method](factor, rng)
    if not factor.chosen:
        raise NumericError("the kernel is zero at every position, so there is nothing to choose pivots from")
    return factor.basis()


def greedy_pivots(factor: Factorisation, rng: np.random.Generator) -> None:
    """Take the largest residual next.

    The residual columns of the likeliest next pivots are computed together. As long as the largest residual is one of
    theirs it is taken, which makes the order exactly that of one at a time.
    """
    while not factor.done():
        room = factor.size - len(factor.chosen)
        count = min(GREEDY_BLOCK, len(factor.residual))
        rows = np.argsort(-factor.residual, kind="stable")[:count]  # of equals the first, as argmax does
        candidates = factor.candidates(rows)
        known = factor.columns(candidates)
        values = factor.backend.numpy(known[1])  # [N, count]
        place = {int(row): k for k, row in enumerate(rows)}
        residual = factor.residual.copy()
        panel = np.empty((len(residual), count))
        taken: list[int] = []
        while len(taken) < room:
            best = int(np.argmax(residual))
            if residual[best] <= factor.floor or best not in place:
                break
            before = panel[:, : len(taken)]
            column = values[:, place[best]].astype(np.float64) - before @ before[best]
            if column[best] <= factor.floor:  # rounding had hidden that nothing is left
                residual[best] = factor.residual[best] = 0.0
                continue
            column /= np.sqrt(column[best])
            panel[:, len(taken)] = column
            residual -= column * column
            residual[best] = 0.0
            taken.append(best)
        if not taken:
            if factor.residual.max(initial=0.0) <= factor.floor:
                return
            continue
        picked = np.array([place[row] for row in taken])
        triangle = np.tril(panel[taken, : len(taken)])  # rows of the panel at the pivots are its Cholesky factor
        factor.append(candidates, triangle, picked, known)


def random_pivots(factor: Factorisation, rng: np.random.Generator) -> None:
    """Draw positions with probability proportional to the residual, in blocks with rejection."""
    while not factor.done():
        open_rows = np.flatnonzero(factor.residual > factor.floor)
        if not len(open_rows):
            return
        d = factor.residual[open_rows]
        block = min(RANDOM_BLOCK, max(8, factor.size // 10))
        proposals = open_rows[rng.choice(len(open_rows), block, p=d / d.sum())]
        _take(factor, proposals, rng.random(block))


def uniform_pivots(factor: Factorisation, rng: np.random.Generator) -> None:
    """Take positions in random order; those that add nothing are passed over."""
    _take_in_order(factor, rng.permutation(len(factor.inputs)))


def kmeans_pivots(factor: Factorisation, rng: np.random.Generator) -> None:
    """Take the medoids of clusters in the kernel's feature space, which a few pivots approximate."""
    N = len(factor.inputs)
    size = min(KMEANS_PIVOTS, N)
    few = Factorisation(factor.inputs, factor.kernel, size, factor.workers, factor.dtype, on_threads=True)
    random_pivots(few, rng)
    nearest, distance = _clusters(few, rng.choice(N, min(factor.size, N), replace=False))
    del few  # its rows of G make room for those of the factorisation
    counts = np.bincount(nearest)
    order = np.lexsort((distance, nearest))
    medoids = order[np.concatenate([[0], np.flatnonzero(np.diff(nearest[order])) + 1])]
    _take_in_order(factor, medoids[np.argsort(-counts[nearest[medoids]], kind="stable")])


def _clusters(few: Factorisation, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each position's cluster and distance to its centre, by Lloyd's rounds from the positions `first`."""
    N, m, clusters = len(few.inputs), len(few.chosen), len(first)
    centres = np.empty((clusters, m))
    for part in few.tasks:
        mine = np.flatnonzero((first >= part.start) & (first < part.stop))
        if len(mine):
            centres[mine] = few.rows(part)[first[mine] - part.start]
    nearest, distance = np.empty(N, dtype=np.int64), np.empty(N)
    for _ in range(KMEANS_ROUNDS):
        halves, transposed = (np.square(centres).sum(axis=1) / 2).astype(few.dtype), centres.T.astype(few.dtype)

        def task(
            part: slice, halves: np.ndarray = halves, transposed: np.ndarray = transposed
        ) -> tuple[np.ndarray, np.ndarray]:
            phi = few.rows(part)
            scores = phi @ transposed - halves
            nearest[part] = scores.argmax(axis=1)
            distance[part] = -scores.max(axis=1) + np.square(phi, dtype=np.float64).sum(axis=1) / 2
            order = np.argsort(nearest[part], kind="stable")
            present, begin = np.unique(nearest[part][order], return_index=True)
            return present, np.add.reduceat(phi[order].astype(np.float64), begin)

        sums = np.zeros_like(centres)
        for present, part_sums in few.workers.map(task, few.tasks):
            sums[present] += part_sums
        counts = np.bincount(nearest, minlength=clusters)
        filled = counts > 0
        centres[filled] = sums[filled] / counts[filled, None]
    return nearest, distance


def _take_in_order(factor: Factorisation, rows: np.ndarray) -> None:
    for part in ranges(len(rows), RANDOM_BLOCK):
        if factor.done():
            return
        block = rows[part]
        block = block[factor.residual[block] > factor.floor]
        if len(block):
            _take(factor, block, np.zeros(len(block)))


def _take(factor: Factorisation, proposals: np.ndarray, draws: np.ndarray) -> None:
    """Go through proposals in order; keep each if its residual is more than `draws` times that when it was drawn."""
    candidates = factor.candidates(proposals)
    left, drawn = candidates.left, factor.residual[proposals]
    L = np.zeros_like(left)
    kept: list[int] = []  # places among the proposals
    room = factor.size - len(factor.chosen)
    for i in range(len(proposals)):
        now = left[i, i] - L[i, : len(kept)] @ L[i, : len(kept)]
        if now <= factor.floor:  # rounding had hidden that nothing is left: it must not be drawn again
            factor.residual[proposals[i]] = 0.0
        elif draws[i] * drawn[i] < now:
            k = len(kept)
            L[i:, k] = (left[i:, i] - L[i:, :k] @ L[i, :k]) / np.sqrt(now)
            kept.append(i)
            if len(kept) == room:
                break
    if kept:
        factor.append(candidates.take(np.array(kept)), L[kept, : len(kept)])


def full_basis(inputs: Inputs, kernel: Kernel) -> Basis:
    """Take every distinct input as a pivot, up to the kernel's rank (Corollary 8: nothing is lost).

    The rank is that in double precision, whatever the precision of passes: the map stands for the whole space.
    """
    rows, group = inputs.distinct()
    if len(rows) > FULL_LIMIT:
        raise ConfigError(
            f"map 'full' would need {len(rows):,} pivots (at most {FULL_LIMIT:,}); use 'reduced' with a size"
        )
    part = inputs.take(rows)
    K = gram(kernel, part, part)
    diagonal = np.diagonal(K).copy()
    floor = FLOORS[np.dtype(np.float64)] * float(diagonal.mean())
    factor, order, rank, info = linear_algebra.lapack.dpstrf(K, tol=floor, lower=1, overwrite_a=1)
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
