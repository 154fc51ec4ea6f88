"""The initial inverse Hessian of L-BFGS: only its direction counts.

It is diagonal for most maps. On the first m columns of a reduced map, which are correlated, it is a power of a matrix,
(v Phi^T Phi + I / sigma^2)^-p from a sample of positions (see `inverse_powers`). On real columns Phi^T diag(q) Phi
takes the place of v Phi^T Phi, q the variances of labels at a point, taken anew now and then; so is the diagonal. With
32 smooth columns and a window of five, passes to a gap of 1e-3 for sigma^2 of 0.5, 5 and 50, with a diagonal and with
this matrix: Fourier series 80, 291, 865 and 24, 30, 58; random walks 166, 449, 898 and 47, 58, 84.
"""

from __future__ import annotations

import numpy as np

from ...chains import LabelClique
from .. import OPERATIONS_PER_CUBE, Objective, ObjectiveTerm, Vector, Vectors
from .bundle import kept_dtype
from .run import Run

# Passes to a gap of 1e-3 by the power of the curvature, 0, 1/2 and 1: CoNLL-2000 184 (by Lemma 9 alone), 106 and 146;
# Helsinki prosody 106, 37 and 46; OCR with 1,500 pivots 91, 72 and 124. In between, frequent features are neither too
# slow nor so fast that the pairs cannot hold the rest. Where a matrix takes correlations away it can be more.
POWER, MATRIX_POWER = 0.5, 0.65

# The diagonal at a point is never taken for less than this part of that at zero.
LEAST_SHARE = 1e-3

# Beside preconditioned columns transitions go too fast by their curvature under uniform labels. By that of the pairs
# that training data has, times this, work to a gap of 1e-3 (uniform times 1 and 4 in brackets): OCR large, 1,000 pivots
# 74 (113, 76), OCR small 43 (51, 47), readings of a sensor with 4 labels, 125 pivots, 77 (63, 106).
# Without the matrix a factor does harm: CoNLL-2000 109 passes with 1, 164 with 4.
EDGES_BESIDE_MATRIX = 2

# The Gram matrix of m columns, from four times as many positions, and its power take so many m^3 operations. Where that
# is no more than a few passes for all columns the matrix saves a fifth of passes or more: OCR large, poly-3, gap of
# 1e-2, work with and without, 500 pivots 93 and 115, 1,000 68 and 99, 3,000 68 and 85. So many columns are
# preconditioned as take one pass: of 1,000 pivots on OCR 600 instead of all make 223 passes of 213.
MOST_COLUMNS, FEWEST_COLUMNS, POSITIONS_PER_COLUMN = 750, 20, 4
MATRIX_OPERATIONS = OPERATIONS_PER_CUBE + 4 * POSITIONS_PER_COLUMN
MOST_PASSES = 6

# Real columns depend on each other more than others do, so more positions tell of them and more passes are saved. What
# a few of them have to do with each other the pairs learn soon.
POSITIONS_PER_REAL, FEWEST_REAL, MOST_PASSES_FOR_REAL = 50, 8, 60


class Unsized:
    """A metric whose direction alone counts: its length comes from the last pair."""


class Diagonal(Unsized):
    """Division by a scale [size]."""

    def __init__(self, scale: np.ndarray, vectors: Vectors, dtype: np.dtype | type = np.float64):
        self._vectors = vectors
        inverse = np.divide(1.0, scale, out=np.empty(len(scale), dtype=dtype), casting="same_kind")
        self.inverse = vectors.from_array(inverse, dtype)

    def __call__(self, vector: Vector) -> Vector:
        return self._vectors.product(vector, self.inverse)


class Preconditioner(Unsized):
    """Division by a scale, but for symmetric matrices [m, m] in the place of some rows of some terms' weights.

    With each matrix comes where in its term's block those rows begin.
    """

    def __init__(self, rest: Diagonal, matrices: dict[int, tuple[int, np.ndarray]], objective: Objective):
        self._rest, self._matrices, self._vectors = rest, matrices, objective.vectors
        self._columns = {j: objective.terms[j].columns for j in matrices}

    def __call__(self, vector: Vector) -> Vector:
        out = self._rest(vector)
        for j, (first, matrix) in self._matrices.items():
            self._vectors.multiply_rows(out, vector, j, matrix, self._columns[j], first)
        return out


class InitialInverse:
    """Initial inverse Hessians of one objective, or of some columns of a `whole` one, which work is counted by."""

    def __init__(self, objective: Objective, run: Run, whole: Objective | None = None):
        self._objective, self._run, self._whole = objective, run, whole or objective
        self._nested = _leading_grams(objective)
        self._real = [j for j, term in enumerate(objective.terms) if _preconditions_real(term, objective)]
        # True if it depends on the point. Pivots have no such diagonal, and pairs of labels take too much memory. Fits
        # that choices are made by do the same on all engines.
        nodes = all(objective.terms[j].clique.axes == 1 and not objective.terms[j].nested for j in objective.mapped)
        self._looks = nodes and not self._real and run.proves
        self.moves = bool(self._real) or self._looks

    def at(self, theta: Vector) -> Diagonal | Preconditioner:
        """Return the matrix at a point; that at zero where it does not depend on the point."""
        objective, run = self._objective, self._run
        power = MATRIX_POWER if self._nested or self._real else POWER
        real, variance_share = self._real_grams(theta) if self._real else ({}, 1.0)
        looks = self._looks and not objective.vectors.is_zero(theta)
        scale = current_curvature(objective, theta, run) if looks else self._diagonal(variance_share)
        scale **= power
        if self._nested:
            for part, term in zip(objective.blocks, objective.terms, strict=True):
                if not term.clique.mapped:
                    scale[part] *= EDGES_BESIDE_MATRIX
        rest = Diagonal(scale, objective.vectors, kept_dtype(objective))
        matrices = {}
        for j, gram in self._nested.items():
            # Curvatures at zero are the squares of columns times a factor, and the prior's own.
            factor = objective.curvature_at_zero(j, variance_share) - objective.curvature_at_zero(j, 0.0)
            matrices[j] = 0, self._power(factor * gram, j, power)
        for j, gram in real.items():
            term = objective.terms[j]
            matrices[j] = term.size - term.real * term.columns, self._power(gram, j, power)
        return Preconditioner(rest, matrices, objective) if matrices else rest

    def _real_grams(self, theta: Vector) -> tuple[dict[int, np.ndarray], float]:
        """Return Gram matrices of real columns at a point, and the mean variance of labels: about half a pass."""
        objective, N = self._objective, self._objective.problem.positions
        sizes = {j: objective.terms[j].real for j in self._real}
        most = {j: min(POSITIONS_PER_REAL * size, N) for j, size in sizes.items()}
        operations = sum(most[j] * size**2 for j, size in sizes.items())
        self._run.add_operations(self._whole, 2 * N * objective.pass_size + operations)
        return objective.engine.real_grams(theta, most)

    def _diagonal(self, variance_share: float) -> np.ndarray:
        """Return an approximate diagonal of the Hessian: that at zero, less the variance that has vanished since."""
        objective = self._objective
        curvature = objective.initial_curvature()
        for part, term, variance in zip(objective.blocks, objective.terms, objective.sigma2, strict=True):
            labels = term.clique if isinstance(term.clique, LabelClique) else None
            if (self._nested or self._real) and labels is not None:
                better = labels.curvature_in_data(objective.problem, variance, ends=bool(self._real))
                curvature[part][: better.size] = better
            if variance_share != 1:
                curvature[part] = variance_share * (curvature[part] - 1 / variance) + 1 / variance
        return curvature

    def _power(self, curvature: np.ndarray, term: int, power: float) -> np.ndarray:
        """Return (curvature + I / sigma^2)^-power."""
        self._run.add_operations(self._whole, OPERATIONS_PER_CUBE * len(curvature) ** 3)
        return self._objective.engine.inverse_power(curvature, 1 / self._objective.sigma2[term], power)


def current_curvature(objective: Objective, theta: Vector, run: Run) -> np.ndarray:
    """Return the Hessian's diagonal at theta, at least a small share of that at zero: about a pass. For explicit maps.

    With a weak prior most labels become nearly certain, and their features hardly curve P any longer.
    """
    run.work += 1
    diagonal = objective.hessian_blocks(theta, diagonals=True).diagonal(kept_dtype(objective))
    for j, part in enumerate(objective.blocks):
        least = objective.initial_block(j, LEAST_SHARE)
        block = diagonal[part].reshape(least.shape)
        np.maximum(block, least, out=block, casting="same_kind")
    return diagonal


def _preconditions_real(term: ObjectiveTerm, objective: Objective) -> bool:
    """Return True if a term's real columns are preconditioned, which takes about as long as a few passes."""
    affordable = MOST_PASSES_FOR_REAL * 4 * objective.problem.positions * term.rows * term.columns
    return FEWEST_REAL <= term.real <= MOST_COLUMNS and OPERATIONS_PER_CUBE * term.real**3 <= affordable


def _leading_grams(objective: Objective) -> dict[int, np.ndarray]:
    """Return Phi^T Phi of the first columns of each reduced map, by the number of its term."""
    N = objective.problem.positions
    found = {}
    for j in objective.mapped:
        term = objective.terms[j]
        m, of_pass = min(term.rows, MOST_COLUMNS), 4 * N * term.rows * term.columns
        if term.nested and m >= FEWEST_COLUMNS and MATRIX_OPERATIONS * m**3 <= MOST_PASSES * of_pass:
            m = max(min(m, int(np.cbrt(of_pass / MATRIX_OPERATIONS))), FEWEST_COLUMNS)
            found[j] = objective.engine.leading_gram(j, m, POSITIONS_PER_COLUMN * m)
    return found
