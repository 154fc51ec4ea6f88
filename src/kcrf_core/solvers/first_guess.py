"""The guess at the inverse Hessian that the pairs of L-BFGS are laid over: only its direction counts.

A diagonal for most maps. The columns of a reduced map are correlated with each other; on its first m columns the guess
is a function of their Gram matrix on a sample of positions, A = (v Phi^T Phi + I / sigma^2)^-p by its eigenvectors.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ..chains import Problem
from ..maps import FeatureMap, has_nested_columns
from ..objective import EDGE, Posterior
from ..system import Workers, ranges
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
ROWS_AT_ONCE = 2048


class Unsized:
    """A metric whose direction alone counts: its length comes from the last pair."""


class Diagonal(Unsized):
    """Division by a scale [size]."""

    def __init__(self, scale: np.ndarray, dtype: np.dtype | type = np.float64):
        self.inverse = (1.0 / scale).astype(dtype, copy=False)

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        return vector * self.inverse


class Turned(Unsized):
    """The same, but for symmetric matrices [m, m] in the place of the first m rows of some terms' weights."""

    def __init__(self, rest: Diagonal, matrices: list[tuple[slice, np.ndarray]]):
        self._rest, self._matrices = rest, matrices  # with the place of those m rows in theta

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        out = self._rest(vector)
        for part, matrix in self._matrices:
            rows = vector[part].reshape(len(matrix), -1)
            out[part] = (matrix @ rows.astype(matrix.dtype, copy=False)).ravel()
        return out


def scaling(posterior: Posterior, run: Run, whole: Posterior | None = None) -> Diagonal | Turned:
    """The guess for a posterior, or for a part of the columns of a `whole` one, which work is counted by."""
    grams = _leading_grams(posterior)
    power = TURNED_POWER if grams else POWER
    scale = posterior.curvature_guess() ** power
    if grams:
        for part, term in zip(posterior.blocks, posterior.terms, strict=True):
            if term.kind == EDGE:
                pairs = _curvature_of_pairs(posterior.problem, term.sigma2)
                scale[part][: pairs.size] = pairs**power
            if term.map is None:
                scale[part] *= EDGES_BESIDE_TURNED
    rest = Diagonal(scale, run.kept_dtype(posterior))
    run.add_operations(whole or posterior, sum(OPERATIONS_PER_CUBE * len(gram) ** 3 for gram in grams.values()))
    if not grams:
        return rest
    matrices = []
    for j, gram in grams.items():
        squares, vectors = eigh(gram, overwrite_a=True, check_finite=False)
        curvature = posterior.curvature_at_zero(j, np.maximum(squares, 0.0))
        first, columns = posterior.blocks[j].start, posterior.columns_of(posterior.terms[j])
        part = slice(first, first + len(gram) * columns)
        matrices.append((part, (vectors * curvature**-power) @ vectors.T))
    return Turned(rest, matrices)


def _curvature_of_pairs(problem: Problem, sigma2: float) -> np.ndarray:
    """The Hessian's diagonal for transitions [Y^2] if labels were drawn in the pairs that the data has."""
    counts = problem.clique_counts(1).ravel()
    share = (counts + 0.5) / (counts + 0.5).sum()
    return counts.sum() * share * (1 - share) + 1 / sigma2


def _leading_grams(posterior: Posterior) -> dict[int, np.ndarray]:
    """Phi^T Phi of the first columns of each reduced map, by the number of its term."""
    N = posterior.problem.positions
    found = {}
    for j in posterior.mapped:
        term = posterior.terms[j]
        if not has_nested_columns(term.map):
            continue
        m = min(term.map.size, MOST_TURNED)
        affordable = MOST_PASSES * 4 * N * term.map.size * posterior.columns_of(term)
        if m >= FEWEST_TURNED and OPERATIONS_PER_CUBE * m**3 <= affordable:
            rows = np.unique(np.linspace(0, N - 1, min(N, POSITIONS_PER_COLUMN * m)).astype(np.int64))
            weights = posterior.problem.position_weights()
            gram = _gram(term.map.leading(m), rows, weights[rows], posterior.workers)
            found[j] = gram * (weights.sum() / weights[rows].sum())
    return found


def _gram(feature_map: FeatureMap, rows: np.ndarray, weights: np.ndarray, workers: Workers) -> np.ndarray:
    """Phi^T diag(weights) Phi on some rows, in double precision, [m, m]."""
    total = np.zeros((feature_map.size, feature_map.size))
    for part in ranges(len(rows), ROWS_AT_ONCE):
        phi = feature_map.subset(rows[part]).features(workers)
        total += (phi * weights[part, None].astype(phi.dtype)).T @ phi
    return total
