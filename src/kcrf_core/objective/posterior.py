"""The negative log-posterior, its gradient, and what they prove about the optimum.

    P(theta) = sum_j |theta_j|^2 / (2 sigma_j^2) - sum_i w_i log p(y^i | x^i; theta)                 (15)
    gradient   Phi^T (p - e_y) + W / sigma^2                                                    (21), (28)
    min P >= P - sum_j (sigma_j^2 / 2) |gradient_j|^2                                             Lemma 9

theta is one vector, a block for each term: the weights W [D, C] of a node term row by row, W [D, Y^2] of an edge-x
term, T [Y, Y], s [Y] and e [Y] of the edge term, U [Y, Y, Y] of the edge2 term.

A term may have parameters for some places of its W alone, all others being zero. P is then a function of those, as
convex as before, and Lemma 9 holds with their part of the gradient: it bounds the minimum over what they can express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ..chains import Problem, chain, gathered, score_columns, spread
from ..maps import FeatureMap
from ..scoring import SMALLEST_PROBABILITY
from ..system import Slices, Workers, sequence_chunks
from .chunks import Chunk

# Positions per chunk: enough to keep BLAS busy, few enough that a chunk of a reduced map stays in cache.
SMALLEST_CHUNK, LARGEST_CHUNK = 512, 4096
CHUNK_VALUES = 1 << 20

NODE, EDGE_X, EDGE, EDGE2 = "node", "edge-x", "edge", "edge2"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cliques:
    """A term as P sees it: the kind of its cliques, their prior variance, and a map where they look at the input."""

    kind: str  # one of the constants above
    sigma2: float
    map: FeatureMap | None = None  # of node and edge-x
    kept: np.ndarray | None = None  # [K] int64 places in W, row by row, that have parameters; None: all of them


@dataclass(frozen=True)
class Evaluation:
    """P and its gradient at one point, with the lower bound that they prove."""

    value: float  # P
    log_likelihood: float  # weighted sum of log p(y | x)
    gradient: np.ndarray  # like theta
    lower: float  # min P is at least this


class Posterior:
    """P over a problem, for given terms. Evaluations share nothing but the data."""

    def __init__(
        self,
        problem: Problem,
        terms: Sequence[Cliques],
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: chain.Edges | None = None,  # minus infinity where labels must not follow each other, else zero
    ):
        self.problem, self.terms, self.workers = problem, tuple(terms), workers
        self.dtype, self.forbidden = np.dtype(dtype), forbidden
        self.columns = score_columns(problem.label_count)
        sizes = [self._term_size(term) for term in self.terms]
        ends = np.cumsum(sizes, dtype=np.int64)
        self.blocks = [slice(int(end) - size, int(end)) for size, end in zip(sizes, ends, strict=True)]
        self.sigma2 = np.array([term.sigma2 for term in self.terms], dtype=np.float64)  # [blocks]
        self.size = int(ends[-1]) if len(ends) else 0
        self.slices = Slices(self.blocks, workers)
        self.mapped = [j for j, term in enumerate(self.terms) if term.map is not None]
        # Weights that a pass multiplies with, D C of every map.
        self.pass_size = max(sum(self.product_size(j) for j in self.mapped), 1)
        self._edge, self._edge2 = (self._only(kind) for kind in (EDGE, EDGE2))
        self._per_position = any(term.kind == EDGE_X for term in self.terms)
        widest = max((self.terms[j].map.dense_size for j in self.mapped), default=0)
        per_chunk = min(max(CHUNK_VALUES // max(widest, 1), SMALLEST_CHUNK), LARGEST_CHUNK)
        self.chunks = sequence_chunks(problem.offsets, per_chunk)
        # Cliques of sequences that lack labels come with every pass, see `Chunk.subtract_observed`.
        complete = problem if self.convex else replace(problem, weights=problem.weights * problem.complete)
        self._observed_pairs = None if self._per_position else complete.clique_counts(1)
        self._observed_triples = None if self._edge2 is None else complete.clique_counts(2)

    @property
    def convex(self) -> bool:
        """Whether P is, for all labels are observed."""
        return bool(self.problem.complete.all())

    def _only(self, kind: str) -> int | None:
        return next((j for j, term in enumerate(self.terms) if term.kind == kind), None)

    def _term_size(self, term: Cliques) -> int:
        Y = self.problem.label_count
        if term.kept is not None:
            return len(term.kept)
        if term.map is not None:
            return term.map.size * self.columns_of(term)
        return {EDGE: Y * Y + 2 * Y, EDGE2: Y**3}[term.kind]

    def columns_of(self, term: Cliques) -> int:
        """Columns of weights of a term with a map."""
        return self.columns if term.kind == NODE else self.problem.label_count**2

    def product_size(self, term: int) -> int:
        """Weights that a product with the map of a term goes through, D C."""
        return self.terms[term].map.size * self.columns_of(self.terms[term])

    def weights_of(self, theta: np.ndarray, term: int) -> np.ndarray:
        """W [D, columns] of a term with a map: a view of its block, but where only some places have parameters."""
        return self.spread_block(theta[self.blocks[term]], term)

    def spread_block(self, block: np.ndarray, term: int) -> np.ndarray:
        """W [D, columns] out of a term's own block of a vector like theta."""
        cliques = self.terms[term]
        if cliques.kept is None:
            return block.reshape(cliques.map.size, -1)
        weights = np.zeros((cliques.map.size, self.columns_of(cliques)), dtype=block.dtype)
        weights.ravel()[cliques.kept] = block
        return weights

    def block_of(self, weights: np.ndarray, term: int) -> np.ndarray:
        """The block of a vector like theta for W [D, columns] of a term with a map; other places have no say."""
        kept = self.terms[term].kept
        return weights.ravel() if kept is None else weights.ravel()[kept]

    def edges_of(self, theta: np.ndarray) -> chain.Edges:
        """T, s, e and U, those that are there; what is forbidden is not told."""
        Y = self.problem.label_count
        edges = chain.Edges.zeros(Y)
        if self._edge is not None:
            part = theta[self.blocks[self._edge]]
            edges = chain.Edges(part[: Y * Y].reshape(Y, Y), part[Y * Y : Y * Y + Y], part[Y * Y + Y :])
        if self._edge2 is not None:
            edges = edges.with_triples(theta[self.blocks[self._edge2]].reshape(Y, Y, Y))
        return edges

    def potentials_of(self, theta: np.ndarray) -> chain.Edges:
        """What `edges_of` tells, with forbidden transitions at minus infinity."""
        edges = self.edges_of(theta)
        return edges if self.forbidden is None else edges.plus(self.forbidden)

    # ------------------------------------------------------------------------- P and its derivatives

    def evaluate(self, theta: np.ndarray, dtype: np.dtype | type | None = None) -> Evaluation:
        """P, gradient and lower bound; scores in `dtype`, sums always in double precision."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        sums = _Sums(self, dtype)

        def work(part: Chunk) -> tuple:
            likely = part.marginals()
            observed = part.subtract_observed(likely)
            return float(part.weights @ (observed - likely.log_z)), sums.of_chunk(part, likely)

        log_likelihood = 0.0
        for likelihood, parts in self.over_chunks(theta, work, dtype):
            log_likelihood += likelihood
            sums.add(parts)
        if self._observed_pairs is not None:
            sums.edge -= self._observed_pairs
        if self._observed_triples is not None:
            sums.triple -= self._observed_triples
        gradient = sums.collect()

        def add_prior(part: slice, block: int) -> np.ndarray:
            """What the prior adds to P, and what the gradient takes from the lower bound."""
            variance, own, slope = self.sigma2[block], theta[part], gradient[part]
            slope += own / variance
            return np.array([float(own @ own) / (2 * variance), variance / 2 * float(slope @ slope)])

        prior, lower_terms = self.slices.total_of_blocks(add_prior) if self.size else (0.0, 0.0)
        value = prior - log_likelihood
        return Evaluation(value, log_likelihood, gradient, value - lower_terms)

    def hessian_product(
        self, theta: np.ndarray, vector: np.ndarray, dtype: np.dtype | type | None = None
    ) -> np.ndarray:
        """The exact Hessian of P at theta times a vector: one pass with the tangent of forward-backward."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        sums = _Sums(self, dtype)
        directions, shared = self._prepared(vector, dtype), self.edges_of(vector)

        def work(part: Chunk) -> tuple:
            d_scores, d_edges = self._potentials(directions, shared, part.rows, dtype)
            change = chain.tangent(part.scores, part.edges, part.offsets, d_scores, d_edges, part.weights)
            held = part.held()
            if held is not None:
                held.subtract(change, held.tangent(d_scores, d_edges))
            return sums.of_chunk(part, change)

        for parts in self.over_chunks(theta, work, dtype):
            sums.add(parts)
        product = sums.collect()
        for block, variance in zip(self.blocks, self.sigma2, strict=True):
            product[block] += vector[block] / variance
        return product

    def curvature_guess(self) -> np.ndarray:
        """The Hessian's diagonal at theta = 0, other terms ignored.

        Frequent features curve P far more than rare ones: scaled by this, L-BFGS needs about half the passes
        on text.
        """
        counts = self.problem.position_weights()
        N, counts = counts.sum(), None if (counts == 1).all() else counts
        guess = np.empty(self.size)
        for j, (block, term) in enumerate(zip(self.blocks, self.terms, strict=True)):
            squares = N
            if term.map is not None:
                squares = np.repeat(term.map.column_squares(counts), self.columns_of(term))
                squares = squares if term.kept is None else squares[term.kept]
            guess[block] = self.curvature_at_zero(j, squares)
        return guess

    def curvature_at_zero(self, j: int, squares: np.ndarray | float) -> np.ndarray | float:
        """The Hessian's diagonal at theta = 0 for columns of a term with these sums of squares."""
        Y, term = self.problem.label_count, self.terms[j]
        states = {NODE: Y, EDGE_X: Y**2, EDGE: Y**2, EDGE2: Y**3}[term.kind]
        variance = (1 - 1 / states) / states  # of one state's indicator under uniform marginals
        return squares * variance + 1 / term.sigma2

    # ------------------------------------------------------------------------- what else a fit is judged by

    def label_log_probability(self, theta: np.ndarray) -> float:
        """Mean over positions of log p(y_t | x), gold labels by their own marginals, weighted by sequence."""

        def work(part: Chunk) -> float:
            node = part.marginals().node
            known = np.flatnonzero(part.labels >= 0)
            gold = node[known, part.labels[known]].astype(np.float64)
            return float(part.position_weights()[known] @ np.log(np.maximum(gold, SMALLEST_PROBABILITY)))

        return sum(self.over_chunks(theta, work)) / self.problem.weight

    def log_likelihood(self, theta: np.ndarray) -> float:
        """Weighted sum over sequences of log p(y | x), of what is observed of y."""
        return float(self.problem.weights @ self.sequence_log_probabilities(theta))

    def sequence_log_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """log p(y | x) of each sequence, [S]."""

        def work(part: Chunk) -> np.ndarray:
            likely = part.marginals()
            return part.subtract_observed(likely) - likely.log_z

        return np.concatenate(list(self.over_chunks(theta, work)))

    def accuracy(self, theta: np.ndarray) -> float:
        """Part of the positions whose most probable labelling is right, weighted by sequence."""

        def work(part: Chunk) -> float:
            best = chain.viterbi(part.scores, part.edges, part.offsets)[0]
            return float(part.position_weights() @ (best == part.labels))

        return sum(self.over_chunks(theta, work)) / self.problem.weight

    def errors(self, theta: np.ndarray, kind: str = NODE) -> np.ndarray:
        """w (p - e_y) of the cliques of each position, what P's gradient is made of: [N, C], for edge-x [N, Y^2]."""

        def work(part: Chunk) -> np.ndarray:
            part = part.with_edges_repeated() if kind == EDGE_X else part
            found = part.marginals()
            part.subtract_observed(found)
            if kind == EDGE_X:
                return found.edge.reshape(len(part.labels), -1) * part.position_weights()[:, None]
            return gathered(found.node, self.problem.label_count) * part.position_weights()[:, None]

        return np.concatenate(list(self.over_chunks(theta, work)))

    # ------------------------------------------------------------------------- chunks

    def over_chunks(
        self, theta: np.ndarray, work: Callable[[Chunk], Result], dtype: np.dtype | None = None
    ) -> Iterator[Result]:
        """`work` on every chunk of sequences with its potentials, on threads; results in the order of chunks."""
        dtype = self.dtype if dtype is None else dtype
        problem = self.problem
        prepared, shared = self._prepared(theta, dtype), self.potentials_of(theta)

        def chunk(bounds: tuple[int, int]) -> Result:
            first, last = bounds
            offsets = problem.offsets[first : last + 1]
            rows = slice(int(offsets[0]), int(offsets[-1]))
            scores, edges = self._potentials(prepared, shared, rows, dtype)
            return work(
                Chunk(rows, offsets - offsets[0], scores, edges, problem.labels[rows], problem.weights[first:last])
            )

        return self.workers.map(chunk, self.chunks)

    def _prepared(self, theta: np.ndarray, dtype: np.dtype) -> dict[int, object]:
        """Weights of each term with a map in the form that its map wants."""
        narrow = theta
        if dtype != theta.dtype and any(self.terms[j].map.narrows_weights for j in self.mapped):
            narrow = self.slices.empty(dtype)

            def cast(part: slice) -> None:
                narrow[part] = theta[part]

            self.slices.run(cast)
        return {
            j: self.terms[j].map.prepare(
                self.weights_of(narrow if self.terms[j].map.narrows_weights else theta, j), dtype
            )
            for j in self.mapped
        }

    def _potentials(
        self, prepared: dict[int, object], shared: chain.Edges, rows: slice, dtype: np.dtype
    ) -> tuple[np.ndarray, chain.Edges]:
        """Node scores [n, Y] of some rows, and edges: shared ones, or with edge-x terms one for each row."""
        n, Y = rows.stop - rows.start, self.problem.label_count
        columns = np.zeros((n, self.columns), dtype=dtype)
        pairs = np.zeros((n, Y * Y), dtype=dtype) if self._per_position else None
        for j, ready in prepared.items():
            term = self.terms[j]
            term.map.add_scores(ready, rows, columns if term.kind == NODE else pairs)
        scores = spread(columns, Y)
        return scores, shared if pairs is None else shared.plus_pairs(pairs.reshape(n, Y, Y))


class _Sums:
    """Adjoints of all terms, summed over chunks: from errors at positions to a vector like theta."""

    def __init__(self, posterior: Posterior, dtype: np.dtype):
        self._posterior = posterior
        problem, Y = posterior.problem, posterior.problem.label_count
        self._residuals = {
            j: posterior.slices.buffers.empty((problem.positions, posterior.columns_of(posterior.terms[j])), dtype)
            for j in posterior.mapped
        }
        self._summed: dict[int, np.ndarray] = {}
        self.edge, self.start, self.end = np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y)
        self.triple = np.zeros((Y, Y, Y)) if posterior._edge2 is not None else None

    def of_chunk(self, part: Chunk, found: chain.Marginals | chain.Change) -> tuple:
        """What a chunk's errors give: parts of maps, sums of pairs and triples, first and last positions."""
        posterior, node, pairs = self._posterior, found.node, found.edge
        if not (part.weights == 1).all():
            each = part.position_weights()
            node *= each.astype(node.dtype)[:, None]
            if pairs.ndim == 3:
                pairs *= each[:, None, None]
        parts = {}
        for j in posterior.mapped:
            if posterior.terms[j].kind == NODE:
                self._residuals[j][part.rows] = gathered(node, posterior.problem.label_count)
            else:
                self._residuals[j][part.rows] = pairs.reshape(len(node), -1)
            parts[j] = posterior.terms[j].map.adjoint_rows(self._residuals[j][part.rows], part.rows)
        first, last = part.ends()
        return (
            parts,
            pairs.sum(axis=0) if pairs.ndim == 3 else pairs,
            found.triple,
            node[first].sum(axis=0, dtype=np.float64),
            node[last].sum(axis=0, dtype=np.float64),
        )

    def add(self, chunk: tuple) -> None:
        """Chunks are added in their order, so that sums have the same bytes on any number of threads."""
        parts, edge, triple, start, end = chunk
        self.edge += edge
        self.start += start
        self.end += end
        if self.triple is not None:
            self.triple += triple
        for j, part in parts.items():
            if part is not None:
                self._summed[j] = self._summed[j] + part if j in self._summed else part.astype(np.float64)

    def collect(self) -> np.ndarray:
        posterior = self._posterior
        out = posterior.slices.empty()
        for block, (j, term) in zip(posterior.blocks, enumerate(posterior.terms), strict=True):
            if term.map is not None:
                if term.kept is None:
                    place = posterior.weights_of(out, j)
                else:
                    place = posterior.slices.buffers.empty((term.map.size, posterior.columns_of(term)))
                found = term.map.adjoint(self._summed.get(j), self._residuals[j], posterior.workers, place)
                if term.kept is not None:
                    out[block] = posterior.block_of(found, j)
                elif found is not place:
                    place[...] = found
            elif term.kind == EDGE:
                out[block] = np.concatenate([self.edge.ravel(), self.start, self.end])
            else:
                out[block] = self.triple.ravel()
        return out
