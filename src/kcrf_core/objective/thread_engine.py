"""The engine that works in this process: chunks on threads, one BLAS thread inside each, taken up in their order.

Its blocks of the Hessian (30) take each term by itself and its cliques as independent of each other. A term with a map
has the operator Phi^T [(diag p - p p^T)(Phi v)], p the marginals of its cliques; transitions have a small matrix. Where
that would be large, for triples, and where `diagonals` are enough, sum_t p_t stands in, as diag p - p p^T <=
diag p. Cliques whose p_t is up to `negligible` from 0 or 1 are left out where that pays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice, pairwise
from operator import add, iadd
from typing import TypeVar

import numpy as np

from ..chains import ABOVE, MATRIX, NODE, Clique, Edges, MappedClique, PartialSum, Potentials, Problem, Sums, chain
from ..maps import (
    Extent,
    FeatureMap,
    Head,
    KeptWeights,
    Partitions,
    new_sums,
    ordered_sums,
    sum_of_parts,
    summed_by,
    tree_sum,
)
from ..scoring import DECODINGS
from ..system import Workers, hand_back, linear_algebra, ranges
from ._passes import MOST_MAPS, Passes
from .chunks import Chunk, ScoredChunk, make_chunks, make_tasks
from .engine import Engine, EngineBlocks, Predictions, TermShape
from .vectors import HostVectors, Vector

ROWS_AT_ONCE, COLUMNS_AT_ONCE = 2048, 32
WORTH_LEAVING_OUT = 0.4  # share of the rows: rows that stay are copied once for all products

Result = TypeVar("Result")
ChunkPotentials = Callable[[Chunk], list[tuple[np.ndarray, Edges]]]  # scores and edges of a chunk at some points


@dataclass(frozen=True)
class ObjectiveTerm:
    """A term of P: the type of its cliques, their prior variance, and a map where they look at the input."""

    clique: Clique
    sigma2: float
    map: FeatureMap | None = None
    kept: np.ndarray | None = None  # [K] int64 places in W, row by row, that have parameters; None: all of them
    threshold: float | np.ndarray = 0.0  # of an L1 penalty: of each parameter, or [D] of those in each row of W

    def thresholds(self, Y: int) -> np.ndarray:
        """Return the thresholds of all parameters, [size]."""
        shape = self.shape(Y)
        if not isinstance(self.threshold, np.ndarray):
            return np.full(shape.size, float(self.threshold))
        if self.kept is None:
            return np.repeat(self.threshold, shape.columns)
        return self.threshold[self.kept // shape.columns]

    def shape(self, Y: int) -> TermShape:
        return TermShape.of(self.clique, self.map, self.kept, Y)


class ThreadEngine(Engine):
    """Chunks of one problem on threads of this process; vectors are NumPy arrays."""

    def __init__(
        self,
        problem: Problem,
        objective_terms: Sequence[ObjectiveTerm],
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
    ):
        shapes = [term.shape(problem.label_count) for term in objective_terms]
        super().__init__(problem, shapes, workers, dtype, forbidden)
        self.objective_terms = tuple(objective_terms)
        self.maps = {j: term.map for j, term in enumerate(self.objective_terms) if term.map is not None}
        # Vectors of this process, which sums are put into; a subclass may hand out others.
        self.vectors = self.host = HostVectors(self.block_slices, workers)
        # Terms of one type add their scores up before they meet the potentials.
        self._types = list(dict.fromkeys(self.mapped.values()))
        self.per_position = any(clique.per_position for clique in self._types)
        self.second_order = any(term.clique.second_order for term in self.terms)
        widths = [own.dense_size for own in self.maps.values()]
        self.chunks = make_chunks(problem, max(widths, default=0))
        Y = problem.label_count
        sum_sizes = [width * self.terms[j].columns for width, j in zip(widths, self.mapped, strict=True)]
        borders, among_tasks = make_tasks(self.chunks, 8 * (Y * Y + 2 * Y + sum(sum_sizes)), self.partitions.borders)
        self._tasks = [self.chunks[first:last] for first, last in pairwise(borders.tolist())]
        self._partition_tasks = Partitions(among_tasks)
        self._passes = self._make_passes(borders)
        # Cliques of sequences that lack labels come with every pass, see `ScoredChunk.subtract_observed`.
        self._observed = [
            Sums.observed(problem.partition(number), self.per_position, self.second_order)
            for number in range(len(self.partitions.borders) - 1)
        ]

    def _make_passes(self, borders: np.ndarray) -> Passes | None:
        """Passes without the interpreter, where the problem allows them."""
        alone = [clique.axes for clique in self._types] == [1] and not self.second_order
        if not alone or not self.problem.complete.all() or not self.problem.positions:
            return None
        problem, ends = self.problem, np.cumsum([0, *(len(chunk.weights) for chunk in self.chunks)])
        return Passes(
            borders,
            ends.astype(np.int64),
            np.ascontiguousarray(problem.offsets, dtype=np.int64),
            np.ascontiguousarray(problem.labels, dtype=np.int32),
            np.ascontiguousarray(problem.weights, dtype=np.float64),
            np.array([chunk.cut for chunk in self.chunks], dtype=np.uint8),
            problem.label_count,
        )

    def head(self, term: int) -> Head:
        return self.maps[term].head

    def _evaluate_together(self, thetas: Sequence[Vector]) -> list[tuple[float, Vector]]:
        adjoint = _Adjoint(self, len(thetas))
        edges = [self.potentials(theta) for theta in thetas]
        prepared = {j: self._prepared(j, thetas) for j in self.mapped}
        if len(thetas) > 1 or not self._evaluate_natively(adjoint, edges[0], prepared):
            potentials = partial(self._potentials_of, prepared, edges)
            self.workers.fold(partial(_likelihoods, adjoint, potentials), self._tasks, adjoint.add)
        for partition, observed in zip(adjoint.partitions, self._observed, strict=True):
            for sums in partition.sums:
                sums.add(observed, np.subtract)
        likelihoods = tree_sum([partition.log_likelihoods for partition in adjoint.partitions]).tolist()
        return list(zip(likelihoods, adjoint.collect(), strict=True))

    def _evaluate_natively(self, adjoint: _Adjoint, edges: Edges, prepared: dict[int, object]) -> bool:
        """Evaluate one point without the interpreter; False where some part of it needs that.

        Both ways give the same bits: which one it is may depend on the memory there is.
        """
        if self._passes is None:
            return False
        columns = self.terms[next(iter(self.mapped))].columns
        products, terms = [], []
        for j, ready in prepared.items():
            own = self.maps[j].native(ready, columns)
            if own is None:
                return False
            products += own
            terms += [j] * len(own)
        if len(products) > MOST_MAPS:
            return False
        start, end = (np.ascontiguousarray(values, dtype=np.float64) for values in (edges.start, edges.end))
        small, sums, bad = self._passes.evaluate(
            self.workers.team, products, edges.stacked()[0], start, end, adjoint.residuals[self._types[0]]
        )
        if bad >= 0:
            return False  # the other way says what is wrong with it
        Y = self.problem.label_count
        for partition, tasks in zip(adjoint.partitions, self._partition_tasks.slices, strict=True):
            total = np.add.reduce(small[tasks], axis=0)  # one task after another
            pairs, (first, last) = total[: Y * Y].reshape(Y, Y), total[Y * Y : -1].reshape(2, Y)
            partition.log_likelihoods[0] = total[-1]
            partition.sums[0].add(Sums(pairs, first, last, None))
            for j, parts in zip(terms, sums, strict=True):
                if parts is not None:
                    partition.parts[j] = np.empty(parts.shape[1:])
                    ordered_sums(self.workers.team, parts[tasks], partition.parts[j])
        return True

    def _remade(self, terms: Sequence[ObjectiveTerm], dtype: np.dtype | type) -> ThreadEngine:
        """Return an engine of the same kind for the same problem with other maps."""
        return ThreadEngine(self.problem, terms, self.workers, dtype, self.forbidden)

    def _in_double(self, held: bool) -> ThreadEngine:
        terms = [
            term if term.map is None else replace(term, map=term.map.in_double(held)) for term in self.objective_terms
        ]
        double = self._remade(terms, np.float64)
        self.host.buffers.forget_unused()  # errors in single precision
        hand_back()
        double.vectors, double.host = self.vectors, self.host  # with the memory that it has for more of them
        double.terms = self.terms  # with places that have been looked at
        return double

    def narrowed(self, sizes: dict[int, int]) -> ThreadEngine:
        terms = [
            replace(term, map=self.maps[j].leading(sizes[j])) if j in sizes else term
            for j, term in enumerate(self.objective_terms)
        ]
        return self._remade(terms, self.dtype)

    def _find_extent(self, term: int, scale: np.ndarray) -> Extent:
        return self.maps[term].extent(scale)

    def outside_roots(self, theta: Vector, term: int, gram: float) -> float:
        return self.maps[term].outside_roots(gram, self.errors(theta, self.mapped[term]), self.partitions)

    def product(self, theta: Vector, vector: Vector) -> Vector:
        adjoint = _Adjoint(self)
        direction = self._potentials([self.edges(vector)], [vector])
        potentials = self._potentials([self.potentials(theta)], [theta])
        self.workers.fold(partial(_tangent, adjoint, potentials, direction), self._tasks, adjoint.add)
        return adjoint.collect()[0]

    def blocks(self, theta: Vector, diagonals: bool = False, negligible: float = 0.0) -> ThreadBlocks:
        return ThreadBlocks(self, theta, diagonals, negligible)

    def raw_squares(self, term: int) -> np.ndarray:
        counts = self.problem.position_weights()
        return self.maps[term].raw_squares(None if (counts == 1).all() else counts, self.partitions)

    def sampled_gram(self, term: int, inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
        m, weights = len(inverse), self.problem.position_weights()
        leading = self.maps[term].leading(m)

        def of_partition(part: slice) -> np.ndarray:
            own, total = rows[part], np.zeros((m, m))
            if not len(own):
                return total
            phi = leading.subset(own).features(self.workers, inverse)
            weighted = phi * weights[own, None].astype(phi.dtype)

            def task(some: slice) -> None:
                total[some] = weighted[:, some].T @ phi

            self.workers.run(task, ranges(m, COLUMNS_AT_ONCE))
            return total

        return summed_by(self.partitions.within(rows), len(rows), of_partition)

    def sampled_real_grams(self, theta: Vector, rows: dict[int, np.ndarray]) -> tuple[list[np.ndarray], float]:
        found = self._by_partition(self.over_chunks(theta, partial(_real_parts, self, rows)))
        grams = [tree_sum([reduce(add, (grams[j] for grams, _ in part)) for part in found]) for j in rows]
        return grams, tree_sum([math.fsum(left for _, left in part) for part in found])

    def leading_features(self, term: int, inverse: np.ndarray) -> np.ndarray:
        leading = self.maps[term].leading(len(inverse))
        rows = (np.arange(part.start, part.stop) for part in self.partitions.slices)
        return np.concatenate([leading.subset(own).features(self.workers, inverse) for own in rows])

    def errors(self, theta: Vector, clique: Clique) -> np.ndarray:
        assert isinstance(clique, MappedClique)
        return np.concatenate(list(self.over_chunks(theta, partial(_errors, clique))))

    def predictions(self, theta: Vector) -> Predictions:
        path, posterior, gold = map(np.concatenate, zip(*self.over_chunks(theta, _predictions), strict=True))
        return Predictions(dict(zip(DECODINGS, (path, posterior), strict=True)), gold)

    def best_labels(self, theta: Vector, bonuses: np.ndarray) -> np.ndarray:
        return np.concatenate(list(self.over_chunks(theta, partial(_best_labels, bonuses))))

    def sequence_log_probabilities(self, theta: Vector) -> np.ndarray:
        return np.concatenate(list(self.over_chunks(theta, _sequence_logs)))

    def drawn_labels(self, theta: Vector, chance: np.ndarray) -> np.ndarray:
        return np.concatenate(list(self.over_chunks(theta, partial(_drawn, chance))), axis=1)

    def _by_partition(self, found: Iterable[Result]) -> list[list[Result]]:
        """Group what was found of chunks by partitions."""
        ends = np.cumsum([len(chunk.labels) for chunk in self.chunks])
        counts = np.diff(np.searchsorted(ends, self.partitions.borders, side="right"))
        found = iter(found)
        return [list(islice(found, count)) for count in counts.tolist()]

    def over_chunks(self, theta: Vector, work: Callable[[ScoredChunk], Result]) -> Iterator[Result]:
        """Call `work` for every chunk with its potentials, on threads; results come in the order of chunks."""
        potentials = self._potentials([self.potentials(theta)], [theta])
        return self.workers.map(lambda chunk: work(chunk.scored(*potentials(chunk)[0])), self.chunks)

    def _potentials(self, shared: Sequence[Edges], vectors: Sequence[Vector]) -> ChunkPotentials:
        """Return a function to the scores and edges of a chunk, for each of some vectors with their shared edges."""
        prepared = {j: self._prepared(j, vectors) for j in self.mapped}
        return partial(self._potentials_of, prepared, shared)

    def _prepared(self, j: int, vectors: Sequence[Vector]) -> object:
        """Return the weights of a term with a map, side by side, in the form that its map wants."""
        feature_map, term, empty = self.maps[j], self.terms[j], self.host.buffers.empty
        if len(vectors) == 1 and term.kept is not None:
            kept = term.of_map(self.block(vectors[0], j))
            return feature_map.prepare(kept, self.dtype, self.workers, empty)
        if feature_map.narrows_weights:
            vectors = [self.vectors.cast(vector, self.dtype) for vector in vectors]
        weights = [term.weights(self.block(vector, j)) for vector in vectors]
        return feature_map.prepare(
            weights[0] if len(weights) == 1 else np.hstack(weights), self.dtype, self.workers, empty
        )

    def _potentials_of(
        self, prepared: dict[int, object], shared: Sequence[Edges], chunk: Chunk
    ) -> list[tuple[np.ndarray, Edges]]:
        """Return node scores [n, Y] of a chunk and edges: shared ones, or one for each row where terms ask for that."""
        n, Y, points = chunk.rows.stop - chunk.rows.start, self.problem.label_count, len(shared)
        scores: dict[MappedClique, np.ndarray] = {}
        for j, ready in prepared.items():
            clique = self.mapped[j]
            fresh = clique not in scores
            if fresh:
                scores[clique] = np.empty((n, points * clique.columns(Y)), self.dtype)
            self.maps[j].add_scores(ready, chunk.rows, scores[clique], fresh)
        found = []
        for point, edges in enumerate(shared):
            out = Potentials(None, edges)
            for clique, values in scores.items():
                own = values if points == 1 else np.ascontiguousarray(values[:, _columns_of(point, clique.columns(Y))])
                clique.add(own, out, Y)
            found.append((np.zeros((n, Y), dtype=self.dtype) if out.scores is None else out.scores, out.edges))
        return found


def _columns_of(point: int, width: int) -> slice:
    """Return the columns of one of several points, side by side."""
    return slice(point * width, (point + 1) * width)


class _TaskSums:
    """Sums over the chunks of one task, or of a partition, for each point."""

    def __init__(self, engine: ThreadEngine, points: int):
        Y = engine.problem.label_count
        self.log_likelihoods = np.zeros(points)
        self.sums = [Sums.zeros(Y, engine.second_order) for _ in range(points)]
        self.parts: dict[int, np.ndarray] = {}  # of terms whose maps sum up errors by rows

    def add(self, other: _TaskSums) -> None:
        self.log_likelihoods += other.log_likelihoods
        for own, more in zip(self.sums, other.sums, strict=True):
            own.add(more)
        for j, part in other.parts.items():
            if j in self.parts:
                self.parts[j] += part
            else:
                self.parts[j] = part


class _Adjoint:
    """Adjoints of all terms, summed over tasks: from errors at positions to vectors like theta, one for each point."""

    def __init__(self, engine: ThreadEngine, points: int = 1):
        self.engine, self.points = engine, points
        N, Y, empty = engine.problem.positions, engine.problem.label_count, engine.host.buffers.empty
        # Terms of one type have the same errors.
        self.residuals = {c: empty((N, points * c.columns(Y)), engine.dtype) for c in engine._types}
        self.partitions = [_TaskSums(engine, points) for _ in engine.partitions.slices]
        sizes = np.diff(engine._partition_tasks.borders)
        self._coming = iter(np.repeat(np.arange(len(sizes)), sizes).tolist())  # partitions of tasks, in their order

    def add(self, task: _TaskSums) -> None:
        """Add the sums of the next task; tasks come in their order."""
        self.partitions[next(self._coming)].add(task)

    def add_errors(self, task: _TaskSums, chunk: Chunk, found: Sequence[chain.Change]) -> None:
        """Weigh the errors of a chunk, and add them to the sums of its task."""
        for total, each in zip(task.sums, found, strict=True):
            total.add(chunk.weighted_sums(each))
        self.add_parts(task, chunk, found)

    def add_parts(self, task: _TaskSums, chunk: Chunk, found: Sequence[chain.Change]) -> None:
        """Add errors that are weighted already to the sums of maps."""
        engine, rows, Y = self.engine, chunk.rows, self.engine.problem.label_count
        own = {clique: residuals[rows] for clique, residuals in self.residuals.items()}
        for clique, errors in own.items():
            for point, each in enumerate(found):
                values = clique.gather(each, Y)
                if not np.may_share_memory(values, errors):  # they are where they belong already
                    errors[:, _columns_of(point, clique.columns(Y))] = values
        for j, feature_map in engine.maps.items():
            part = feature_map.adjoint_rows(own[engine.mapped[j]], rows, task.parts.get(j))
            if part is not None:
                task.parts[j] = part

    def collect(self) -> list[Vector]:
        """Return the vector of each point."""
        engine = self.engine
        out = [engine.host.empty() for _ in range(self.points)]
        for j, clique in engine.labelled.items():
            for point, vector in enumerate(out):
                found = tree_sum([clique.collect(partition.sums[point]) for partition in self.partitions])
                engine.host.put(vector, j, found)
        for j, own in engine.mapped.items():
            term = engine.terms[j]
            if self.points == 1:
                place = term.of_map(engine.host.take(out[0], j))
            else:
                place = engine.host.buffers.empty((term.rows, self.points * term.columns))
            parts = [partition.parts[j] for partition in self.partitions if j in partition.parts]
            summed = tree_sum(parts, iadd) if parts else None
            made = engine.maps[j].adjoint(summed, self.residuals[own], engine.workers, place, engine.partitions)
            if isinstance(made, KeptWeights) or isinstance(place, KeptWeights):
                continue  # it is in its place
            if self.points > 1:
                for point, vector in enumerate(out):
                    engine.host.put(vector, j, term.block(made[:, _columns_of(point, term.columns)]))
            elif made is not place:
                place[...] = made
        return [engine.vectors.from_array(vector) for vector in out]


class ThreadBlocks(EngineBlocks):
    """Blocks of the Hessian of the negative log-likelihood at one point."""

    def __init__(self, engine: ThreadEngine, theta: Vector, diagonals: bool, negligible: float):
        self._engine, self._settled = engine, negligible
        problem, Y = engine.problem, engine.problem.label_count
        self._weights = problem.position_weights()
        forms = {j: clique.block_form(Y, diagonals) for j, clique in engine.labelled.items()}
        found = list(engine.over_chunks(theta, partial(_block_parts, engine, forms, negligible)))
        marginals = [each for each, _ in found]
        self._marginals = {
            clique: np.concatenate([each[clique] for each in marginals]).astype(engine.dtype, copy=False)
            for clique in marginals[0]
        }  # of cliques, [N, states]
        # Operations beyond those of half a pass.
        matrices = [j for j, form in forms.items() if form == MATRIX]
        self.operations = sum(
            2 * engine.labelled[j].states(Y) ** 2 * p[j].positions for _, p in found for j in matrices
        )
        by_partition = engine._by_partition(parts for _, parts in found)
        self.small = {}
        for j, form in forms.items():
            found_blocks = []
            for number, parts in enumerate(by_partition):
                node = self._marginals[NODE][engine.partitions.slices[number]]
                total = reduce(add, (part[j].total for part in parts))
                found_blocks.append(engine.labelled[j].finish_block(total, problem.partition(number), node, form))
            self.small[j] = tree_sum(found_blocks)
        self._open: dict[int, tuple[FeatureMap, np.ndarray]] = {}
        p = self._marginals[NODE]
        self.variance = summed_by(engine.partitions, len(p), lambda rows: float((p[rows] * (1 - p[rows])).sum()))
        self.variance_share = engine.part_of_variance(self.variance)

    def open_part(self, term: int) -> tuple[FeatureMap, np.ndarray]:
        """Return a term's map on positions that are not nearly deterministic, and which they are."""
        if term not in self._open:
            own, feature_map = self._engine.mapped[term], self._engine.maps[term]
            rows = np.flatnonzero(self._marginals[own].max(axis=1) < 1 - self._settled)
            leave_out = leaves_out(len(rows), len(self._weights)) and self._settled > 0
            self._open[term] = feature_map.subset(rows) if leave_out else feature_map, rows
        return self._open[term]

    def share(self, term: int) -> float:
        N = len(self._weights)
        rows = len(self.open_part(term)[1]) if self._settled else N
        return rows / max(N, 1) if leaves_out(rows, N) else 1.0

    def product(self, term: int, block: Vector, leave_out: bool | None = None) -> Vector:
        """Multiply the block of a term by a block of a vector; `leave_out` decides for all partitions alike."""
        engine, shape = self._engine, self._engine.terms[term]
        Y, dtype = engine.problem.label_count, engine.dtype
        feature_map, partitions = engine.maps[term], engine.partitions
        chosen: slice | np.ndarray = slice(None)
        if self.share(term) < 1 if leave_out is None else leave_out:
            own, chosen = self.open_part(term)
            if own is feature_map:
                self._open[term] = own, _ = feature_map.subset(chosen), chosen
            feature_map, partitions = own, partitions.within(chosen)
        ready = feature_map.prepare(shape.of_map(engine.vectors.to_array(block)), dtype, engine.workers)
        clique = engine.mapped[term]
        weights, p = self._weights[chosen].astype(dtype), self._marginals[clique][chosen]
        residuals = np.empty((len(weights), shape.columns), dtype=dtype)

        def work(rows: slice) -> np.ndarray | None:
            columns = np.empty((rows.stop - rows.start, shape.columns), dtype=dtype)
            feature_map.add_scores(ready, rows, columns, True)
            residuals[rows] = clique.covariance_product(p[rows], columns, Y) * weights[rows][:, None]
            return feature_map.adjoint_rows(residuals[rows], rows)

        sums = []
        for part in partitions.slices:
            pieces = ranges(part.stop - part.start, ROWS_AT_ONCE)
            pieces = [slice(part.start + piece.start, part.start + piece.stop) for piece in pieces]
            sums.append(sum_of_parts(work, pieces, engine.workers))
        sums = [own for own in sums if own is not None]
        summed = tree_sum(sums) if sums else None
        if summed is None and feature_map.dense_size:
            summed = new_sums(feature_map.dense_size, shape.columns, dtype)
        out = np.empty(shape.size)
        found = feature_map.adjoint(summed, residuals, engine.workers, shape.of_map(out), partitions)
        return engine.vectors.from_array(out if isinstance(found, KeptWeights) else found.ravel())

    def diagonal(self, term: int) -> np.ndarray:
        engine = self._engine
        return engine.terms[term].scaled_squares(self.raw_diagonal(term), engine.head(term).scale)

    def raw_diagonal(self, term: int) -> np.ndarray:
        """Return the diagonal without factors of columns, summed over rows."""
        engine, shape = self._engine, self._engine.terms[term]
        feature_map, clique = engine.maps[term], engine.mapped[term]
        p = self._marginals[clique]
        if shape.columns == p.shape[1]:
            variance = p * (1 - p)
        else:  # one column of scores for two labels
            variance = clique.covariance_product(p, np.ones_like(p[:, :1]), engine.problem.label_count)
        out = np.empty(shape.size)

        def work(column: int) -> None:
            squares = feature_map.raw_squares(self._weights * variance[:, column], engine.partitions)
            if shape.kept is None:
                out[column :: shape.columns] = squares
            else:
                own = np.flatnonzero(shape.kept % shape.columns == column)
                out[own] = squares[shape.kept[own] // shape.columns]

        engine.workers.run(work, range(shape.columns))
        return out

    def leading(self, term: int, columns: np.ndarray, sigma2: float, negligible: float) -> tuple[np.ndarray, int]:
        return inverted_blocks(*self.leading_grams(term, columns, negligible), sigma2, self._engine.workers)

    def leading_grams(self, term: int, columns: np.ndarray, negligible: float) -> tuple[np.ndarray, np.ndarray]:
        """Return sums [C, m, m] over positions of q_ty phi_t phi_t^T, and how many went into each [C].

        q_ty = p_ty (1 - p_ty) / 2: labels share the curvature. With two labels one column holds all of it, 2 p (1 - p).
        """
        p = self._marginals[NODE]
        variance = p * (1 - p)
        curvature = variance / 2 if self._engine.terms[term].columns > 1 else variance.sum(axis=1, keepdims=True)
        curvature *= self._weights[:, None]

        def work(label: int) -> tuple[np.ndarray, int]:
            rows = np.flatnonzero(curvature[:, label] > negligible)

            def of_partition(part: slice) -> np.ndarray:
                own = rows[part]
                phi = columns[own].astype(np.float64)
                return (phi * curvature[own, label][:, None]).T @ phi

            return summed_by(self._engine.partitions.within(rows), len(rows), of_partition), len(rows)

        found = list(self._engine.workers.map(work, range(curvature.shape[1])))
        return np.stack([gram for gram, _ in found]), np.array([rows for _, rows in found])


def leaves_out(rows: int, positions: int) -> bool:
    """Return True if it pays to leave out nearly deterministic positions, where so many rows are not."""
    return rows <= (1 - WORTH_LEAVING_OUT) * positions


def inverted_blocks(grams: np.ndarray, counts: np.ndarray, sigma2: float, workers: Workers) -> tuple[np.ndarray, int]:
    """Return inverses of blocks [C, m, m] with the prior, and the operations they took, for so many positions [C]."""
    m = grams.shape[1]

    def work(gram: np.ndarray) -> np.ndarray:
        gram[np.diag_indices(m)] += 1 / sigma2
        return linear_algebra.inv(gram, overwrite_a=True, check_finite=False)

    return np.stack(list(workers.map(work, list(grams)))), sum(int(rows) * m * m + m**3 for rows in counts)


# Work on one task, or on one chunk and its potentials.


def _likelihoods(adjoint: _Adjoint, potentials: ChunkPotentials, task: Sequence[Chunk]) -> _TaskSums:
    engine, sums = adjoint.engine, _TaskSums(adjoint.engine, adjoint.points)
    # Errors of single positions may be put where they have to be in the end.
    Y = engine.problem.label_count
    whole = [own for clique, own in adjoint.residuals.items() if clique.axes == 1 and own.shape[1] == Y]
    for chunk in task:
        found: list[chain.Change] = []
        if chunk.complete and not engine.per_position and not engine.second_order:
            place = whole[0][chunk.rows] if adjoint.points == 1 and whole else None
            for point, (scores, edges) in enumerate(potentials(chunk)):
                likelihood, errors, own = chunk.errors(scores, edges, place)
                sums.log_likelihoods[point] += likelihood
                sums.sums[point].add(own)
                found.append(errors)
            adjoint.add_parts(sums, chunk, found)
            continue
        for point, (scores, edges) in enumerate(potentials(chunk)):
            scored = chunk.scored(scores, edges)
            likely = scored.marginals()
            observed = scored.subtract_observed(likely)
            sums.log_likelihoods[point] += float(chunk.weights @ (observed - likely.log_z))
            found.append(likely)
        adjoint.add_errors(sums, chunk, found)
    return sums


def _tangent(
    adjoint: _Adjoint, potentials: ChunkPotentials, direction: ChunkPotentials, task: Sequence[Chunk]
) -> _TaskSums:
    sums = _TaskSums(adjoint.engine, adjoint.points)
    for each in task:
        [(d_scores, d_edges)] = direction(each)
        chunk = each.scored(*potentials(each)[0])
        d_edges = d_edges.cut(*chunk.cut)
        change = chain.tangent(chunk.scores, chunk.edges, chunk.offsets, d_scores, d_edges, chunk.weights)
        held = chunk.held()
        if held is not None:
            held.subtract(change, held.tangent(d_scores, d_edges))
        adjoint.add_errors(sums, chunk, [change])
    return sums


def _errors(clique: MappedClique, chunk: ScoredChunk) -> np.ndarray:
    chunk = chunk.with_edges_repeated() if clique.per_position else chunk
    found = chunk.marginals()
    chunk.subtract_observed(found)
    return clique.gather(found, found.node.shape[1]) * chunk.position_weights()[:, None]


def _best_labels(bonuses: np.ndarray, chunk: ScoredChunk) -> np.ndarray:
    return chain.viterbi(chunk.scores, chunk.edges.with_bonuses(bonuses), chunk.offsets)[0]


def _predictions(chunk: ScoredChunk) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels by Viterbi and by posterior decoding, and probabilities of gold labels, [n] each."""
    scores, edges, offsets = chunk.scores, chunk.edges, chunk.offsets
    path = chain.viterbi(scores, edges, offsets)[0]
    node = chain.marginals(scores, edges, offsets).node
    posterior = chain.posterior_labels(node, scores, edges, offsets)
    return path, posterior, node[np.arange(len(node)), chunk.labels]


def _sequence_logs(chunk: ScoredChunk) -> np.ndarray:
    likely = chunk.marginals()
    return chunk.subtract_observed(likely) - likely.log_z


def _drawn(chance: np.ndarray, chunk: ScoredChunk) -> np.ndarray:
    found = chunk.with_edges_repeated().marginals()
    draws, lengths = len(chance), np.diff(chunk.offsets)
    labels = np.zeros((draws, len(chunk.labels)), dtype=np.int32)
    for t in range(int(lengths.max(initial=0))):
        rows = chunk.offsets[:-1][lengths > t] + t
        # [draws, rows, Y] probabilities of labels given the one before, up to a factor; [1, rows, Y] of first ones
        likely = found.edge[rows, labels[:, rows - 1]] if t else found.node[rows][None]
        steps = np.cumsum(likely, axis=2, dtype=np.float64)
        aim = chance[:, chunk.rows][:, rows, None] * steps[:, :, -1:]
        labels[:, rows] = (steps <= aim).sum(axis=2)
    return labels


def _block_parts(
    engine: ThreadEngine, forms: dict[int, str], negligible: float, chunk: ScoredChunk
) -> tuple[dict[Clique, np.ndarray], dict[int, PartialSum]]:
    """Return marginals of cliques, and sums for the small blocks."""
    every_pair = any(form != ABOVE for form in forms.values())
    # Edges handed over per position give the marginals of every pair.
    found = (chunk.with_edges_repeated() if every_pair or engine.per_position else chunk).marginals()
    weights = chunk.position_weights()
    parts = {
        j: engine.labelled[j].block_part(found, chunk.offsets, weights, form, negligible) for j, form in forms.items()
    }
    return {clique: clique.distribution(found) for clique in dict.fromkeys([NODE, *engine._types])}, parts


def _real_parts(
    engine: ThreadEngine, rows: dict[int, np.ndarray], chunk: ScoredChunk
) -> tuple[dict[int, np.ndarray], float]:
    """Return Gram matrices of real columns on those rows [n] that a chunk has, and the variance of its labels."""
    found = (chunk.with_edges_repeated() if engine.per_position else chunk).marginals()
    weights, parts = chunk.position_weights(), {}
    for j, chosen in rows.items():
        first, last = np.searchsorted(chosen, [chunk.rows.start, chunk.rows.stop])
        own = chosen[first:last]
        p = engine.mapped[j].distribution(found)[own - chunk.rows.start].astype(np.float64)
        variance = (p * (1 - p)).sum(axis=1) / engine.terms[j].columns  # with two labels one column holds all of it
        parts[j] = engine.maps[j].real_gram(own, weights[own - chunk.rows.start] * variance)
    return parts, float((found.node * (1 - found.node)).sum(dtype=np.float64))
