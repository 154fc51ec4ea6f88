"""A guess at the inverse Hessian: the first one of L-BFGS, and what conjugate gradients are preconditioned with.

The columns of a reduced map come from a pivoted Cholesky factorisation: the first ones hold most of the trace, and so
most of the curvature. For m of them the block of (30) is inverted label by label,

    A_y = sum_t q_ty phi_t phi_t^T + I / sigma^2,    q_ty = p_ty (1 - p_ty) / 2 over positions that are not settled

(half, for labels share what curvature there is; with two labels one column holds all of it, 2 p (1 - p)). The other
columns have the diagonal of the mean. Transitions have what `blocks` has of them.

With it, Newton steps to a gap of 1e-4 on OCR (poly-2, 500 pivots) need 209 products where a diagonal needs 535, on
pitch accent (poly-2) 63 for 163.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, inv

from ..maps import has_nested_columns
from ..objective import NODE, Blocks, Posterior
from .run import Run

MOST_COLUMNS = 300
# The blocks are to cost about two passes: m^2 q / (4 D) <= 2, with a part q of about 2 / C of the variances unsettled.
PASSES_TO_BUILD = 2
SETTLED = 0.003  # variances of labels below this are left out
REBUILD = 0.25  # blocks are built anew when what is unsettled has changed by this part


class LeadingColumns:
    """Phi[:, :m] of each node term with a reduced map, and the blocks on them, kept from one metric to the next."""

    def __init__(self, posterior: Posterior, run: Run):
        self._features: dict[int, np.ndarray] = {}  # term: [N, m]
        self._inverses: dict[int, np.ndarray] = {}  # term: [C, m, m]
        self._unsettled = 0.0  # when those were built
        for j in posterior.mapped:
            term = posterior.terms[j]
            if term.kind == NODE and has_nested_columns(term.map):
                wanted = np.sqrt(4 * PASSES_TO_BUILD * term.map.size * max(1, posterior.columns / 2))
                m = int(min(term.map.size, MOST_COLUMNS, wanted))
                self._features[j] = term.map.leading(m).features(posterior.workers)
                run.add_operations(posterior, posterior.problem.positions * m * m)

    def inverses(
        self, posterior: Posterior, curvature: np.ndarray, unsettled: float, run: Run
    ) -> dict[int, np.ndarray]:
        """Inverse blocks of each term, built anew where much has settled since the last time."""
        if not self._inverses or abs(unsettled - self._unsettled) > REBUILD * self._unsettled:
            self._unsettled = unsettled
            for j, features in self._features.items():
                self._inverses[j] = _inverses(posterior, features, curvature, posterior.sigma2[j], run)
        return dict(self._inverses)


class BlockMetric:
    """A guess at the inverse Hessian of P at one point."""

    def __init__(self, blocks: Blocks, columns: LeadingColumns, run: Run):
        posterior = blocks.posterior
        p = blocks.marginals[NODE]  # [N, Y]
        variance = p * (1 - p)
        uniform = 1 - 1 / posterior.problem.label_count
        unsettled = float(variance.sum()) / max(len(p) * uniform, 1e-300)
        prior = np.repeat(1 / posterior.sigma2, [part.stop - part.start for part in posterior.blocks])
        # [size] the guess at zero, less what has settled since
        self._diagonal = unsettled * (posterior.curvature_guess() - prior) + prior
        curvature = variance / 2 if posterior.columns > 1 else variance.sum(axis=1, keepdims=True)  # [N, C]
        curvature *= posterior.problem.position_weights()[:, None]
        self._inverses = columns.inverses(posterior, curvature, unsettled, run)  # term: [C, m, m]
        self._blocks, self._small = posterior.blocks, {}  # term: factor of its matrix
        for j, (part, term) in enumerate(zip(posterior.blocks, posterior.terms, strict=True)):
            if term.map is None:
                block = blocks.small[term.kind]
                if block.ndim == 2:
                    self._small[j] = cho_factor(block)
                else:
                    self._diagonal[part] = block

    def __call__(self, vector: np.ndarray) -> np.ndarray:
        """Times a vector like theta."""
        return np.concatenate([self.of_term(j, vector[part]) for j, part in enumerate(self._blocks)])

    def of_term(self, term: int, vector: np.ndarray) -> np.ndarray:
        """One term's part of it times a vector of that term."""
        if term in self._small:
            return cho_solve(self._small[term], vector)
        out = vector / self._diagonal[self._blocks[term]]
        if term in self._inverses:
            inverses = self._inverses[term]
            C, m, _ = inverses.shape
            leading = vector[: m * C].reshape(m, C)
            out[: m * C] = np.matmul(inverses, leading.T[:, :, None])[:, :, 0].T.ravel()
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
