"""The negative log-posterior, its gradient, and what they prove about the optimum.

    P(theta) = sum_j |theta_j|^2 / (2 sigma_j^2) - sum_i w_i log p(y^i | x^i; theta)                 (15)
    gradient   Phi^T (p - e_y) + W / sigma^2                                                    (21), (28)
    min P >= P - sum_j (sigma_j^2 / 2) |gradient_j|^2                                             Lemma 9

theta is one vector: the weights W [D, C] of each node term, row by row, then T [Y, Y], s [Y] and e [Y] of the
edge term. With two labels a node term has one column, F = Phi v (1, -1)/sqrt(2), and the same prior |v|^2:
exactly the objective of two columns, whose rows sum to zero at the optimum (Lemma 13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.linalg import block_diag

from . import chain
from .corpus import sequence_rows
from .maps import FeatureMap
from .parallel import Workers, sequence_chunks

# Positions per chunk: enough to keep BLAS busy, few enough that a chunk of a reduced map stays in cache.
SMALLEST_CHUNK, LARGEST_CHUNK = 512, 4096
CHUNK_VALUES = 1 << 20

# A marginal that underflowed counts as this: one hopeless position must not decide a comparison alone.
SMALLEST_PROBABILITY = 1e-30

_HALF = np.sqrt(0.5)

Result = TypeVar("Result")


@dataclass(frozen=True)
class Problem:
    """Labelled sequences, without their inputs."""

    labels: np.ndarray  # [N] int32
    offsets: np.ndarray  # [S+1] int64
    weights: np.ndarray  # [S] float64
    label_count: int  # Y

    @property
    def positions(self) -> int:
        return len(self.labels)

    @property
    def weight(self) -> float:
        """Weighted number of positions, and not zero."""
        return max(float(self.weights @ np.diff(self.offsets)), 1e-300)

    def subset(self, which: np.ndarray) -> Problem:
        """The sequences numbered `which`."""
        rows = sequence_rows(self.offsets, which)
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[which])]).astype(np.int64)
        return Problem(self.labels[rows], offsets, self.weights[which], self.label_count)


@dataclass(frozen=True)
class Evaluation:
    """P and its gradient at one point, with the lower bound that they prove."""

    value: float  # P
    log_likelihood: float  # weighted sum of log p(y | x)
    gradient: np.ndarray  # like theta
    lower: float  # min P is at least this


def score_columns(label_count: int) -> int:
    """Columns of node scores: one for two labels, else one for each."""
    return 1 if label_count == 2 else label_count


def spread(columns: np.ndarray, label_count: int) -> np.ndarray:
    """Node scores [n, Y] of score columns [n, C]."""
    if label_count != 2:
        return columns
    scores = np.empty((len(columns), 2), dtype=columns.dtype)
    np.multiply(columns[:, 0], _HALF, out=scores[:, 0])
    np.negative(scores[:, 0], out=scores[:, 1])
    return scores


def gathered(residuals: np.ndarray, label_count: int) -> np.ndarray:
    """Adjoint of `spread`: [n, Y] to [n, C]."""
    if label_count != 2:
        return residuals
    difference = (residuals[:, 0] - residuals[:, 1])[:, None]
    difference *= residuals.dtype.type(_HALF)
    return difference


class Posterior:
    """P over a problem, for given maps and prior variances. Evaluations share nothing but the data."""

    def __init__(
        self,
        problem: Problem,
        maps: Sequence[FeatureMap],
        sigma2: Sequence[float],  # of each node term
        edge_sigma2: float | None,  # None: no edge term
        workers: Workers,
        dtype: np.dtype | type = np.float64,
    ):
        self.problem, self.maps, self.workers = problem, tuple(maps), workers
        self.dtype = np.dtype(dtype)
        self.columns = score_columns(problem.label_count)
        Y = problem.label_count
        sizes = [feature_map.size * self.columns for feature_map in maps]
        variances = list(sigma2)
        self.has_edge = edge_sigma2 is not None
        if self.has_edge:
            sizes.append(Y * Y + 2 * Y)
            variances.append(edge_sigma2)
        ends = np.cumsum(sizes)
        self.blocks = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
        self.sigma2 = np.array(variances, dtype=np.float64)  # [blocks]
        self.size = int(ends[-1]) if len(ends) else 0
        widest = max((feature_map.dense_size for feature_map in maps), default=0)
        per_chunk = min(max(CHUNK_VALUES // max(widest, 1), SMALLEST_CHUNK), LARGEST_CHUNK)
        self._chunks = sequence_chunks(problem.offsets, per_chunk)
        self._observed = _observed_edges(problem) if self.has_edge else None

    def weights_of(self, theta: np.ndarray, term: int) -> np.ndarray:
        """W [D, C] of a node term."""
        return theta[self.blocks[term]].reshape(self.maps[term].size, self.columns)

    def edges_of(self, theta: np.ndarray) -> chain.Edges:
        Y = self.problem.label_count
        if not self.has_edge:
            return chain.Edges.zeros(Y)
        part = theta[self.blocks[-1]]
        return chain.Edges(part[: Y * Y].reshape(Y, Y), part[Y * Y : Y * Y + Y], part[Y * Y + Y :])

    def evaluate(self, theta: np.ndarray, dtype: np.dtype | type | None = None) -> Evaluation:
        """P, gradient and lower bound; scores in `dtype`, sums always in double precision."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        problem, Y = self.problem, self.problem.label_count
        edges = self.edges_of(theta)
        residuals = np.empty((problem.positions, self.columns), dtype=dtype)  # [N, C]
        log_likelihood = 0.0
        summed: list[np.ndarray | None] = [None] * len(self.maps)
        transitions, start, end = np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y)

        def work(part: _Chunk) -> tuple:
            likely = chain.marginals(part.scores, edges, part.offsets, part.weights)
            gold = chain.path_scores(part.scores, edges, part.offsets, part.labels)
            error = likely.node  # p - e_y
            error[np.arange(len(error)), part.labels] -= 1
            likelihood = float(part.weights @ (gold - likely.log_z))
            return likelihood, self._adjoint_parts(part, error, residuals), likely.edge

        for likelihood, parts, chunk_edges in self._over_chunks(theta, work, dtype):
            log_likelihood += likelihood
            transitions += chunk_edges
            self._add_parts(parts, summed, start, end)
        if self.has_edge:
            transitions -= self._observed
        gradient = self._collect(summed, residuals, transitions, start, end)
        prior = lower_terms = 0.0
        for block, variance in zip(self.blocks, self.sigma2, strict=True):
            part = theta[block]
            gradient[block] += part / variance
            prior += float(part @ part) / (2 * variance)
            lower_terms += variance / 2 * float(gradient[block] @ gradient[block])
        value = prior - log_likelihood
        return Evaluation(value, log_likelihood, gradient, value - lower_terms)

    def hessian_product(
        self, theta: np.ndarray, vector: np.ndarray, dtype: np.dtype | type | None = None
    ) -> np.ndarray:
        """The exact Hessian of P at theta times a vector: one pass with the tangent of forward-backward."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        problem, Y = self.problem, self.problem.label_count
        edges, d_edges = self.edges_of(theta), self.edges_of(vector)
        directions = [m.prepare(self.weights_of(vector, j), dtype) for j, m in enumerate(self.maps)]
        residuals = np.empty((problem.positions, self.columns), dtype=dtype)  # [N, C]
        summed: list[np.ndarray | None] = [None] * len(self.maps)
        transitions, start, end = np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y)

        def work(part: _Chunk) -> tuple:
            columns = np.zeros((len(part.labels), self.columns), dtype=dtype)
            for feature_map, ready in zip(self.maps, directions, strict=True):
                feature_map.add_scores(ready, part.rows, columns)
            change, edge_change = chain.tangent(
                part.scores, edges, part.offsets, spread(columns, Y), d_edges, part.weights
            )
            return self._adjoint_parts(part, change, residuals), edge_change

        for parts, edge_change in self._over_chunks(theta, work, dtype):
            transitions += edge_change
            self._add_parts(parts, summed, start, end)
        product = self._collect(summed, residuals, transitions, start, end)
        for block, variance in zip(self.blocks, self.sigma2, strict=True):
            product[block] += vector[block] / variance
        return product

    def blocks_at(self, theta: np.ndarray) -> Blocks:
        """The Hessian's blocks of (30) at theta: each term by itself, positions independent."""
        edges, Y = self.edges_of(theta), self.problem.label_count

        def work(part: _Chunk) -> tuple[np.ndarray, np.ndarray | None]:
            if not self.has_edge:
                return chain.marginals(part.scores, edges, part.offsets).node, None
            # Edges handed over per position give the marginals of every pair.
            repeated = np.broadcast_to(edges.transitions, (len(part.labels), Y, Y))
            found = chain.marginals(part.scores, chain.Edges(repeated, edges.start, edges.end), part.offsets)
            inner = np.ones(len(part.labels), dtype=bool)
            inner[part.offsets[:-1][np.diff(part.offsets) > 0]] = False
            pairs = found.edge.reshape(len(inner), Y * Y)[inner]
            return found.node, _covariance(pairs, part.position_weights()[inner])

        node, pairs = zip(*self._over_chunks(theta, work), strict=True)
        p = np.concatenate(node)
        edge = None
        if self.has_edge:
            filled = np.diff(self.problem.offsets) > 0
            ends = (self.problem.offsets[:-1][filled], self.problem.offsets[1:][filled] - 1)
            weights = self.problem.weights[filled]
            corners = [_covariance(p[rows].astype(np.float64), weights) for rows in ends]
            edge = block_diag(sum(pairs), *corners)
            edge[np.diag_indices_from(edge)] += 1 / self.sigma2[-1]
        return Blocks(p, edge)

    def block_product(self, blocks: Blocks, term: int, vector: np.ndarray) -> np.ndarray:
        """A node term's block of (30) times a vector: Phi^T [(diag p - p p^T)(Phi v)] + v / sigma^2."""
        Y, feature_map = self.problem.label_count, self.maps[term]
        ready = feature_map.prepare(vector.reshape(feature_map.size, self.columns), self.dtype)
        weights = np.repeat(self.problem.weights, np.diff(self.problem.offsets)).astype(self.dtype)
        residuals = np.empty((self.problem.positions, self.columns), dtype=self.dtype)

        def work(bounds: tuple[int, int]) -> np.ndarray | None:
            rows = slice(int(self.problem.offsets[bounds[0]]), int(self.problem.offsets[bounds[1]]))
            columns = np.zeros((rows.stop - rows.start, self.columns), dtype=self.dtype)
            feature_map.add_scores(ready, rows, columns)
            p, change = blocks.node[rows], spread(columns, Y)
            change = p * (change - np.einsum("ny,ny->n", p, change)[:, None])
            residuals[rows] = gathered(change, Y) * weights[rows][:, None]
            return feature_map.adjoint_rows(residuals[rows], rows)

        parts = [part for part in self.workers.map(work, self._chunks) if part is not None]
        summed = sum(part.astype(np.float64) for part in parts) if parts else None
        product = feature_map.adjoint(summed, residuals, self.workers).ravel()
        return product + vector / self.sigma2[term]

    def _adjoint_parts(self, part: _Chunk, error: np.ndarray, residuals: np.ndarray) -> tuple:
        """What a chunk's [n, Y] errors give to a gradient: parts of maps, first and last positions."""
        if not (part.weights == 1).all():
            error *= part.position_weights().astype(error.dtype)[:, None]
        residuals[part.rows] = gathered(error, self.problem.label_count)
        filled = np.diff(part.offsets) > 0
        return (
            [m.adjoint_rows(residuals[part.rows], part.rows) for m in self.maps],
            error[part.offsets[:-1][filled]].sum(axis=0, dtype=np.float64),
            error[part.offsets[1:][filled] - 1].sum(axis=0, dtype=np.float64),
        )

    def _add_parts(self, parts: tuple, summed: list[np.ndarray | None], start: np.ndarray, end: np.ndarray) -> None:
        maps_parts, chunk_start, chunk_end = parts
        start += chunk_start
        end += chunk_end
        for j, part in enumerate(maps_parts):
            if part is not None:
                summed[j] = part.astype(np.float64) if summed[j] is None else summed[j] + part

    def _collect(
        self,
        summed: list[np.ndarray | None],
        residuals: np.ndarray,
        transitions: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
    ) -> np.ndarray:
        """A vector like theta out of the adjoints of all terms."""
        out = np.empty(self.size)
        for j, feature_map in enumerate(self.maps):
            out[self.blocks[j]] = feature_map.adjoint(summed[j], residuals, self.workers).ravel()
        if self.has_edge:
            out[self.blocks[-1]] = np.concatenate([transitions.ravel(), start, end])
        return out

    def curvature_guess(self) -> np.ndarray:
        """The Hessian's diagonal at theta = 0, transitions ignored.

        Frequent features curve P far more than rare ones: scaled by this, L-BFGS needs about half the passes
        on text.
        """
        Y, N = self.problem.label_count, self.problem.positions
        variance = (1 - 1 / Y) / Y  # variance of one label's indicator under uniform marginals
        guess = np.empty(self.size)
        for j, feature_map in enumerate(self.maps):
            per_row = feature_map.column_squares() * variance
            guess[self.blocks[j]] = np.repeat(per_row, self.columns) + 1 / self.sigma2[j]
        if self.has_edge:
            guess[self.blocks[-1]] = N * variance / Y + 1 / self.sigma2[-1]
        return guess

    def label_log_probability(self, theta: np.ndarray) -> float:
        """Mean over positions of log p(y_t | x), gold labels by their own marginals, weighted by sequence."""
        edges = self.edges_of(theta)

        def work(part: _Chunk) -> float:
            node = chain.marginals(part.scores, edges, part.offsets).node
            gold = node[np.arange(len(node)), part.labels].astype(np.float64)
            return float(part.position_weights() @ np.log(np.maximum(gold, SMALLEST_PROBABILITY)))

        return sum(self._over_chunks(theta, work)) / self.problem.weight

    def accuracy(self, theta: np.ndarray) -> float:
        """Part of the positions whose most probable labelling is right, weighted by sequence."""
        edges = self.edges_of(theta)

        def work(part: _Chunk) -> float:
            return float(part.position_weights() @ (chain.viterbi(part.scores, edges, part.offsets)[0] == part.labels))

        return sum(self._over_chunks(theta, work)) / self.problem.weight

    def errors(self, theta: np.ndarray) -> np.ndarray:
        """w (p_t - e_{y_t}) of each position in score columns, [N, C]: what P's gradient is made of."""
        edges = self.edges_of(theta)

        def work(part: _Chunk) -> np.ndarray:
            error = chain.marginals(part.scores, edges, part.offsets).node
            error[np.arange(len(error)), part.labels] -= 1
            return gathered(error, self.problem.label_count) * part.position_weights()[:, None]

        return np.concatenate(list(self._over_chunks(theta, work)))

    def _over_chunks(
        self, theta: np.ndarray, work: Callable[[_Chunk], Result], dtype: np.dtype | None = None
    ) -> Iterator[Result]:
        """`work` on every chunk of sequences with its scores, on threads; results in the order of chunks."""
        dtype = self.dtype if dtype is None else dtype
        problem = self.problem
        prepared = [m.prepare(self.weights_of(theta, j), dtype) for j, m in enumerate(self.maps)]

        def chunk(bounds: tuple[int, int]) -> Result:
            first, last = bounds
            offsets = problem.offsets[first : last + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            columns = np.zeros((rows.stop - rows.start, self.columns), dtype=dtype)
            for feature_map, ready in zip(self.maps, prepared, strict=True):
                feature_map.add_scores(ready, rows, columns)
            scores = spread(columns, problem.label_count)
            return work(_Chunk(rows, offsets - offsets[0], scores, problem.labels[rows], problem.weights[first:last]))

        return self.workers.map(chunk, self._chunks)


@dataclass(frozen=True)
class Blocks:
    """What the blocks of (30) are made of."""

    node: np.ndarray  # [N, Y] p(y_t | x)
    edge: np.ndarray | None  # [Y^2 + 2 Y, Y^2 + 2 Y] of transitions, first and last labels, the prior included


def _covariance(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_t w_t (diag p_t - p_t p_t^T) of rows p [n, K]."""
    weighted = p * weights[:, None]
    out = -(weighted.T @ p)
    out[np.diag_indices_from(out)] += weighted.sum(axis=0)
    return out


@dataclass(frozen=True)
class _Chunk:
    """A run of whole sequences with their scores."""

    rows: slice  # positions of the problem
    offsets: np.ndarray  # [s+1], from 0
    scores: np.ndarray  # [n, Y]
    labels: np.ndarray  # [n]
    weights: np.ndarray  # [s]

    def position_weights(self) -> np.ndarray:
        return np.repeat(self.weights, np.diff(self.offsets))


def _observed_edges(problem: Problem) -> np.ndarray:
    """Weighted counts of transitions in the labels, [Y, Y]."""
    counts = np.zeros((problem.label_count, problem.label_count))
    inside = np.ones(problem.positions, dtype=bool)
    inside[problem.offsets[:-1][np.diff(problem.offsets) > 0]] = False
    t = np.flatnonzero(inside)
    weights = np.repeat(problem.weights, np.diff(problem.offsets))
    np.add.at(counts, (problem.labels[t - 1], problem.labels[t]), weights[t])
    return counts
