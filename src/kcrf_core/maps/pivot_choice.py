"""Choice of pivots, the training inputs that span a reduced feature map (Section 5.3).

All methods factorise K ~= G G^T column by column, K the kernel matrix of all training positions, and keep
d = diag(K) - diag(G G^T), what is left at each position. They differ in which position comes next:

    greedy    the largest d: incomplete Cholesky, the rule of the paper
    random    drawn with probability ~ d: randomly pivoted Cholesky (Chen, Epperly, Tropp, Webber 2022), in
              blocks of proposals that are accepted or rejected so that the outcome is distributed as if
              drawn one by one (Epperly, Tropp, Webber 2024)

**A growing basis** gets pivots by what a model still gets wrong. With errors m_t and r = k - <Phi, Phi>, a new pivot
x_c lowers P by at most (sigma^2 / 2) |sum_t m_t r(x_t, x_c)|^2 / r(x_c, x_c) (Corollary 10 for one direction).
Candidates are drawn with probability ~ d_t |m_t|^2, and the best are taken one after the other, each time with what it
explains taken off the others. The factorisation lives only while pivots are added: its memory is left to the fits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import ConfigError
from ..kernels import Inputs, Kernel, gram
from ..system import Workers, linear_algebra, ranges
from . import METHODS
from .factorisation import FLOORS, Basis, Candidates, Factorisation, negative_count, without_pivots

# Where no number of pivots is given: as many as are chosen in about half a minute, N M^2 operations, and no more than
# it takes to leave a small part of the trace.
FEWEST_PIVOTS, MOST_PIVOTS, SELECTION_WORK = 500, 2000, 1e12
LITTLE_LEFT = 1e-4

GREEDY_BLOCK = 48
RANDOM_BLOCK = 160

# The kernel matrix of `full` is factorised in memory, in double precision.
FULL_LIMIT = 20_000

# The first pivots, drawn at random: a part of those that there may be, at most so many.
FIRST_SHARE, FIRST_PIVOTS = 8, 250
# New pivots at a time, at least and at most, and candidates for each of them.
FEWEST, MOST, CANDIDATES = 8, 500, 4


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
        raise without_pivots(diagonal)
    order = order - 1
    squares = np.tril(factor)[:, :rank] ** 2  # of Phi, rows in the order of pivots
    residual, explained = np.empty(len(rows)), squares.sum(axis=1)
    residual[order] = np.maximum(diagonal[order] - explained, 0.0)
    residual[order[:rank]] = 0.0
    counts = np.bincount(group)
    total = float(counts @ diagonal)
    curve = np.maximum(total - np.concatenate([[0.0], np.cumsum(counts[order] @ squares)]), 0.0)
    negative = negative_count(diagonal[order], explained, np.dtype(np.float64))
    return Basis(rows[order[:rank]], residual[group], total, curve, negative)


class GrowingBasis:
    """Pivots among the positions of some inputs, so far."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        size: int,  # pivots, at most
        rng: np.random.Generator,
        workers: Workers,
        dtype: np.dtype,
        residual: float = 0.0,  # part of the trace that may be left
        first: int | None = None,
    ):
        self.inputs, self.kernel, self.size = inputs, kernel, min(size, len(inputs))
        self._rng, self._workers, self._dtype, self._enough = rng, workers, dtype, residual
        first = max(min(FIRST_PIVOTS, self.size // FIRST_SHARE), 1) if first is None else first
        factor = self._factorisation(first)
        METHODS["random"](factor, rng)
        self._floor = factor.floor
        self.basis: Basis = factor.basis()
        self._blocks = [self.basis.rows]  # as they were added
        self._exhausted = False

    def _factorisation(self, size: int) -> Factorisation:
        return Factorisation(self.inputs, self.kernel, size, self._workers, self._dtype, None, self._enough)

    def __len__(self) -> int:
        return len(self.basis.rows)

    def has_room(self) -> bool:
        """True if there may be more pivots."""
        if self._exhausted or len(self) >= self.size or self.basis.curve[-1] <= self._enough * self.basis.curve[0]:
            return False
        return bool((self.basis.residual > self._floor).any())

    def add(self, errors: np.ndarray, count: int) -> int:
        """Add about `count` pivots by errors m [N, C]; return their number, 0 where none would add anything."""
        count = min(max(count, FEWEST), MOST, self.size - len(self))
        before, factor = len(self), self.factorised(len(self) + count)
        if not _take_best(factor, errors, count, self._rng):
            self._exhausted = True
            return 0
        self.basis = factor.basis()
        self._blocks.append(self.basis.rows[before:])
        return len(self) - before

    def factorised(self, size: int) -> Factorisation:
        """Return the factorisation of the pivots so far, with room for `size`."""
        factor = self._factorisation(size)
        for block in self._blocks:
            for part in ranges(len(block), MOST):
                candidates = factor.candidates(block[part])
                factor.append(candidates, linear_algebra.cholesky(candidates.left, lower=True))
        return factor


def _take_best(factor: Factorisation, errors: np.ndarray, count: int, rng: np.random.Generator) -> int:
    squares = np.square(errors, dtype=np.float64).sum(axis=1)  # [N]
    while True:
        rows = np.flatnonzero(factor.residual > factor.floor)
        weights = factor.residual[rows] * squares[rows]
        total = weights.sum()
        if not total > 0:  # nothing is left, or no error where something is
            return 0
        drawn = np.unique(rows[rng.choice(len(rows), CANDIDATES * count, p=weights / total)])
        candidates = factor.candidates(drawn)
        hidden = np.diagonal(candidates.left) <= factor.floor  # rounding had hidden that nothing is left
        factor.residual[drawn[hidden]] = 0.0
        gradients = residual_products(factor, candidates, errors)
        places, triangle = best_of_block(candidates.left, gradients, count, factor.floor)
        if places:
            factor.append(candidates.take(np.array(places)), triangle)
            return len(places)


def residual_products(factor: Factorisation, candidates: Candidates, errors: np.ndarray) -> np.ndarray:
    """Return sum_t m_t r(x_t, x_c) of each candidate [b, C] for errors m [N, C], summed in double precision."""
    whole, inside = factor.error_products(candidates, errors.astype(factor.dtype, copy=False))
    return whole - factor.backend.numpy(candidates.mine) @ inside


def best_of_block(
    residual: np.ndarray,  # [b, b] r among candidates
    gradients: np.ndarray,  # [b, C] sum_t m_t r(x_t, x_c)
    count: int,
    floor: float,
) -> tuple[list[int], np.ndarray]:
    """Return places of up to `count` candidates, the largest |gradient|^2 / d next, and their Cholesky factor.

    What is taken is projected out of the others, so the sum of these bounds is the bound of all of them together.
    """
    d, g = np.diagonal(residual).copy(), gradients.copy()
    factor = np.zeros((len(d), min(count, len(d))))
    places: list[int] = []
    while len(places) < factor.shape[1]:
        bounds = np.where(d > floor, np.square(g).sum(axis=1) / np.maximum(d, floor), 0.0)
        best = int(bounds.argmax())
        if not bounds[best] > 0:
            break
        k, root = len(places), np.sqrt(d[best])
        column = (residual[:, best] - factor[:, :k] @ factor[best, :k]) / root
        factor[:, k] = column
        g -= np.outer(column, g[best] / root)
        d -= column * column
        places.append(best)
        d[places] = 0.0
    return places, np.tril(factor[places, : len(places)])
