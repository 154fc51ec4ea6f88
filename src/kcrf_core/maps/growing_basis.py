"""A basis to which pivots are added by what a model still gets wrong.

With m_t = w (p_t - e_{y_t}) the errors of a fit and r = k - <Phi, Phi> what the pivots leave of the kernel, a new pivot
x_c lowers P by at most (Corollary 10 for one direction, the residual of x_c, of squared length d_c = r(x_c, x_c))

    (sigma^2 / 2) |sum_t m_t r(x_t, x_c)|^2 / d_c.

Candidates are drawn with probability ~ d_t |m_t|^2, their bounds are worked out exactly, and the best are taken one
after the other, each time with what it explains taken off the others.

The factorisation lives only while pivots are added: meanwhile its memory is left to the fits, and it costs less to
work it out again, as the number of pivots about doubles each time.
"""

from __future__ import annotations

import numpy as np

from ..errors import NumericError
from ..kernels import Inputs, Kernel
from ..system import Workers, linear_algebra, ranges
from . import METHODS
from .factorisation import Basis, Candidates, Factorisation

# The first pivots, drawn at random: a part of those that there may be, at most so many.
FIRST_SHARE, FIRST_PIVOTS = 8, 250
# New pivots at a time, at least and at most, and candidates for each of them.
FEWEST, MOST, CANDIDATES = 8, 500, 4


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
        if not factor.chosen:
            raise NumericError("the kernel is zero at every position, so there is nothing to choose pivots from")
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
        """Add about `count` pivots by errors m [N, C]; how many it was, 0 where none would add anything."""
        count = min(max(count, FEWEST), MOST, self.size - len(self))
        before, factor = len(self), self.factorised(len(self) + count)
        if not _take_best(factor, errors, count, self._rng):
            self._exhausted = True
            return 0
        self.basis = factor.basis()
        self._blocks.append(self.basis.rows[before:])
        return len(self) - before

    def factorised(self, size: int) -> Factorisation:
        """The factorisation of the pivots so far, with room for `size`."""
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
    """sum_t m_t r(x_t, x_c) for errors m [N, C] and each candidate: [b, C], summed in double precision."""
    whole, inside = factor.error_products(candidates, errors.astype(factor.dtype, copy=False))
    return whole - factor.backend.numpy(candidates.mine) @ inside


def best_of_block(
    residual: np.ndarray,  # [b, b] r among candidates
    gradients: np.ndarray,  # [b, C] sum_t m_t r(x_t, x_c)
    count: int,
    floor: float,
) -> tuple[list[int], np.ndarray]:
    """Places of up to `count` candidates, the largest |gradient|^2 / d next, and their Cholesky factor.

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
