"""Conjugate gradients, and their preconditioner: an approximate inverse Hessian at one point, by blocks.

The first columns of a reduced map hold most of the curvature: for m of them the block of (30) is inverted label by
label (`ThreadBlocks.leading`). The other columns have the diagonal of the mean, transitions their own block. Newton
steps to a gap of 1e-4 on OCR (poly-2, 500 pivots) need 209 products where a diagonal needs 535.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...chains import MappedClique
from ...system import linear_algebra
from .. import HessianBlocks, Objective, Vector, Vectors
from .run import Run

MOST_STEPS = 200  # of conjugate gradients
MOST_COLUMNS = 300
# The blocks are to cost about two passes: m^2 q / (4 D) <= 2, with a part q of about 2 / C of the variances left.
PASSES_TO_BUILD = 2
SMALLEST_VARIANCE = 0.003  # of labels: positions below it are left out of the blocks
REBUILD = 0.25  # blocks are built anew when the variance of labels has changed by this part


class LeadingColumns:
    """Phi[:, :m] of each node term with a reduced map, and the blocks on them, kept from one metric to the next."""

    def __init__(self, objective: Objective, run: Run):
        self._columns: dict[int, object] = {}  # by the number of their term
        self._inverses: dict[int, np.ndarray] = {}  # likewise, [C, m, m]
        self._variance_share = 0.0  # when those were built
        for j in objective.mapped:
            term = objective.terms[j]
            if isinstance(term.clique, MappedClique) and term.clique.axes == 1 and term.nested:
                wanted = np.sqrt(4 * PASSES_TO_BUILD * term.rows * max(1, term.columns / 2))
                m = int(min(term.rows, MOST_COLUMNS, wanted))
                self._columns[j] = objective.engine.leading_columns(j, m)
                run.add_operations(objective, objective.problem.positions * m * m)

    def inverses(self, blocks: HessianBlocks, run: Run) -> dict[int, np.ndarray]:
        """Return inverse blocks of each term, built anew where variances have changed much since the last time."""
        if not self._inverses or abs(blocks.variance_share - self._variance_share) > REBUILD * self._variance_share:
            self._variance_share = blocks.variance_share
            for j, columns in self._columns.items():
                self._inverses[j], operations = blocks.leading(j, columns, SMALLEST_VARIANCE)
                run.add_operations(blocks.objective, operations)
        return dict(self._inverses)


class BlockMetric:
    """An approximate inverse Hessian of P at one point."""

    def __init__(self, blocks: HessianBlocks, columns: LeadingColumns, run: Run):
        objective = blocks.objective
        prior = np.repeat(1 / objective.sigma2, [part.stop - part.start for part in objective.blocks])
        # [size] the diagonal at zero, less the variance that has vanished since
        diagonal = blocks.variance_share * (objective.initial_curvature() - prior) + prior
        self._inverses = columns.inverses(blocks, run)  # by the number of their term, [C, m, m]
        self._vectors, self._factors = objective.vectors, {}  # of small blocks that are matrices, likewise
        for j, (part, term) in enumerate(zip(objective.blocks, objective.terms, strict=True)):
            if not term.clique.mapped:
                block = blocks.small(j)
                if block.ndim == 2:
                    self._factors[j] = linear_algebra.cho_factor(block)
                else:
                    diagonal[part] = block
        self._diagonal = self._vectors.from_array(diagonal)
        self._parts = [self._vectors.of_block(j) for j in range(len(objective.terms))]

    def __call__(self, vector: Vector) -> Vector:
        """Multiply it by a vector like theta."""
        out = self._vectors.zeros()
        for j in range(len(self._parts)):
            self._vectors.put(out, j, self.of_term(j, self._vectors.take(vector, j)))
        return out

    def of_term(self, term: int, block: Vector) -> Vector:
        """Multiply the block of one term by a block of a vector."""
        vectors = self._parts[term]
        if term in self._factors:
            return vectors.from_array(linear_algebra.cho_solve(self._factors[term], vectors.to_array(block)))
        out = vectors.quotient(block, self._vectors.take(self._diagonal, term))
        if term in self._inverses:
            vectors.multiply_columns(out, block, 0, self._inverses[term])
        return out


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    right: Vector,
    precondition: Callable[[Vector], Vector],
    forcing: float,
    vectors: Vectors,
) -> Vector:
    """Return x with |A x - right| <= forcing |right| in the norm of the preconditioner, A positive definite.

    From zero every iterate x has x.right > 0: as a step for right = -gradient it goes downhill. Where A curves the
    wrong way along a direction, it ends with what it has, or with that direction if it has nothing.
    """
    solution = vectors.zeros()
    residual = vectors.copy(right)
    scaled = precondition(residual)
    search = vectors.copy(scaled)
    size = vectors.dot(residual, scaled)
    enough = forcing**2 * size
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = product(search)
        curvature = vectors.dot(search, image)
        if curvature <= 0:
            return search if vectors.is_zero(solution) else solution
        step = size / curvature
        vectors.add_scaled(solution, step, search)
        vectors.add_scaled(residual, -step, image)
        scaled = precondition(residual)
        before, size = size, vectors.dot(residual, scaled)
        search = vectors.stepped(scaled, size / before, search)
    return solution
