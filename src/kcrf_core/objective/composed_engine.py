"""An engine composed of partitions of the data, wherever an executor holds them.

It owns the vectors and the heads of maps (`maps.heads`). What partitions multiply with is made ready here, their
results are summed in their order and finished here: each result has the bits of a `ThreadEngine` on all data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..chains import Clique, Edges, Problem
from ..maps import Extent, Head
from ..scoring import DECODINGS
from ..system import Workers
from .engine import Engine, EngineBlocks, Predictions, TermShape
from .engine_partition import DealtBlock, MapSpec, partition_specs, row_plans
from .executors import Executor, Handle
from .thread_engine import ObjectiveTerm, inverted_blocks, leaves_out
from .vectors import HostVectors

# Parameters: with fewer it takes longer to send shared rows apart than to send them several times.
WORTH_DEALING = 1 << 20


class ComposedEngine(Engine):
    """Partitions of one problem, called by an executor; vectors are NumPy arrays of this process."""

    lasting = True

    def __init__(
        self,
        problem: Problem,
        terms: Sequence[TermShape],
        heads: dict[int, Head],  # of terms with maps
        executor: Executor,
        handles: Sequence[Handle],
        about: Sequence[list[tuple[np.ndarray | None, np.ndarray | None]]],  # see `EnginePartitionSpec.about`
        workers: Workers,
        dtype: np.dtype | type,
        forbidden: Edges | None,
    ):
        super().__init__(problem, terms, workers, dtype, forbidden)
        self._heads, self.executor, self.handles, self._about = heads, executor, list(handles), about
        # Rows of each term's parameters, or how many are kept.
        self._sizes = [term.rows if term.kept is None else term.size for term in self.terms]
        self.vectors = HostVectors(self.block_slices, workers)
        # Of each term, rows of a block, or places that are kept, that each partition has; None: all.
        self._chosen = [[own if places is None else places for own, places in each] for each in self._about]
        # Of large blocks: rows that several partitions have, and handles of the plans of all partitions.
        self._dealt = {j: found for j in range(len(self.terms)) if (found := self._plans(j)) is not None}

    @classmethod
    def of(
        cls,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        executor: Executor,
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
        maps: Sequence[Sequence[MapSpec] | None] | None = None,
        names: Sequence[str] | None = None,
    ) -> ComposedEngine:
        """Return the engine of maps that are here, or of specs of each term's map, for partitions of these names.

        `workers` are for operations on vectors.
        """
        specs = partition_specs(problem, terms, np.dtype(dtype), forbidden, maps, names)
        shapes, about = [term.shape(problem.label_count) for term in terms], [spec.about() for spec in specs]
        heads = {j: term.map.head for j, term in enumerate(terms) if term.map is not None}
        return cls(problem, shapes, heads, executor, executor.load(specs), about, workers, dtype, forbidden)

    def _plans(self, j: int) -> tuple[np.ndarray, list[Handle]] | None:
        found = [chosen[j] for chosen in self._chosen]
        rows = [own for own in found if own is not None]
        if not self.executor.remote or len(rows) < 2 or len(rows) < len(found) or self.terms[j].size < WORTH_DEALING:
            return None
        shared, plans = row_plans(rows, self._sizes[j])
        return shared, self.executor.hold(plans)

    def head(self, term: int) -> Head:
        return self._heads[term]

    def _each(self, *shared: Any) -> list[tuple]:
        """Return the same arguments for all partitions."""
        return [shared] * len(self.handles)

    def _ready(self, vectors: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Return blocks that partitions multiply with: for each vector, [D, C] or [K] of each term in `dtype`."""
        found = []
        for j in range(len(self.terms)):
            blocks = [self.vectors.take(vector, j) for vector in vectors]
            if len(vectors) > 1 and self.terms[j].nested:
                blocks = [self.terms[j].of_map(block) for block in blocks]
                found.append(self._side_by_side(self.head(j).ready, blocks))
            else:
                found.append([self._ready_block(j, block) for block in blocks])
        return [list(blocks) for blocks in zip(*found, strict=True)]

    def _side_by_side(self, solve: Callable[..., np.ndarray], blocks: list[np.ndarray], *more: Any) -> list[np.ndarray]:
        """Solve systems of pivots at several points as an engine of all data does: bits depend on the columns."""
        solved = solve(np.hstack(blocks), *more, self.dtype, self.workers)
        return [np.ascontiguousarray(each) for each in np.split(solved, len(blocks), axis=1)]

    def _ready_block(self, j: int, block: np.ndarray) -> np.ndarray:
        if not self.terms[j].clique.mapped:
            return block
        return self.head(j).ready(self.terms[j].of_map(block), self.dtype, self.workers)

    def _for_partitions(self, j: int, block: np.ndarray) -> Iterator[np.ndarray | DealtBlock]:
        """Yield what each partition needs of a block that is ready, one at a time: all of them may be much."""
        if j not in self._dealt:
            for each in self._chosen:
                yield block if each[j] is None else block[each[j]]
            return
        rows, plans = self._dealt[j]
        shared = self.executor.hold([block[rows]])[0]
        alone = np.ones(len(block), dtype=bool)
        alone[rows] = False
        for plan, each in zip(plans, self._chosen, strict=True):
            chosen = each[j]
            assert chosen is not None
            yield DealtBlock(plan, shared, block[chosen[alone[chosen]]])

    def _vectors_for_partitions(
        self, vectors: Sequence[np.ndarray], side_by_side: bool = False
    ) -> Iterator[list[list[np.ndarray | DealtBlock]]]:
        """Yield what each partition needs of each of some vectors."""
        ready = self._ready(vectors) if side_by_side else [self._ready([vector])[0] for vector in vectors]
        coming = [[self._for_partitions(j, block) for j, block in enumerate(blocks)] for blocks in ready]
        for _ in self.handles:
            yield [[next(blocks) for blocks in of_vector] for of_vector in coming]

    def _finished(self, j: int, sums: np.ndarray) -> np.ndarray:
        """Return the block of a gradient from the sum over partitions."""
        shape = self.terms[j]
        if not shape.clique.mapped:
            return sums
        head = self.head(j)
        if shape.kept is not None:
            return head.finish(sums.ravel(), shape.kept // shape.columns, self.dtype, self.workers)
        return head.finish(sums, None, self.dtype, self.workers).ravel()

    def _collected(self, points: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """Return a vector of the blocks of each point."""
        out = [self.vectors.empty() for _ in points]
        for j, term in enumerate(self.terms):
            sums = [blocks[j] for blocks in points]
            if len(points) > 1 and term.nested:
                finished = self._side_by_side(self.head(j).finish, sums, None)
            else:
                finished = [self._finished(j, own) for own in sums]
            for vector, block in zip(out, finished, strict=True):
                self.vectors.put(vector, j, block.ravel())
        return out

    def _evaluate_together(self, thetas: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        arguments = ((points, self._sizes) for points in self._vectors_for_partitions(thetas, side_by_side=True))
        values, gradients = self.executor.total(self.handles, "evaluate", arguments)
        return list(zip(map(float, values), self._collected(gradients), strict=True))

    def _remade(self, how: str, given: Any, heads: dict[int, Head], dtype: np.dtype | type) -> ComposedEngine:
        """Return the engine of partitions that a question to these makes of the same data."""
        handles, Y = self.executor.derive(self.handles, how, self._each(given)), self.problem.label_count
        terms = [
            TermShape.of(term.clique, heads[j], term.kept, Y) if heads.get(j) is not self._heads.get(j) else term
            for j, term in enumerate(self.terms)
        ]
        about = self.executor, handles, self._about, self.workers
        return ComposedEngine(self.problem, terms, heads, *about, dtype, self.forbidden)

    def _in_double(self, held: bool) -> ComposedEngine:
        double = self._remade("in_double", held, self._heads, np.float64)
        double.vectors = self.vectors
        return double

    def narrowed(self, sizes: dict[int, int]) -> ComposedEngine:
        leading = {j: self.pivot_head(j).leading(m, self.workers.memory) for j, m in sizes.items()}
        return self._remade("narrowed", sizes, {**self._heads, **leading}, self.dtype)

    def _find_extent(self, term: int, scale: np.ndarray) -> Extent:
        arguments = []
        for about in self._about:
            columns, own = about[term][0], scale
            if columns is not None and len(scale):
                own = scale[columns[columns < len(scale)]]
            arguments.append(("extent", term, own))
        return reduce(Extent.joined, self.executor.ask(self.handles, "of_term", arguments))

    def outside_roots(self, theta: np.ndarray, term: int, gram: float) -> float:
        return self.executor.total(self.handles, "at", self._asked(theta, "outside_roots", term, gram))

    def product(self, theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        arguments = ((*points, self._sizes) for points in self._vectors_for_partitions([theta, vector]))
        return self._collected([self.executor.total(self.handles, "product", arguments)])[0]

    def blocks(self, theta: np.ndarray, diagonals: bool = False, negligible: float = 0.0) -> ComposedBlocks:
        arguments = [(points[0], diagonals, negligible) for points in self._vectors_for_partitions([theta])]
        return ComposedBlocks(self, self.executor.derive(self.handles, "blocks", arguments), negligible)

    def raw_squares(self, term: int) -> np.ndarray:
        return self.executor.total(self.handles, "raw_squares", self._each(term, self.terms[term].rows)).ravel()

    def sampled_gram(self, term: int, inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
        arguments = [("sampled_gram", term, inverse, own) for own in self._rows_by_partition(rows)]
        return self.executor.total(self.handles, "of_term", arguments)

    def _rows_by_partition(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return positions by partition, counted from its first one."""
        within = self.partitions.within(rows).slices
        return [rows[part] - whole.start for part, whole in zip(within, self.partitions.slices, strict=True)]

    def sampled_real_grams(self, theta: np.ndarray, rows: dict[int, np.ndarray]) -> tuple[list[np.ndarray], float]:
        by_part = {j: self._rows_by_partition(own) for j, own in rows.items()}
        arguments = [
            (*asked, {j: own[number] for j, own in by_part.items()})
            for number, asked in enumerate(self._asked(theta, "sampled_real_grams"))
        ]
        return self.executor.total(self.handles, "at", arguments)

    def leading_features(self, term: int, inverse: np.ndarray) -> list[Handle]:
        return self.executor.derive(self.handles, "of_term", self._each("leading_features", term, inverse))

    def _asked(self, theta: np.ndarray, question: str, *others: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the arguments of `EnginePartition.at` for each partition."""
        return ((points[0], question, *others) for points in self._vectors_for_partitions([theta]))

    def _joined(self, theta: np.ndarray, question: str, *others: Any) -> np.ndarray:
        """Join the arrays of all partitions."""
        return np.concatenate(list(self.executor.ask(self.handles, "at", self._asked(theta, question, *others))))

    def errors(self, theta: np.ndarray, clique: Clique) -> np.ndarray:
        return self._joined(theta, "errors", clique)

    def predictions(self, theta: np.ndarray) -> Predictions:
        found = list(self.executor.ask(self.handles, "at", self._asked(theta, "predictions")))
        labels = {name: np.concatenate([each.labels[name] for each in found]) for name in DECODINGS}
        return Predictions(labels, np.concatenate([each.gold for each in found]))

    def best_labels(self, theta: np.ndarray, bonuses: np.ndarray) -> np.ndarray:
        return self._joined(theta, "best_labels", bonuses)

    def sequence_log_probabilities(self, theta: np.ndarray) -> np.ndarray:
        return self._joined(theta, "sequence_log_probabilities")

    def drawn_labels(self, theta: np.ndarray, chance: np.ndarray) -> np.ndarray:
        arguments = [
            (*asked, np.ascontiguousarray(chance[:, part]))
            for asked, part in zip(self._asked(theta, "drawn_labels"), self.partitions.slices, strict=True)
        ]
        return np.concatenate(list(self.executor.ask(self.handles, "at", arguments)), axis=1)


class ComposedBlocks(EngineBlocks):
    """Blocks of the Hessian of the negative log-likelihood at one point, where partitions are."""

    def __init__(self, engine: ComposedEngine, handles: Sequence[Handle], negligible: float):
        self._engine, self._handles, self._settled = engine, handles, negligible
        summary = engine.executor.total(handles, "summary", engine._each())
        self.operations, variance, small, open_rows = summary
        self.variance_share = engine.part_of_variance(variance)
        self.small = dict(zip(engine.labelled, small, strict=True))
        self._open = dict(zip(engine.mapped, open_rows, strict=True))

    def _leaves_out(self, term: int) -> bool:
        return self._settled > 0 and leaves_out(self._open[term], self._engine.problem.positions)

    def share(self, term: int) -> float:
        return self._open[term] / max(self._engine.problem.positions, 1) if self._leaves_out(term) else 1.0

    def product(self, term: int, block: np.ndarray) -> np.ndarray:
        engine, leave_out = self._engine, self._leaves_out(term)
        ready, size = engine._ready_block(term, block), engine._sizes[term]
        arguments = [(term, block, leave_out, size) for block in engine._for_partitions(term, ready)]
        return engine._finished(term, engine.executor.total(self._handles, "product", arguments))

    def diagonal(self, term: int) -> np.ndarray:
        engine = self._engine
        raw = engine.executor.total(self._handles, "raw_diagonal", engine._each(term, engine._sizes[term]))
        return engine.terms[term].scaled_squares(raw.ravel(), engine.head(term).scale)

    def leading(self, term: int, columns: Sequence[Handle], sigma2: float, negligible: float) -> tuple[np.ndarray, int]:
        arguments = [(term, own, negligible) for own in columns]
        grams, counts = self._engine.executor.total(self._handles, "leading_grams", arguments)
        return inverted_blocks(grams, counts, sigma2, self._engine.workers)
