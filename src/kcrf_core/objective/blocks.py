"""The Hessian's blocks of (30): each term by itself, its cliques taken as independent of each other.

A term with a map has the block Phi^T [(diag p - p p^T)(Phi v)] + v / sigma^2, labels coupled, p the marginals of its
cliques: an operator, two products with the map and no forward-backward. Transitions have a small matrix, the summed
covariances of pairs. Where that would be large, and for triples, its diagonal sum_t p_t + 1 / sigma^2 stands in: it is
never below the block, since diag p - p p^T <= diag p. The matrix takes 2 N Y^4 operations; who wants only a guess asks
for its own diagonal, sum_t p_t (1 - p_t) + 1 / sigma^2.

A clique whose label is all but certain, p_t up to `settled` from 0 or 1, adds next to nothing to any of them and is
left out, where enough are for that to pay.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from ..chains import gathered, positions_within, spread
from ..maps import FeatureMap
from ..system import ranges
from .chunks import Chunk
from .posterior import EDGE, EDGE2, EDGE_X, NODE, Posterior

LARGEST_EDGE_BLOCK = 2_000  # Y^2 up to which the block of transitions is a matrix
WORTH_LEAVING_OUT = 0.4  # part of the rows: rows that stay are copied once for all products
ROWS_PER_TASK = 2048


class Blocks:
    """Blocks of P's Hessian at one point."""

    def __init__(self, posterior: Posterior, theta: np.ndarray, diagonal_edge: bool = False, settled: float = 0.0):
        self.posterior, self._settled = posterior, settled
        kinds = {term.kind for term in posterior.terms}
        Y = posterior.problem.label_count
        exact_edge = EDGE in kinds and Y * Y <= LARGEST_EDGE_BLOCK and not diagonal_edge
        self._diagonal_edge = diagonal_edge
        self._weights = posterior.problem.position_weights()

        def work(part: Chunk) -> tuple:
            # Edges handed over per position give the marginals of every pair.
            each = exact_edge or EDGE_X in kinds or (diagonal_edge and EDGE in kinds)
            found = (part.with_edges_repeated() if each else part).marginals()
            pairs = found.edge.reshape(len(part.labels), -1) if found.edge.ndim == 3 else None
            covariance = None
            if exact_edge:
                open_pairs = (positions_within(part.offsets) > 0) & (pairs.max(axis=1) < 1 - settled)
                covariance = (_covariance(pairs[open_pairs], part.position_weights()[open_pairs]), open_pairs.sum())
            summed = (
                found.edge
                if pairs is None
                else part.position_weights() @ (pairs * (1 - pairs) if diagonal_edge else pairs)
            )
            return found.node, pairs if EDGE_X in kinds else None, covariance, summed, found.triple

        node, pairs, covariances, summed, triples = zip(*posterior.over_chunks(theta, work), strict=True)
        self.marginals = {NODE: np.concatenate(node)}  # of cliques: [N, Y]
        if EDGE_X in kinds:
            self.marginals[EDGE_X] = np.concatenate(pairs).astype(posterior.dtype)  # [N, Y^2]
        # Operations beyond those of half a pass.
        self.operations = 2 * Y**4 * sum(int(rows) for _, rows in covariances) if exact_edge else 0
        self._parts = {j: self._open_part(j) for j in posterior.mapped}
        self.small: dict[str, np.ndarray] = {}  # blocks without a map: a matrix, or its diagonal
        if EDGE in kinds:
            matrix = sum(matrix for matrix, _ in covariances) if exact_edge else sum(summed).ravel()
            self.small[EDGE] = self._edge_block(matrix)
        if EDGE2 in kinds:
            self.small[EDGE2] = sum(triples).ravel() + 1 / self._sigma2(EDGE2)

    def _open_part(self, term: int) -> tuple[FeatureMap, np.ndarray | None]:
        """A term's map, and the rows that it has of the problem: those that are not settled, None for all."""
        cliques = self.posterior.terms[term]
        if self._settled == 0:
            return cliques.map, None
        rows = np.flatnonzero(self.marginals[cliques.kind].max(axis=1) < 1 - self._settled)
        if len(rows) > (1 - WORTH_LEAVING_OUT) * len(self._weights):
            return cliques.map, None
        return cliques.map.subset(rows), rows

    def share(self, term: int) -> float:
        """The part of the rows that a product with a term's block goes through."""
        rows = self._parts[term][1]
        return 1.0 if rows is None else len(rows) / max(len(self._weights), 1)

    def _sigma2(self, kind: str) -> float:
        return next(term.sigma2 for term in self.posterior.terms if term.kind == kind)

    def _edge_block(self, pairs: np.ndarray) -> np.ndarray:
        """From the matrix [Y^2, Y^2] of pairs, or from its diagonal [Y^2]: the same with first and last labels."""
        problem = self.posterior.problem
        filled = np.diff(problem.offsets) > 0
        ends = (problem.offsets[:-1][filled], problem.offsets[1:][filled] - 1)
        p, weights = self.marginals[NODE], problem.weights[filled]
        if pairs.ndim == 1:
            variances = p * (1 - p) if self._diagonal_edge else p
            return np.concatenate([pairs, *(weights @ variances[rows] for rows in ends)]) + 1 / self._sigma2(EDGE)
        block = block_diag(pairs, *(_covariance(p[rows].astype(np.float64), weights) for rows in ends))
        block[np.diag_indices_from(block)] += 1 / self._sigma2(EDGE)
        return block

    def product(self, term: int, vector: np.ndarray) -> np.ndarray:
        """The block of a term with a map times a vector."""
        posterior, cliques = self.posterior, self.posterior.terms[term]
        Y, dtype = posterior.problem.label_count, posterior.dtype
        feature_map, chosen = self._parts[term]
        chosen = slice(None) if chosen is None else chosen
        width = posterior.columns_of(cliques)
        ready = feature_map.prepare(posterior.spread_block(vector, term), dtype)
        weights = self._weights[chosen].astype(dtype)
        marginals = self.marginals[cliques.kind][chosen]
        residuals = np.empty((len(weights), width), dtype=dtype)

        def work(rows: slice) -> np.ndarray | None:
            columns = np.zeros((rows.stop - rows.start, width), dtype=dtype)
            feature_map.add_scores(ready, rows, columns)
            p, change = marginals[rows], spread(columns, Y) if cliques.kind == NODE else columns
            change = p * (change - np.einsum("ny,ny->n", p, change)[:, None])
            if cliques.kind == NODE:
                change = gathered(change, Y)
            residuals[rows] = change * weights[rows][:, None]
            return feature_map.adjoint_rows(residuals[rows], rows)

        parts = [part for part in posterior.workers.map(work, ranges(len(weights), ROWS_PER_TASK)) if part is not None]
        summed = sum(part.astype(np.float64) for part in parts) if parts else None
        product = posterior.block_of(feature_map.adjoint(summed, residuals, posterior.workers), term)
        return product + vector / cliques.sigma2


def _covariance(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_t w_t (diag p_t - p_t p_t^T) of rows p [n, K]."""
    weighted = p * weights[:, None]
    out = -(weighted.T @ p)
    out[np.diag_indices_from(out)] += weighted.sum(axis=0)
    return out
