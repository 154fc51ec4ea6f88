"""An engine made of parts, one for each portion of the data, wherever a crew has them.

It owns the vectors and the heads of maps (`maps.heads`): what parts multiply with is made ready here, once for all of
them, and what they give is summed in the order of portions and finished here. So each answer has the bits of that of a
`ThreadEngine` on all data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ..chains import Clique, Edges, Problem
from ..maps import Extent, Head, Portions, Rounding
from ..scoring import DECODINGS
from ..system import Workers
from .crews import Crew, Handle
from .engine import Predictions, TermShape
from .inverse_powers import inverse_power
from .parts import DealtBlock, row_plans
from .thread_engine import (
    ObjectiveTerm,
    inverted_blocks,
    label_edges,
    leaves_out,
    scaled_grams,
    spread_rows,
    term_shape,
)
from .vectors import Vectors

# Parameters: with fewer it takes longer to send rows that several parts have apart than to send them several times.
WORTH_DEALING = 1 << 20


@dataclass(frozen=True, eq=False)
class ComposedTerm:
    """A term of P whose map is elsewhere."""

    clique: Clique
    head: Head | None = None  # None: the term looks at labels alone
    kept: np.ndarray | None = None  # [K] int64 places in W that have parameters; None: all of them

    @classmethod
    def of(cls, term: ObjectiveTerm) -> ComposedTerm:
        return cls(term.clique, None if term.map is None else term.map.head, term.kept)


class ComposedEngine:
    """Parts of one problem, asked by a crew; vectors are NumPy arrays of this process."""

    def __init__(
        self,
        problem: Problem,
        composed_terms: Sequence[ComposedTerm],
        crew: Crew,
        handles: Sequence[Handle],
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
        terms: tuple[TermShape, ...] | None = None,
        vectors: Vectors | None = None,
        about: Sequence[list[tuple[np.ndarray | None, np.ndarray | None]]] | None = None,
    ):
        self.problem, self.composed_terms, self.workers = problem, tuple(composed_terms), workers
        self.crew, self.handles = crew, list(handles)
        self.dtype, self.forbidden = np.dtype(dtype), forbidden
        Y = problem.label_count
        self.terms = terms or tuple(term_shape(term.clique, term.head, term.kept, Y) for term in self.composed_terms)
        ends = np.cumsum([term.size for term in self.terms], dtype=np.int64)
        blocks = [slice(int(end) - term.size, int(end)) for term, end in zip(self.terms, ends, strict=True)]
        self.vectors = vectors or Vectors(blocks, workers)
        self.portions = Portions(problem.offsets[problem.borders].astype(np.int64))  # of positions
        # Columns and kept places of each term that each part has; None: all.
        self._about = list(crew.ask(self.handles, "about", self._each())) if about is None else about
        self._extents: dict[int, Extent] = {}
        # Of large blocks: rows that several parts have, and handles of the plans of all parts.
        self._dealt = {j: found for j in range(len(self.terms)) if (found := self._plans(j)) is not None}

    def _plans(self, j: int) -> tuple[np.ndarray, list[Handle]] | None:
        rows = [self._chosen(j, number) for number in range(len(self.handles))]
        if not self.crew.remote or len(rows) < 2 or self.terms[j].size < WORTH_DEALING:
            return None
        if any(own is None for own in rows):
            return None
        shared, plans = row_plans(rows, self._size(j))
        return shared, self.crew.hold(plans)

    # ------------------------------------------------------------------------- parts

    def _each(self, *shared: Any) -> list[tuple]:
        """The same arguments for all parts."""
        return [shared] * len(self.handles)

    def _total(self, question: str, arguments: Iterable[tuple]) -> Any:
        return self.crew.total(self.handles, question, arguments)

    @property
    def _sizes(self) -> list[int]:
        """Rows of each term's parameters, or how many are kept."""
        return [self._size(j) for j in range(len(self.terms))]

    def _size(self, j: int) -> int:
        return self.terms[j].size if self.terms[j].kept is not None else self.terms[j].rows

    def _ready(self, vectors: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Blocks that parts multiply with, for each vector: [D, C] or [K] of a term, in the precision of a pass."""
        found = []
        for j in range(len(self.terms)):
            blocks = [self.vectors.take(vector, j) for vector in vectors]
            if len(vectors) > 1 and self.terms[j].nested:
                blocks = [self.terms[j].of_map(block) for block in blocks]
                found.append(self._side_by_side(self.composed_terms[j].head.ready, blocks))
            else:
                found.append([self._ready_block(j, block) for block in blocks])
        return [list(blocks) for blocks in zip(*found, strict=True)]

    def _side_by_side(self, solve: Callable[..., np.ndarray], blocks: list[np.ndarray], *more: Any) -> list[np.ndarray]:
        """Systems of pivots at several points, solved as an engine of all data does: bits depend on the columns."""
        solved = solve(np.hstack(blocks), *more, self.dtype, self.workers)
        return [np.ascontiguousarray(each) for each in np.split(solved, len(blocks), axis=1)]

    def _ready_block(self, j: int, block: np.ndarray) -> np.ndarray:
        head = self.composed_terms[j].head
        return block if head is None else head.ready(self.terms[j].of_map(block), self.dtype, self.workers)

    def _chosen(self, j: int, number: int) -> np.ndarray | None:
        """Rows of a block that a part has, or places that are kept; None: all."""
        columns, places = self._about[number][j]
        return columns if places is None else places

    def _of_parts(self, j: int, block: np.ndarray) -> Iterator[np.ndarray | DealtBlock]:
        """What each part needs of a block that is ready, made when its turn comes: for all of them it may be much."""
        if j not in self._dealt:
            for number in range(len(self.handles)):
                chosen = self._chosen(j, number)
                yield block if chosen is None else block[chosen]
            return
        rows, plans = self._dealt[j]
        shared = self.crew.hold([block[rows]])[0]
        alone = np.ones(len(block), dtype=bool)
        alone[rows] = False
        for number, plan in enumerate(plans):
            chosen = self._chosen(j, number)
            yield DealtBlock(plan, shared, block[chosen[alone[chosen]]])

    def _parts_of(
        self, vectors: Sequence[np.ndarray], side_by_side: bool = False
    ) -> Iterator[list[list[np.ndarray | DealtBlock]]]:
        """What each part needs of each of some vectors."""
        ready = self._ready(vectors) if side_by_side else [self._ready([vector])[0] for vector in vectors]
        coming = [[self._of_parts(j, block) for j, block in enumerate(blocks)] for blocks in ready]
        for _ in self.handles:
            yield [[next(blocks) for blocks in of_vector] for of_vector in coming]

    def _finished(self, j: int, sums: np.ndarray) -> np.ndarray:
        """The block of a gradient out of what parts sum up to."""
        term, shape = self.composed_terms[j], self.terms[j]
        if term.head is None:
            return sums
        if shape.kept is not None:
            return term.head.finish(sums.ravel(), shape.kept // shape.columns, self.dtype, self.workers)
        return term.head.finish(sums, None, self.dtype, self.workers).ravel()

    def _collected(self, points: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """A vector of the blocks of each point."""
        out = [self.vectors.empty() for _ in points]
        for j, term in enumerate(self.terms):
            sums = [blocks[j] for blocks in points]
            if len(points) > 1 and term.nested:
                finished = self._side_by_side(self.composed_terms[j].head.finish, sums, None)
            else:
                finished = [self._finished(j, own) for own in sums]
            for vector, block in zip(out, finished, strict=True):
                self.vectors.put(vector, j, block.ravel())
        return out

    # ------------------------------------------------------------------------- parameters as arrays

    def edges(self, theta: np.ndarray) -> Edges:
        """T, s, e and U, those that are there, without what is forbidden."""
        return label_edges(self.terms, self.vectors, theta, self.problem.label_count)

    def potentials(self, theta: np.ndarray) -> Edges:
        """The same with forbidden transitions at minus infinity."""
        edges = self.edges(theta)
        return edges if self.forbidden is None else edges.plus(self.forbidden)

    # ------------------------------------------------------------------------- P and its derivatives

    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted log-likelihood and the gradient of its negative; sums are in double precision."""
        return self._evaluated([theta])[0]

    def evaluate_all(self, thetas: Sequence[np.ndarray]) -> Iterator[tuple[float, np.ndarray]]:
        """The same at several points; kernel values that are not held are computed once for all of them."""
        if len(thetas) > 1 and any(term.nested for term in self.terms):
            return iter(self._evaluated(thetas))
        return map(self.evaluate, thetas)

    def _evaluated(self, thetas: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        arguments = ((points, self._sizes) for points in self._parts_of(thetas, side_by_side=True))
        values, gradients = self._total("evaluate", arguments)
        return list(zip(map(float, values), self._collected(gradients), strict=True))

    def in_double(self, held: bool) -> ComposedEngine:
        """The same in double precision, with the same vectors; itself where it is."""
        if self.dtype == np.float64:
            return self
        handles = self.crew.derive(self.handles, "in_double", self._each(held))
        return ComposedEngine(
            self.problem,
            self.composed_terms,
            self.crew,
            handles,
            self.workers,
            np.float64,
            self.forbidden,
            self.terms,
            self.vectors,
            self._about,
        )

    def rounding(self, theta: np.ndarray) -> list[Rounding]:
        """What rounding may change about an evaluation in double precision at theta, for each term."""
        error_sum = 2 * float(self.problem.position_weights().sum())  # |p - e_y| is at most 2, summed over labels
        found = []
        for j, (term, own) in enumerate(zip(self.terms, self.composed_terms, strict=True)):
            if own.head is None:
                found.append(Rounding())
                continue

            def outside(gram: float, j: int = j) -> float:
                return self._total("outside_roots", [(points[0], j, gram) for points in self._parts_of([theta])])

            W = term.of_map(self.vectors.take(theta, j))
            found.append(own.head.rounding(W, error_sum, self.problem.positions, self._extent(j, own.head), outside))
        return found

    def _extent(self, j: int, head: Head) -> Extent:
        if j not in self._extents:
            arguments = []
            for about in self._about:
                columns, scale = about[j][0], head.scale
                if columns is not None and len(scale):
                    scale = scale[columns[columns < len(scale)]]
                arguments.append((j, scale))
            self._extents[j] = reduce(Extent.joined, self.crew.ask(self.handles, "extent", arguments))
        return self._extents[j]

    def product(self, theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """The Hessian of the negative log-likelihood times a vector: a pass with the tangent of forward-backward."""
        arguments = ((*points, self._sizes) for points in self._parts_of([theta, vector]))
        return self._collected([self._total("product", arguments)])[0]

    def blocks(self, theta: np.ndarray, guess: bool = False, settled: float = 0.0) -> ComposedBlocks:
        """Blocks of the Hessian at theta (30)."""
        arguments = [(points[0], guess, settled) for points in self._parts_of([theta])]
        return ComposedBlocks(self, self.crew.derive(self.handles, "blocks", arguments), settled)

    def column_squares(self, term: int) -> np.ndarray:
        """Weighted sum of squares of each column of a term's map, [D]."""
        raw = self._total("raw_squares", self._each(term, self.terms[term].rows))
        return self.composed_terms[term].head.squares(raw.ravel())

    def leading_gram(self, term: int, m: int, most: int) -> np.ndarray:
        """Phi^T Phi of the first m columns of a nested map, from at most so many positions, scaled to all, [m, m]."""
        rows, weights = spread_rows(self.problem, most), self.problem.position_weights()
        inverse = self.composed_terms[term].head.inverse(m, self.dtype)
        arguments = [(term, inverse, own) for own in self._rows_of_parts(rows)]
        return self._total("sampled_gram", arguments) * (weights.sum() / weights[rows].sum())

    def _rows_of_parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """Positions of all by those of each part."""
        within = self.portions.within(rows).slices
        return [rows[part] - whole.start for part, whole in zip(within, self.portions.slices, strict=True)]

    def inverse_power(self, matrix: np.ndarray, shift: float, power: float) -> np.ndarray:
        """(matrix + shift I)^-power of a positive semidefinite matrix [m, m], to 4 %; 0 < power < 1."""
        return inverse_power(matrix, shift, power, self.workers)

    def real_grams(self, theta: np.ndarray, most: Mapping[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Phi^T diag(q) Phi of some terms' real columns, [R, R] each, and what part of all variance is left."""
        rows = {j: spread_rows(self.problem, many) for j, many in most.items()}
        by_part = {j: self._rows_of_parts(own) for j, own in rows.items()}
        arguments = [
            (points[0], {j: own[number] for j, own in by_part.items()})
            for number, points in enumerate(self._parts_of([theta]))
        ]
        return scaled_grams(self.problem, rows, *self._total("sampled_real_grams", arguments))

    def leading_columns(self, term: int, m: int) -> list[Handle]:
        """The first m columns of a nested map, where parts are."""
        inverse = self.composed_terms[term].head.inverse(m, self.dtype)
        return self.crew.derive(self.handles, "leading_features", self._each(term, inverse))

    def narrowed(self, sizes: dict[int, int]) -> ComposedEngine:
        """The same problem on the first m columns of some terms' nested maps."""
        terms = [
            ComposedTerm(term.clique, term.head.leading(sizes[j], self.workers.memory), term.kept)
            if j in sizes
            else term
            for j, term in enumerate(self.composed_terms)
        ]
        handles = self.crew.derive(self.handles, "narrowed", self._each(sizes))
        common = self.crew, handles, self.workers, self.dtype, self.forbidden
        return ComposedEngine(self.problem, terms, *common, about=self._about)

    # ------------------------------------------------------------------------- what else a fit is judged by

    def _of_theta(self, theta: np.ndarray, *others: Any) -> Iterator[tuple]:
        return ((points[0], *others) for points in self._parts_of([theta]))

    def errors(self, theta: np.ndarray, clique: Clique) -> np.ndarray:
        """w (p - e_y) of the cliques of each position, what P's gradient is made of, [N, columns]."""
        return np.concatenate(list(self.crew.ask(self.handles, "errors", self._of_theta(theta, clique))))

    def predictions(self, theta: np.ndarray) -> Predictions:
        """The best labels by each decoder and the probabilities of gold labels, by one forward-backward."""
        found = list(self.crew.ask(self.handles, "predictions", self._of_theta(theta)))
        labels = {name: np.concatenate([each.labels[name] for each in found]) for name in DECODINGS}
        return Predictions(labels, np.concatenate([each.gold for each in found]))

    def mean_label_log_probability(self, theta: np.ndarray) -> float:
        """Mean over positions of log p(y_t | x), gold labels by their own marginals, weighted by sequence."""
        return self._total("label_logs", self._of_theta(theta)) / self.problem.weight

    def accuracy(self, theta: np.ndarray) -> float:
        """Part of the positions whose most probable labelling is right, weighted by sequence."""
        return self._total("right_labels", self._of_theta(theta)) / self.problem.weight

    def sequence_log_probabilities(self, theta: np.ndarray) -> np.ndarray:
        """log p(y | x) of each sequence, [S]."""
        return np.concatenate(list(self.crew.ask(self.handles, "sequence_log_probabilities", self._of_theta(theta))))

    def drawn_labels(self, theta: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Labels drawn from a first-order model by uniform numbers [draws, N], [draws, N]."""
        arguments = [
            (*own, np.ascontiguousarray(chance[:, part]))
            for own, part in zip(self._of_theta(theta), self.portions.slices, strict=True)
        ]
        return np.concatenate(list(self.crew.ask(self.handles, "drawn_labels", arguments)), axis=1)


class ComposedBlocks:
    """Blocks of the Hessian of the negative log-likelihood at one point, where parts are."""

    def __init__(self, engine: ComposedEngine, handles: Sequence[Handle], settled: float):
        self._engine, self._handles, self._settled = engine, handles, settled
        terms, problem = engine.terms, engine.problem
        summary = engine.crew.total(handles, "summary", engine._each())
        self.operations, variance, small, open_rows = summary
        self.unsettled = variance / max(problem.positions * (1 - 1 / problem.label_count), 1e-300)
        labels = [j for j, term in enumerate(terms) if not term.clique.mapped]
        mapped = [j for j, term in enumerate(terms) if term.clique.mapped]
        self._small = dict(zip(labels, small, strict=True))
        self._open = dict(zip(mapped, open_rows, strict=True))

    def small(self, term: int) -> np.ndarray:
        """The block of a term over labels alone: a matrix, or a diagonal that stands in for it."""
        return self._small[term]

    def _leaves_out(self, term: int) -> bool:
        return self._settled > 0 and leaves_out(self._open[term], self._engine.problem.positions)

    def share(self, term: int) -> float:
        """The part of the positions that a product with a term's block goes through."""
        return self._open[term] / max(self._engine.problem.positions, 1) if self._leaves_out(term) else 1.0

    def product(self, term: int, block: np.ndarray) -> np.ndarray:
        """The block of a term with a map times a block of a vector."""
        engine, leave_out = self._engine, self._leaves_out(term)
        ready, size = engine._ready_block(term, block), engine._size(term)
        arguments = [(term, block, leave_out, size) for block in engine._of_parts(term, ready)]
        return engine._finished(term, engine.crew.total(self._handles, "product", arguments))

    def diagonal(self, term: int) -> np.ndarray:
        """The diagonal of the block of a term with an explicit map, [size]."""
        engine = self._engine
        raw = engine.crew.total(self._handles, "raw_diagonal", engine._each(term, engine._size(term)))
        return engine.terms[term].scaled_squares(raw.ravel(), engine.composed_terms[term].head.scale)

    def leading(self, term: int, columns: Sequence[Handle], sigma2: float, settled: float) -> tuple[np.ndarray, int]:
        """Inverses [C, m, m] of the block on leading columns, label by label, and the operations they took."""
        arguments = [(term, own, settled) for own in columns]
        found = self._engine.crew.total(self._handles, "leading_grams", arguments)
        return inverted_blocks(*found, sigma2, self._engine.workers)
