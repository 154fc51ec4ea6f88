"""Blocks of the Hessian as a first guess for L-BFGS, where a map's columns are in order of weight.

The columns of a reduced map come from a pivoted Cholesky factorisation: the first ones hold most of the trace, and so
most of the curvature. For m of them the block of (30) is inverted label by label,

    A_y = sum_t q_ty phi_t phi_t^T + I / sigma^2,    q_ty = p_ty (1 - p_ty) / 2 over positions that are not settled

(half, for labels share what curvature there is; with two labels one column holds all of it, 2 p (1 - p)). The other
columns have the diagonal of the mean. Transitions have their block, or its diagonal (see `blocks`).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, inv

from ..blocks import Blocks
from ..maps import ReducedMap
from ..posterior import NODE, Posterior
from .run import Run

MOST_COLUMNS = 300
# The blocks are to cost about two passes: m^2 q / (4 D) <= 2, with a part q of about 2 / C of the variances unsettled.
PASSES_TO_BUILD = 2
SETTLED = 0.003  # variances of labels below this are left out


class LeadingColumns:
    """Phi[:, :m] of each node term with a reduced map, kept from one metric to the next."""

    def __init__(self, posterior: Posterior, run: Run):
        self.features: dict[int, np.ndarray] = {}  # term: [N, m]
        for j in posterior.mapped:
            term = posterior.terms[j]
            if term.kind == NODE and isinstance(term.map, ReducedMap):
                wanted = np.sqrt(4 * PASSES_TO_BUILD * term.map.size * max(1, posterior.columns / 2))
                m = int(min(term.map.size, MOST_COLUMNS, wanted))
                self.features[j] = term.map.leading(m).features(posterior.workers)
                run.add_operations(posterior, posterior.problem.positions * m * m)


class BlockMetric:
    """A guess at the inverse Hessian of P at one point."""

    def __init__(self, posterior: Posterior, theta: np.ndarray, columns: LeadingColumns, run: Run):
        blocks = Blocks(posterior, theta)
        run.add_operations(posterior, 2 * posterior.problem.positions * posterior.pass_size)  # scores alone
        p = blocks.marginals[NODE]  # [N, Y]
        variance = p * (1 - p)
        uniform = 1 - 1 / posterior.problem.label_count
        settled = float(variance.sum()) / max(len(p) * uniform, 1e-300)
        prior = np.repeat(1 / posterior.sigma2, [part.stop - part.start for part in posterior.blocks])
        # [size] the guess at zero, less what has settled since
        self._diagonal = settled * (posterior.curvature_guess() - prior) + prior
        curvature = variance / 2 if posterior.columns > 1 else variance.sum(axis=1, keepdims=True)  # [N, C]
        curvature *= posterior.problem.position_weights()[:, None]
        self._parts: dict[int, tuple[slice, np.ndarray]] = {}  # term: its leading weights, [C, m, m] inverses
        for j, features in columns.features.items():
            first, m = posterior.blocks[j].start, features.shape[1]
            leading = slice(first, first + m * posterior.columns)
            self._parts[j] = (leading, _inverses(posterior, features, curvature, posterior.sigma2[j], run))
        self._small = []
        for part, term in zip(posterior.blocks, posterior.terms, strict=True):
            if term.map is None:
                block = blocks.small[term.kind]
                if block.ndim == 2:
                    self._small.append((part, cho_factor(block)))
                else:
                    self._diagonal[part] = block

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        out = vector / self._diagonal
        for leading, inverses in self._parts.values():
            weights = vector[leading].reshape(-1, len(inverses))  # [m, C]
            out[leading] = np.matmul(inverses, weights.T[:, :, None])[:, :, 0].T.ravel()
        for part, factor in self._small:
            out[part] = cho_solve(factor, vector[part])
        return out


def _inverses(posterior: Posterior, features: np.ndarray, curvature: np.ndarray, sigma2: float, run: Run) -> np.ndarray:
    """A_y^-1 of each score column, [C, m, m]."""
    m = features.shape[1]

    def work(label: int) -> tuple[np.ndarray, int]:
        rows = np.flatnonzero(curvature[:, label] > SETTLED)
        phi = features[rows].astype(np.float64)
        block = (phi * curvature[rows, label][:, None]).T @ phi
        block[np.diag_indices(m)] += 1 / sigma2
        return inv(block, overwrite_a=True, check_finite=False), len(rows)

    found = list(posterior.workers.map(work, range(curvature.shape[1])))
    run.add_operations(posterior, sum(rows * m * m + m**3 for _, rows in found))
    return np.stack([inverse for inverse, _ in found])
