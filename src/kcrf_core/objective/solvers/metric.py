"""Conjugate gradients, and their preconditioner: an approximate inverse Hessian at one point, by blocks.

The first columns of a reduced map hold most of the curvature. On them the block of (30) is taken for the matrix that
`initial_inverse` has, v Phi^T Phi + I / sigma^2, with Phi^T Phi from a sample of positions, and v the mean variance of
labels at the point: a diagonal in the eigenvectors of Phi^T Phi. The other columns have the diagonal of the mean,
transitions their own block.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...system import linear_algebra
from .. import HessianBlocks, Objective, Vector, Vectors
from .initial_inverse import POSITIONS_PER_COLUMN
from .run import Run

MOST_STEPS = 200  # of conjugate gradients
MOST_COLUMNS = 300
OPERATIONS_FOR_EIGENVECTORS = 9  # of a matrix [m, m], times m^3


def leading_columns(objective: Objective, run: Run) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return eigenvalues [m] and eigenvectors [m, m] of Phi^T Phi, for the first m columns of each reduced map.

    They are by the number of the map's term.
    """
    columns = {}
    for j in objective.mapped:
        term = objective.terms[j]
        if term.nested:
            m = min(term.rows, MOST_COLUMNS)
            gram = objective.engine.leading_gram(j, m, POSITIONS_PER_COLUMN * m)
            columns[j] = linear_algebra.eigh(gram, overwrite_a=True, check_finite=False)
            run.add_operations(objective, (OPERATIONS_FOR_EIGENVECTORS + 4 * POSITIONS_PER_COLUMN) * m**3)
    return columns


class BlockMetric:
    """An approximate inverse Hessian of P at one point."""

    def __init__(self, blocks: HessianBlocks, columns: dict[int, tuple[np.ndarray, np.ndarray]]):
        objective = self._objective = blocks.objective
        prior = np.repeat(1 / objective.sigma2, [part.stop - part.start for part in objective.blocks])
        # [size] the diagonal at zero, less the variance that has vanished since
        diagonal = blocks.variance_share * (objective.initial_curvature() - prior) + prior
        self._factors, self._rotations = {}, {}  # of small blocks that are matrices, and of leading columns, by term
        for j, (part, term) in enumerate(zip(objective.blocks, objective.terms, strict=True)):
            if j in columns:
                eigenvalues, eigenvectors = columns[j]
                squares = blocks.variance_share * np.maximum(eigenvalues, 0.0)
                curvature = np.repeat(objective.curvature_at_zero(j, squares), term.columns)
                diagonal[part][: len(curvature)] = curvature
                self._rotations[j] = eigenvectors.T, eigenvectors
            elif not term.clique.mapped:
                block = blocks.small(j)
                if block.ndim == 2:
                    self._factors[j] = linear_algebra.cho_factor(block)
                else:
                    diagonal[part] = block
        self._diagonal = objective.vectors.from_array(diagonal)
        self._parts = [objective.vectors.of_block(j) for j in range(len(objective.terms))]

    def __call__(self, vector: Vector) -> Vector:
        """Multiply it by a vector like theta."""
        vectors = self._objective.vectors
        out = vectors.zeros()
        for j in range(len(self._parts)):
            vectors.put(out, j, self.of_term(j, vectors.take(vector, j)))
        return out

    def of_term(self, term: int, block: Vector) -> Vector:
        """Multiply the block of one term by a block of a vector."""
        vectors, diagonal = self._parts[term], self._objective.vectors.take(self._diagonal, term)
        if term in self._factors:
            return vectors.from_array(linear_algebra.cho_solve(self._factors[term], vectors.to_array(block)))
        if term not in self._rotations:
            return vectors.quotient(block, diagonal)
        (forward, backward), width = self._rotations[term], self._objective.terms[term].columns
        rotated = vectors.copy(block)
        vectors.multiply_rows(rotated, block, 0, forward, width)
        out = vectors.quotient(rotated, diagonal)
        vectors.multiply_rows(out, out, 0, backward, width)
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
