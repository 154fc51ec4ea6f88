"""Partitions: the one place where P is computed, chunk by chunk on threads with one BLAS thread each.

A partition has labels, offsets and weights of consecutive whole sequences, and for each term the rows of its map. It
may have all data, or be one of many, in this process or on a worker. Sums are taken within borders of the problem and
over those (`maps.partition_sums`), so that they have the same bits wherever sequences are.

Parameters come as a vector, or as a list with a block for each term that its head has made ready. A partition of all
data returns vectors; one of many returns blocks (`SomeRows`) that are summed over partitions before heads finish them.

Blocks of the Hessian (30) take each term by itself and its cliques as independent of each other. A term with a map
has the operator Phi^T [(diag p - p p^T)(Phi v)], p the marginals of its cliques; transitions have a small matrix. Where
that would be large, for triples, and where `diagonals` are enough, sum_t p_t stands in, as diag p - p p^T <= diag p.
Cliques whose p_t is up to `negligible` from 0 or 1 are left out where that pays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice, pairwise
from operator import add, iadd
from typing import TypeAlias, TypeVar

import numpy as np

from ..chains import (
    ABOVE,
    MATRIX,
    NODE,
    Clique,
    Edges,
    MappedClique,
    PartialSum,
    Potentials,
    Problem,
    Sums,
    chain,
    count_cliques,
)
from ..maps import (
    ExplicitMap,
    Extent,
    FeatureMap,
    KeptWeights,
    Partitions,
    new_sums,
    ordered_sums,
    sum_of_parts,
    summed_by,
    tree_sum,
)
from ..scoring import DECODINGS
from ..system import Workers, hand_back, ranges
from ._passes import MOST_MAPS, Passes
from ._sweeps import add_products
from .chunks import Chunk, ScoredChunk, make_chunks, make_tasks
from .sums import AnswerBlock, SomeRows
from .terms import ObjectiveTerm, Predictions, block_slices, cliques_by_kind, shared_edges
from .vectors import HostVectors, Vector, Vectors

ROWS_AT_ONCE, COLUMNS_AT_ONCE = 2048, 32
# Labellings of a sequence whose mean is taken, sums of labellings, and columns of their covariance.
LABELLINGS_AT_ONCE, SUMS_AT_ONCE, COLUMNS_TOGETHER = 512, 1 << 22, 128

Result = TypeVar("Result")
Marginals = dict[MappedClique, np.ndarray]  # of cliques, [N, states]
ChunkPotentials = Callable[[Chunk], list[tuple[np.ndarray, Edges]]]  # scores and edges of a chunk at some points
Parameters: TypeAlias = Vector | list[np.ndarray]  # a vector, or a block for each term that its head has made ready
Answer: TypeAlias = Vector | list[AnswerBlock]  # a vector, or a block for each term that its head is to finish


@dataclass(frozen=True, eq=False)
class TermPlace:
    """Place of a term's parameters in a partition among those of the whole."""

    rows: int  # of W of the whole
    size: int  # rows of W of the whole, or parameters of it that are kept
    columns: np.ndarray | None = None  # [D'] int32 columns of the whole map that are here, ascending; None: all
    places: np.ndarray | None = None  # [K'] parameters of the whole, of those that are kept, that are here; None: all

    @property
    def chosen(self) -> np.ndarray | None:
        """Rows of the whole, or places that are kept, that are here; None: all."""
        return self.columns if self.places is None else self.places


class Partition:
    """Consecutive whole sequences with the rows of their terms' maps."""

    def __init__(
        self,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        workers: Workers,
        dtype: np.dtype | type = np.float64,  # of scores
        forbidden: Edges | None = None,  # minus infinity for forbidden transitions, else zero
        places: Sequence[TermPlace] | None = None,  # of each term among those of the whole; None: this is the whole
    ):
        self.problem, self.workers, self.dtype, self.forbidden = problem, workers, np.dtype(dtype), forbidden
        self.terms, self._places = tuple(term.for_labels(problem.label_count) for term in terms), places
        self.maps = {j: term.map for j, term in enumerate(self.terms) if term.map is not None}
        self.mapped, self.labelled = cliques_by_kind(self.terms)
        self.runs = Partitions(problem.offsets[problem.borders].astype(np.int64))  # of positions
        # Vectors of this process, which sums are put into; a subclass may hand out others.
        self.host = HostVectors(block_slices(self.terms), workers)
        self.vectors: Vectors = self.host
        # Terms of one type add their scores up before they meet the potentials.
        self.types = list(dict.fromkeys(self.mapped.values()))
        self.per_position = any(clique.per_position for clique in self.types)
        self.second_order = any(term.clique.second_order for term in self.terms)
        widths = [feature_map.dense_size for feature_map in self.maps.values()]
        self.chunks, Y = make_chunks(problem, max(widths, default=0)), problem.label_count
        if problem.half_known is not None and problem.half_known.soft:
            edges = Edges.zeros(Y) if forbidden is None else forbidden
            edges = replace(edges, triples=np.zeros((Y, Y, Y)) if self.second_order else None)
            self.chunks = list(workers.map(lambda chunk: chunk.with_expected(edges, self.per_position), self.chunks))
        sum_sizes = [width * self.terms[j].columns for width, j in zip(widths, self.mapped, strict=True)]
        borders, among_tasks = make_tasks(self.chunks, 8 * (Y * Y + 2 * Y + sum(sum_sizes)), self.runs.borders)
        self._tasks = [self.chunks[first:last] for first, last in pairwise(borders.tolist())]
        self._run_tasks = Partitions(among_tasks)
        self._passes = self._make_passes(borders)
        # Cliques of sequences that lack labels come with every pass, see `ScoredChunk.subtract_observed`.
        self._observed = [
            Sums.observed(problem.partition(number), self.per_position, self.second_order)
            for number in range(len(self.runs.borders) - 1)
        ]

    def _make_passes(self, borders: np.ndarray) -> Passes | None:
        """Passes without the interpreter, where the problem allows them."""
        alone = [clique.axes for clique in self.types] == [1] and not self.second_order
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

    def block(self, vector: Parameters, term: int) -> np.ndarray:
        """Return the block of a term as an array; callers must not change it."""
        return vector[term] if isinstance(vector, list) else self.vectors.to_array(self.vectors.take(vector, term))

    def edges(self, theta: Parameters) -> Edges:
        """Return T, s, e and U, as far as the model has them, without forbidden transitions."""
        return shared_edges(self.labelled, partial(self.block, theta), self.problem.label_count)

    def potentials(self, theta: Parameters) -> Edges:
        """Return the edges with forbidden transitions at minus infinity."""
        edges = self.edges(theta)
        return edges if self.forbidden is None else edges.plus(self.forbidden)

    def _answer(self, vector: np.ndarray) -> Answer:
        """Return a vector of this process as one of those of the whole, or as its blocks."""
        if self._places is None:
            return self.vectors.from_array(vector)
        return [self.part_of(j, self.host.take(vector, j)) for j in range(len(self.terms))]

    def answer_of(self, term: int, block: np.ndarray) -> Vector | AnswerBlock:
        """Return the block of a term as one of a vector, or with its place in that of the whole."""
        return self.vectors.from_array(block) if self._places is None else self.part_of(term, block)

    def part_of(self, term: int, block: np.ndarray, squares: bool = False) -> AnswerBlock:
        """Return the block of a term with its place in that of the whole; squares stay in double precision."""
        shape = self.terms[term]
        if self._places is None or not shape.clique.mapped:
            return block
        place = self._places[term]
        if place.columns is None:
            return block.reshape(shape.rows, shape.columns)
        if not shape.real_columns and not squares:  # sums of sparse columns are in the precision of a pass already
            block = block.astype(self.dtype)
        if place.places is not None:
            return SomeRows(place.size, place.places, block.reshape(-1, 1))
        return SomeRows(place.size, place.columns, block.reshape(shape.rows, shape.columns))

    def evaluate(self, thetas: Sequence[Parameters]) -> tuple[np.ndarray, list[Answer]]:
        """Return weighted log-likelihoods at some points, and gradients of their negatives.

        Points are evaluated in one pass over the data; sums are in double precision.
        """
        adjoint = _Adjoint(self, len(thetas))
        edges = [self.potentials(theta) for theta in thetas]
        prepared = {j: self._prepared(j, thetas) for j in self.mapped}
        if len(thetas) > 1 or not self._evaluate_natively(adjoint, edges[0], prepared):
            potentials = partial(self._potentials_of, prepared, edges)
            self.workers.fold(partial(_likelihoods, adjoint, potentials), self._tasks, adjoint.add)
        for run, observed in zip(adjoint.totals, self._observed, strict=True):
            for sums in run.sums:
                sums.add(observed, np.subtract)
        likelihoods = tree_sum([run.log_likelihoods for run in adjoint.totals])
        return likelihoods, list(map(self._answer, adjoint.collect()))

    def _evaluate_natively(self, adjoint: _Adjoint, edges: Edges, prepared: dict[int, object]) -> bool:
        """Evaluate one point without the interpreter; False where some part of it needs that.

        Both ways give the same bits: which one it is may depend on the memory there is.
        """
        if self._passes is None:
            return False
        columns = self.terms[next(iter(self.mapped))].columns
        products, terms = [], []
        for j, ready in prepared.items():
            native_products = self.maps[j].native(ready, columns)
            if native_products is None:
                return False
            products += native_products
            terms += [j] * len(native_products)
        if len(products) > MOST_MAPS:
            return False
        start, end = (np.ascontiguousarray(values, dtype=np.float64) for values in (edges.start, edges.end))
        small, sums, bad = self._passes.evaluate(
            self.workers.team, products, edges.stacked()[0], start, end, adjoint.residuals[self.types[0]]
        )
        if bad >= 0:
            return False  # the other way says what is wrong with it
        Y = self.problem.label_count
        for run, tasks in zip(adjoint.totals, self._run_tasks.slices, strict=True):
            total = np.add.reduce(small[tasks], axis=0)  # one task after another
            pairs, (first, last) = total[: Y * Y].reshape(Y, Y), total[Y * Y : -1].reshape(2, Y)
            run.log_likelihoods[0] = total[-1]
            run.sums[0].add(Sums(pairs, first, last, None))
            for j, parts in zip(terms, sums, strict=True):
                if parts is not None:
                    run.parts[j] = np.empty(parts.shape[1:])
                    ordered_sums(self.workers.team, parts[tasks], run.parts[j])
        return True

    def _remade(self, terms: Sequence[ObjectiveTerm], dtype: np.dtype | type) -> Partition:
        """Return a partition of the same kind and sequences with other maps."""
        return Partition(self.problem, terms, self.workers, dtype, self.forbidden, self._places)

    def in_double(self, held: bool) -> Partition:
        """Return the partition in double precision, with the same vectors, or itself if it has that.

        If `held`, maps keep their values in double precision if memory allows; else they compute them every time.
        """
        if self.dtype == np.float64:
            return self
        terms = [term if term.map is None else replace(term, map=term.map.in_double(held)) for term in self.terms]
        double = self._remade(terms, np.float64)
        self.host.buffers.forget_unused()  # errors in single precision
        hand_back()
        double.vectors, double.host = self.vectors, self.host  # with the memory that it has for more of them
        return double

    def narrowed(self, sizes: dict[int, int]) -> Partition:
        """Return the partition with the first m columns of some terms' nested maps."""
        terms = [
            replace(term, map=self.maps[j].leading(sizes[j])) if j in sizes else term
            for j, term in enumerate(self.terms)
        ]
        return self._remade(terms, self.dtype)

    def with_parameters(self, kept: Mapping[int, np.ndarray], places: Sequence[TermPlace] | None) -> Partition:
        """Return the partition with parameters of some terms at some places of W alone."""
        terms = [term.with_kept(kept[j]) if j in kept else term for j, term in enumerate(self.terms)]
        part = Partition(self.problem, terms, self.workers, self.dtype, self.forbidden, places)
        part.host.buffers = self.host.buffers  # errors of positions are as large
        return part

    def draws(self) -> bool:
        """True if there is a `sampled_hessian`: for kept weights of sparse columns alone, in chains of first order."""
        maps = (isinstance(own, ExplicitMap) and not own.dense_size for own in self.maps.values())
        return self._passes is not None and all(maps) and all(self.terms[j].places is not None for j in self.maps)

    def label_variances(self, theta: Parameters) -> np.ndarray:
        """Return the variance of the labels of each sequence under the model, [S]."""
        return np.concatenate(list(self.over_chunks(theta, ScoredChunk.label_variances)))

    def sampled_hessian(
        self, theta: Parameters, numbers: Sequence[np.ndarray], size: int, samples: np.ndarray, first: int
    ) -> np.ndarray:
        """Return a covariance of features' sums [size, size], see `Engine.sampled_hessian`.

        It is there left of the diagonal, and in whole blocks on it.

        `numbers` say for each term which of its parameters are meant, `samples` [S] how many labellings are drawn of
        each sequence, and `first` is the number of the first one in the whole.
        """
        Y, begin = self.problem.label_count, self.problem.offsets
        numbered = Sums(np.arange(Y * Y).reshape(Y, Y), Y * Y + np.arange(Y), Y * Y + Y + np.arange(Y), None)
        layouts = {j: clique.collect(numbered) for j, clique in self.labelled.items()}
        factors = {
            j: np.ascontiguousarray(clique.by_labels(np.eye(self.terms[j].columns), Y).T)
            for j, clique in self.mapped.items()
        }

        def drawn(chunk: ScoredChunk) -> tuple[int, list[tuple[np.ndarray, np.ndarray]]]:
            """Return where a chunk ends, and for each sequence whose sums differ, and how from their mean."""
            found = []
            for k in np.flatnonzero(np.diff(chunk.offsets)).tolist():
                rows = slice(*(chunk.rows.start + chunk.offsets[k : k + 2]).tolist())
                number = int(np.searchsorted(begin, rows.stop)) - 1
                if not samples[number]:
                    continue
                labels = chunk.samples(k, int(samples[number]), first + number)
                parts = ranges(len(labels), LABELLINGS_AT_ONCE)
                for own_labels in map(labels.__getitem__, parts):
                    sums = np.zeros((len(own_labels), size), dtype=np.float32)
                    for j, own in self.maps.items():
                        assert isinstance(own, ExplicitMap)
                        own.add_label_sums(rows, own_labels, self.terms[j].places, numbers[j], factors[j], sums)
                    counts = count_cliques(own_labels, Y, not chunk.cut[0], not chunk.cut[1])
                    for j, layout in layouts.items():
                        meant = numbers[j] >= 0
                        sums[:, numbers[j][meant]] += counts[:, layout[meant]]
                    columns = np.flatnonzero((sums != sums[0]).any(axis=0))
                    sums = np.take(sums, columns, axis=1)
                    sums -= sums.mean(axis=0)
                    sums *= np.float32(math.sqrt(chunk.weights[k] / (len(labels) - len(parts))))
                    found.append((columns, sums))
            return chunk.rows.stop, found

        total: np.ndarray | None = None
        part: np.ndarray | None = None
        waiting: list[tuple[np.ndarray, np.ndarray]] = []

        def multiply(into: np.ndarray, rows: slice) -> None:
            for columns, sums in waiting:
                begin, end = np.searchsorted(columns, (rows.start, rows.stop)).tolist()
                add_products(sums[:, begin:end].T @ sums[:, :end], columns[begin:end], columns[:end], into)

        for stop, found in self.over_chunks(theta, drawn):
            waiting += found
            ends = stop in self.runs.borders
            if ends or sum(sums.size for _, sums in waiting) >= SUMS_AT_ONCE:
                part = np.zeros((size, size), dtype=np.float32) if part is None else part
                self.workers.run(partial(multiply, part), ranges(size, COLUMNS_TOGETHER)[::-1])
                waiting.clear()
            if ends:
                total, part = part if total is None else iadd(total, part), None
        return np.zeros((size, size), dtype=np.float32) if total is None else total

    def extent(self, term: int, scale: np.ndarray) -> Extent:
        """Return the largest values of a term's rows, multiplied by factors of its columns if given."""
        return self.maps[term].extent(scale)

    def outside_roots(self, theta: Parameters, term: int, gram: float) -> float:
        """Return the part outside the pivots of a full map, for `Head.rounding`."""
        return self.maps[term].outside_roots(gram, self.errors(theta, self.mapped[term]), self.runs)

    def product(self, theta: Parameters, vector: Parameters) -> Answer:
        """Multiply the Hessian of the negative log-likelihood at theta by a vector."""
        adjoint = _Adjoint(self)
        direction = self._potentials([self.edges(vector)], [vector])
        potentials = self._potentials([self.potentials(theta)], [theta])
        self.workers.fold(partial(_tangent, adjoint, potentials, direction), self._tasks, adjoint.add)
        return self._answer(adjoint.collect()[0])

    def blocks(self, theta: Parameters, diagonals: bool, negligible: float) -> PartitionBlocks:
        """Return blocks of the Hessian, `diagonals` of small ones, without cliques of `negligible` variance."""
        return PartitionBlocks(self, theta, diagonals, negligible)

    def raw_squares(self, term: int) -> AnswerBlock:
        """Return the argument of `Head.squares`, summed over rows."""
        counts = self.problem.position_weights()
        raw = self.maps[term].raw_squares(None if (counts == 1).all() else counts, self.runs)
        place = None if self._places is None else self._places[term]
        if place is None or place.columns is None:
            return raw
        return SomeRows(place.rows, place.columns, raw[:, None])

    def sampled_gram(self, term: int, inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return Phi^T Phi [m, m] of some rows, for kernel values with the first m pivots times a matrix."""
        m, weights = len(inverse), self.problem.position_weights()
        leading = self.maps[term].leading(m)

        def of_partition(part: slice) -> np.ndarray:
            chosen, total = rows[part], np.zeros((m, m))
            if not len(chosen):
                return total
            phi = leading.subset(chosen).features(self.workers, inverse)
            weighted = phi * weights[chosen, None].astype(phi.dtype)

            def task(some: slice) -> None:
                total[some] = weighted[:, some].T @ phi

            self.workers.run(task, ranges(m, COLUMNS_AT_ONCE))
            return total

        return summed_by(self.runs.within(rows), len(rows), of_partition)

    def sampled_real_grams(self, theta: Parameters, rows: dict[int, np.ndarray]) -> tuple[list[np.ndarray], float]:
        """Return Gram matrices of real columns on some positions [n] of each term, and the variance of all labels."""
        by_run = self.by_run(self.over_chunks(theta, partial(_real_parts, self, rows)))
        grams = [tree_sum([reduce(add, (grams[j] for grams, _ in part)) for part in by_run]) for j in rows]
        return grams, tree_sum([math.fsum(left for _, left in part) for part in by_run])

    def errors(self, theta: Parameters, clique: Clique) -> np.ndarray:
        """Return w (p - e_y) of the cliques of each position, [N, columns]."""
        assert isinstance(clique, MappedClique)
        return np.concatenate(list(self.over_chunks(theta, lambda chunk: chunk.errors_of(clique))))

    def predictions(self, theta: Parameters) -> Predictions:
        """Predict by each decoder, and return the probabilities of gold labels (any value for unknown labels)."""
        path, posterior, gold = map(np.concatenate, zip(*self.over_chunks(theta, ScoredChunk.predictions), strict=True))
        return Predictions(dict(zip(DECODINGS, (path, posterior), strict=True)), gold)

    def best_labels(self, theta: Parameters, bonuses: np.ndarray) -> np.ndarray:
        """Return labels [N] int32 by Viterbi decoding, with numbers [Y + 1, Y] of `Edges.with_bonuses`."""
        return np.concatenate(list(self.over_chunks(theta, lambda chunk: chunk.best_labels(bonuses))))

    def sequence_log_probabilities(self, theta: Parameters) -> np.ndarray:
        """Return log p(y | x) of each sequence, for the observed labels y, [S]."""
        return np.concatenate(list(self.over_chunks(theta, ScoredChunk.sequence_logs)))

    def by_run(self, results: Iterable[Result]) -> list[list[Result]]:
        """Group results of chunks by the borders of the problem."""
        ends = np.cumsum([len(chunk.labels) for chunk in self.chunks])
        counts = np.diff(np.searchsorted(ends, self.runs.borders, side="right"))
        results = iter(results)
        return [list(islice(results, count)) for count in counts.tolist()]

    def over_chunks(self, theta: Parameters, work: Callable[[ScoredChunk], Result]) -> Iterator[Result]:
        """Call `work` for every chunk with its potentials, on threads; results come in the order of chunks."""
        potentials = self._potentials([self.potentials(theta)], [theta])
        return self.workers.map(lambda chunk: work(chunk.scored(*potentials(chunk)[0])), self.chunks)

    def _potentials(self, shared: Sequence[Edges], vectors: Sequence[Parameters]) -> ChunkPotentials:
        """Return a function to the scores and edges of a chunk, for each of some vectors with their shared edges."""
        prepared = {j: self._prepared(j, vectors) for j in self.mapped}
        return partial(self._potentials_of, prepared, shared)

    def _prepared(self, j: int, vectors: Sequence[Parameters]) -> object:
        """Return the weights of a term with a map, side by side, in the form that its map wants."""
        feature_map, term, empty = self.maps[j], self.terms[j], self.host.buffers.empty
        if len(vectors) == 1 and term.places is not None:
            kept = term.of_map(self.block(vectors[0], j))
            return feature_map.prepare(kept, self.dtype, self.workers, empty)
        if feature_map.narrows_weights:
            vectors = [v if isinstance(v, list) else self.vectors.cast(v, self.dtype) for v in vectors]
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
        potentials = []
        for point, edges in enumerate(shared):
            out = Potentials(None, edges)
            for clique, values in scores.items():
                part = values if points == 1 else np.ascontiguousarray(values[:, _columns_of(point, clique.columns(Y))])
                clique.add(part, out, Y)
            potentials.append((np.zeros((n, Y), dtype=self.dtype) if out.scores is None else out.scores, out.edges))
        return potentials


def _columns_of(point: int, width: int) -> slice:
    """Return the columns of one of several points, side by side."""
    return slice(point * width, (point + 1) * width)


class _TaskSums:
    """Sums over the chunks of one task, or between two borders, for each point."""

    def __init__(self, partition: Partition, points: int):
        Y = partition.problem.label_count
        self.log_likelihoods = np.zeros(points)
        self.sums = [Sums.zeros(Y, partition.second_order) for _ in range(points)]
        self.parts: dict[int, np.ndarray] = {}  # of terms whose maps sum up errors by rows

    def add(self, other: _TaskSums) -> None:
        self.log_likelihoods += other.log_likelihoods
        for total, more in zip(self.sums, other.sums, strict=True):
            total.add(more)
        for j, part in other.parts.items():
            if j in self.parts:
                self.parts[j] += part
            else:
                self.parts[j] = part


class _Adjoint:
    """Adjoints of all terms, summed over tasks: from errors at positions to vectors like theta, one for each point."""

    def __init__(self, partition: Partition, points: int = 1):
        self.partition, self.points = partition, points
        N, Y, empty = partition.problem.positions, partition.problem.label_count, partition.host.buffers.empty
        # Terms of one type have the same errors.
        self.residuals = {c: empty((N, points * c.columns(Y)), partition.dtype) for c in partition.types}
        self.totals = [_TaskSums(partition, points) for _ in partition.runs.slices]
        sizes = np.diff(partition._run_tasks.borders)
        self._coming = iter(np.repeat(np.arange(len(sizes)), sizes).tolist())  # runs of tasks, in their order

    def add(self, task: _TaskSums) -> None:
        """Add the sums of the next task; tasks come in their order."""
        self.totals[next(self._coming)].add(task)

    def add_errors(self, task: _TaskSums, chunk: Chunk, changes: Sequence[chain.Change]) -> None:
        """Weigh the errors of a chunk, and add them to the sums of its task."""
        for total, change in zip(task.sums, changes, strict=True):
            total.add(chunk.weighted_sums(change))
        partition, rows, Y = self.partition, chunk.rows, self.partition.problem.label_count
        of_chunk = {clique: residuals[rows] for clique, residuals in self.residuals.items()}
        for clique, errors in of_chunk.items():
            for point, change in enumerate(changes):
                errors[:, _columns_of(point, clique.columns(Y))] = clique.gather(change, Y)
        for j, feature_map in partition.maps.items():
            part = feature_map.adjoint_rows(of_chunk[partition.mapped[j]], rows, task.parts.get(j))
            if part is not None:
                task.parts[j] = part

    def collect(self) -> list[np.ndarray]:
        """Return the vector of each point."""
        partition = self.partition
        out = [partition.host.empty() for _ in range(self.points)]
        for j, clique in partition.labelled.items():
            for point, vector in enumerate(out):
                collected = tree_sum([clique.collect(run.sums[point]) for run in self.totals])
                partition.host.put(vector, j, collected)
        for j, mapped in partition.mapped.items():
            term = partition.terms[j]
            if self.points == 1:
                place = term.of_map(partition.host.take(out[0], j))
            else:
                place = partition.host.buffers.empty((term.rows, self.points * term.columns))
            parts = [run.parts[j] for run in self.totals if j in run.parts]
            summed = tree_sum(parts, iadd) if parts else None
            made = partition.maps[j].adjoint(summed, self.residuals[mapped], partition.workers, place, partition.runs)
            if isinstance(made, KeptWeights) or isinstance(place, KeptWeights):
                continue  # it is in its place
            if self.points > 1:
                for point, vector in enumerate(out):
                    partition.host.put(vector, j, term.block(made[:, _columns_of(point, term.columns)]))
            elif made is not place:
                place[...] = made
        return out


class PartitionBlocks:
    """Blocks of the Hessian of the negative log-likelihood of a partition at one point."""

    def __init__(self, partition: Partition, theta: Parameters, diagonals: bool, negligible: float):
        self._partition, self._settled = partition, negligible
        problem, Y = partition.problem, partition.problem.label_count
        self._weights = problem.position_weights()
        forms = {j: clique.block_form(Y, diagonals) for j, clique in partition.labelled.items()}
        shapes = {clique: (problem.positions, clique.states(Y)) for clique in (NODE, *partition.types)}
        self._marginals: Marginals = {clique: np.empty(shape, partition.dtype) for clique, shape in shapes.items()}
        work = partial(_block_parts, self._marginals, partition, forms, negligible)
        of_chunks = list(partition.over_chunks(theta, work))
        # Operations beyond those of half a pass.
        matrices = [j for j, form in forms.items() if form == MATRIX]
        self._operations = sum(
            2 * partition.labelled[j].states(Y) ** 2 * parts[j].positions for parts in of_chunks for j in matrices
        )
        by_run = partition.by_run(of_chunks)
        self._small = []
        for j, form in forms.items():
            blocks = []
            for number, parts in enumerate(by_run):
                node = self._marginals[NODE][partition.runs.slices[number]]
                total = reduce(add, (part[j].total for part in parts))
                blocks.append(partition.labelled[j].finish_block(total, problem.partition(number), node, form))
            self._small.append(tree_sum(blocks))
        self._open: dict[int, tuple[FeatureMap, np.ndarray]] = {}

    def summary(self) -> tuple[int, float, list[np.ndarray], list[int]]:
        """Return operations, the variance of labels, small blocks, and counts of positions for each term with a map.

        Small blocks are those of terms over labels alone, without the prior: matrices, or their diagonals. Positions
        that are nearly deterministic do not count.
        """
        p, partition = self._marginals[NODE], self._partition
        variance = summed_by(partition.runs, len(p), lambda rows: float((p[rows] * (1 - p[rows])).sum()))
        counts = [int(self._is_open(j).sum()) if self._settled else len(p) for j in partition.mapped]
        return self._operations, variance, self._small, counts

    def _is_open(self, term: int) -> np.ndarray:
        """Return True for positions whose cliques are not nearly deterministic, [N]."""
        return self._marginals[self._partition.mapped[term]].max(axis=1) < 1 - self._settled

    def product(self, term: int, block: Vector, leave_out: bool) -> Vector | AnswerBlock:
        """Multiply the block of a term with a map, without the prior, by a block of a vector.

        If `leave_out`, positions that are nearly deterministic are left out.
        """
        partition, shape = self._partition, self._partition.terms[term]
        Y, dtype = partition.problem.label_count, partition.dtype
        feature_map, runs = partition.maps[term], partition.runs
        chosen: slice | np.ndarray = slice(None)
        if leave_out:
            if term not in self._open:
                rows = np.flatnonzero(self._is_open(term))
                self._open[term] = feature_map.subset(rows), rows
            feature_map, chosen = self._open[term]
            runs = runs.within(chosen)
        ready = feature_map.prepare(shape.of_map(partition.vectors.to_array(block)), dtype, partition.workers)
        clique = partition.mapped[term]
        weights, p = self._weights[chosen].astype(dtype), self._marginals[clique][chosen]
        residuals = np.empty((len(weights), shape.columns), dtype=dtype)

        def work(rows: slice) -> np.ndarray | None:
            columns = np.empty((rows.stop - rows.start, shape.columns), dtype=dtype)
            feature_map.add_scores(ready, rows, columns, True)
            residuals[rows] = clique.covariance_product(p[rows], columns, Y) * weights[rows][:, None]
            return feature_map.adjoint_rows(residuals[rows], rows)

        sums = []
        for part in runs.slices:
            pieces = ranges(part.stop - part.start, ROWS_AT_ONCE)
            pieces = [slice(part.start + piece.start, part.start + piece.stop) for piece in pieces]
            sums.append(sum_of_parts(work, pieces, partition.workers))
        sums = [part for part in sums if part is not None]
        summed = tree_sum(sums) if sums else None
        if summed is None and feature_map.dense_size:
            summed = new_sums(feature_map.dense_size, shape.columns, dtype)
        out = np.empty(shape.size)
        gradient = feature_map.adjoint(summed, residuals, partition.workers, shape.of_map(out), runs)
        return partition.answer_of(term, out if isinstance(gradient, KeptWeights) else gradient.ravel())

    def raw_diagonal(self, term: int) -> AnswerBlock:
        """Return the diagonal of the block of a term with an explicit map, without factors of columns, [size]."""
        partition, shape = self._partition, self._partition.terms[term]
        feature_map, clique = partition.maps[term], partition.mapped[term]
        p, out = self._marginals[clique], partition.host.take(partition.host.empty(), term)
        weighted = partition.host.buffers.empty((len(p), shape.columns), partition.dtype)  # in the place of errors
        if shape.columns == p.shape[1]:
            np.multiply(p, np.subtract(1, p, out=weighted), out=weighted)
        else:  # one column of scores for two labels
            weighted[:] = clique.covariance_product(p, np.ones_like(p[:, :1]), partition.problem.label_count)
        weighted *= self._weights.astype(partition.dtype)[:, None]
        found = feature_map.adjoint_of_squares(weighted, partition.workers, shape.of_map(out), partition.runs)
        out = out if isinstance(found, KeptWeights) else found.ravel()
        return partition.part_of(term, out, squares=True)


# Work on one task, or on one chunk and its potentials.


def _likelihoods(adjoint: _Adjoint, potentials: ChunkPotentials, task: Sequence[Chunk]) -> _TaskSums:
    sums = _TaskSums(adjoint.partition, adjoint.points)
    for chunk in task:
        changes: list[chain.Change] = []
        for point, (scores, edges) in enumerate(potentials(chunk)):
            scored = chunk.scored(scores, edges)
            likely = scored.marginals()
            observed = scored.subtract_observed(likely)
            logs = chunk.weights * (observed - likely.log_z)
            sums.log_likelihoods[point] += float(np.add.accumulate(logs)[-1:].sum())  # in the order of a native pass
            changes.append(likely)
        adjoint.add_errors(sums, chunk, changes)
    return sums


def _tangent(
    adjoint: _Adjoint, potentials: ChunkPotentials, direction: ChunkPotentials, task: Sequence[Chunk]
) -> _TaskSums:
    sums = _TaskSums(adjoint.partition, adjoint.points)
    for plain in task:
        [(d_scores, d_edges)] = direction(plain)
        chunk = plain.scored(*potentials(plain)[0])
        d_edges = d_edges.cut(*chunk.cut)
        change = chain.tangent(chunk.scores, chunk.edges, chunk.offsets, d_scores, d_edges, chunk.weights)
        held = chunk.held()
        if held is not None:
            held.subtract(change, held.tangent(d_scores, d_edges))
        adjoint.add_errors(sums, chunk, [change])
    return sums


def _real_parts(
    partition: Partition, rows: dict[int, np.ndarray], chunk: ScoredChunk
) -> tuple[dict[int, np.ndarray], float]:
    """Return Gram matrices of real columns on those rows [n] that a chunk has, and the variance of its labels."""
    likely = (chunk.with_edges_repeated() if partition.per_position else chunk).marginals()
    weights, parts = chunk.position_weights(), {}
    for j, chosen in rows.items():
        first, last = np.searchsorted(chosen, [chunk.rows.start, chunk.rows.stop])
        numbers = chosen[first:last]
        p = partition.mapped[j].distribution(likely)[numbers - chunk.rows.start].astype(np.float64)
        variance = (p * (1 - p)).sum(axis=1) / partition.terms[j].columns  # with two labels one column holds all of it
        parts[j] = partition.maps[j].real_gram(numbers, weights[numbers - chunk.rows.start] * variance)
    return parts, float((likely.node * (1 - likely.node)).sum(dtype=np.float64))


def _block_parts(
    marginals: Marginals, partition: Partition, forms: dict[int, str], negligible: float, chunk: ScoredChunk
) -> dict[int, PartialSum]:
    """Put marginals of cliques in their place, and return sums for the small blocks."""
    every_pair = any(form != ABOVE for form in forms.values())
    # Edges handed over per position give the marginals of every pair.
    likely = (chunk.with_edges_repeated() if every_pair or partition.per_position else chunk).marginals()
    weights = chunk.position_weights()
    for clique, of_all in marginals.items():
        of_all[chunk.rows] = clique.distribution(likely)
    return {
        j: partition.labelled[j].block_part(likely, chunk.offsets, weights, form, negligible)
        for j, form in forms.items()
    }
