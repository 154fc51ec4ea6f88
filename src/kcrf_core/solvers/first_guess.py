"""The guess at the inverse Hessian that the pairs of L-BFGS are laid over: only its direction counts.

A diagonal for most maps. The columns of a reduced map are correlated with each other; on its first m columns the guess
is a function of their Gram matrix on a sample of positions, A = (v Phi^T Phi + I / sigma^2)^-p by its eigenvectors.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ..objective import Posterior, Vector
from ..system import Vectors
from .run import Run

# Passes to a gap of 1e-3 by the power of the curvature, 0, 1/2 and 1: CoNLL-2000 184 (by Lemma 9 alone), 106 and 146;
# Helsinki prosody 106, 37 and 46; OCR with 1,500 pivots 91, 72 and 124. In between, frequent features are neither too
# slow nor so fast that the pairs cannot hold the rest. Where eigenvectors take correlations away it can be more.
POWER, TURNED_POWER = 0.5, 0.65

# Beside columns that are turned, transitions go too fast by their curvature under uniform labels. By that of the pairs
# that training data has, times this, work to a gap of 1e-3 (uniform times 1 and 4 in brackets): OCR large, 1,000 pivots
# 74 (113, 76), OCR small 43 (51, 47), readings of a sensor with 4 labels, 125 pivots, 77 (63, 106).
# Without eigenvectors a factor does harm: CoNLL-2000 109 passes with 1, 164 with 4.
EDGES_BESIDE_TURNED = 2

# Eigenvectors of m columns, from four times as many positions, take some 25 m^3 operations. Where that is no more than
# a few passes they save a fifth of them or more: OCR large, poly-3, gap of 1e-2, work with and without, 500 pivots 93
# and 115, 1,000 68 and 99, 2,000 70 and 86, 3,000 68 and 85. On OCR small and pitch accent there was nothing to gain.
MOST_TURNED, FEWEST_TURNED, POSITIONS_PER_COLUMN = 1000, 20, 4
OPERATIONS_PER_CUBE, MOST_PASSES = 25, 6


class Unsized:
    """A metric whose direction alone counts: its length comes from the last pair."""


class Diagonal(Unsized):
    """Division by a scale [size]."""

    def __init__(self, scale: np.ndarray, vectors: Vectors, dtype: np.dtype | type = np.float64):
        self._vectors = vectors
        self.inverse = vectors.from_array(1.0 / scale, dtype)

    def __call__(self, vector: Vector) -> Vector:
        return self._vectors.product(vector, self.inverse)


class Turned(Unsized):
    """The same, but for symmetric matrices [m, m] in the place of the first m rows of some terms' weights."""

    def __init__(self, rest: Diagonal, matrices: dict[int, np.ndarray], posterior: Posterior):
        self._rest, self._matrices, self._vectors = rest, matrices, posterior.vectors
        self._columns = {j: posterior.terms[j].columns for j in matrices}

    def __call__(self, vector: Vector) -> Vector:
        out = self._rest(vector)
        for j, matrix in self._matrices.items():
            self._vectors.multiply_rows(out, vector, j, matrix, self._columns[j])
        return out


def scaling(posterior: Posterior, run: Run, whole: Posterior | None = None) -> Diagonal | Turned:
    """The guess for a posterior, or for a part of the columns of a `whole` one, which work is counted by."""
    grams = _leading_grams(posterior)
    power = TURNED_POWER if grams else POWER
    scale = posterior.curvature_guess() ** power
    if grams:
        for part, term, variance in zip(posterior.blocks, posterior.terms, posterior.sigma2, strict=True):
            if not term.clique.mapped:
                better = term.clique.guess_in_data(posterior.problem, variance)
                scale[part][: better.size] = better**power
                scale[part] *= EDGES_BESIDE_TURNED
    rest = Diagonal(scale, posterior.vectors, run.kept_dtype(posterior))
    run.add_operations(whole or posterior, sum(OPERATIONS_PER_CUBE * len(gram) ** 3 for gram in grams.values()))
    if not grams:
        return rest
    matrices = {}
    for j, gram in grams.items():
        squares, vectors = eigh(gram, overwrite_a=True, check_finite=False)
        curvature = posterior.curvature_at_zero(j, np.maximum(squares, 0.0))
        matrices[j] = (vectors * curvature**-power) @ vectors.T
    return Turned(rest, matrices, posterior)


def _leading_grams(posterior: Posterior) -> dict[int, np.ndarray]:
    """Phi^T Phi of the first columns of each reduced map, by the number of its term."""
    N = posterior.problem.positions
    found = {}
    for j in posterior.mapped:
        term = posterior.terms[j]
        m = min(term.rows, MOST_TURNED)
        affordable = MOST_PASSES * 4 * N * term.product_size
        if term.nested and m >= FEWEST_TURNED and OPERATIONS_PER_CUBE * m**3 <= affordable:
            found[j] = posterior.engine.leading_gram(j, m, POSITIONS_PER_COLUMN * m)
    return found
