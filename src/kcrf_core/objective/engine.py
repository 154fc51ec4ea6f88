"""The engine: the objective, its gradient and Hessian over partitions of the data, and the parameter vectors.

An engine owns all vectors like theta, and calls methods of its partitions through an executor; solvers and training
access the data only through it. Data in memory, on threads or on a device, is one partition, which takes and returns
vectors. Otherwise partitions are several, in this process one after another or on workers: the heads of maps
(`maps.heads`) make ready here what partitions multiply with, and finish here the sums of what they answer. Each result
has the same bits for the same borders of the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import iadd
from typing import Any

import numpy as np

from .._lazy import cached_property
from ..chains import Clique, Edges, Problem
from ..maps import Evaluated, Extent, Head, Partitions, PivotHead, Rounding
from ..scoring import DECODINGS
from ..system import Workers, ranges
from .executors import Deal, Executor, Handle, InMemory, Method, Result
from .inverse_powers import inverse_power
from .partition import COLUMNS_TOGETHER, Parameters, Partition, PartitionBlocks, TermPlace
from .sources import partition_sources, placed
from .terms import DistantRows, ObjectiveTerm, Predictions, block_slices, cliques_by_kind, shared_edges
from .vectors import HostVectors, Vector, Vectors

WORTH_LEAVING_OUT = 0.4  # share of the rows: rows that stay are copied once for all products


def spread_rows(problem: Problem, most: int) -> np.ndarray:
    """Choose at most so many positions, evenly spread over all."""
    N = problem.positions
    return np.unique(np.linspace(0, N - 1, min(N, most)).astype(np.int64))


class Engine:
    """Partitions of one problem, called by an executor, and vectors like theta."""

    def __init__(
        self,
        problem: Problem,  # labels, offsets and weights, without inputs
        terms: Sequence[ObjectiveTerm],
        executor: Executor | InMemory,
        handles: Sequence[Handle],
        places: Sequence[Sequence[TermPlace]] | None,  # of terms of each partition; None: one partition has all data
        vectors: Vectors,
        workers: Workers,  # for operations on vectors
        dtype: np.dtype,  # of scores
        forbidden: Edges | None,  # minus infinity for forbidden transitions, else zero
    ):
        self.problem, self.terms, self.vectors = problem, tuple(terms), vectors
        self.executor, self.handles, self._places = executor, list(handles), places
        self.workers, self.dtype, self.forbidden = workers, dtype, forbidden
        self.mapped, self.labelled = cliques_by_kind(self.terms)
        self._heads = {j: head for j, term in enumerate(self.terms) if (head := term.head) is not None}
        borders = problem.offsets[[0, -1] if places is None else problem.borders]
        self._partitions = Partitions(borders.astype(np.int64))  # of positions
        self._extents: dict[tuple[int, int], Extent] = {}

    @classmethod
    def of(cls, partition: Partition) -> Engine:
        """Return the engine of a partition that has all data."""
        about = partition.vectors, partition.workers, partition.dtype, partition.forbidden
        return cls(partition.problem, partition.terms, InMemory(), [partition], None, *about)

    @classmethod
    def over(
        cls,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        executor: Executor,
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
        names: Sequence[str] | None = None,
    ) -> Engine:
        """Return the engine of terms whose maps are here or distant, for partitions of these names."""
        terms = [term.for_labels(problem.label_count) for term in terms]
        sources = partition_sources(problem, terms, np.dtype(dtype), forbidden, names)
        about = HostVectors(block_slices(terms), workers), workers, np.dtype(dtype), forbidden
        places = [source.places for source in sources]
        return cls(problem, terms, executor, executor.load(sources), places, *about)

    @property
    def lasting(self) -> bool:
        """True if making it is slow, because its data goes elsewhere."""
        return self._places is not None

    def head(self, term: int) -> Head:
        """Return the head of the map of a term that has one."""
        return self._heads[term]

    def pivot_head(self, term: int) -> PivotHead:
        """Return the head of a nested map."""
        head = self.head(term)
        assert isinstance(head, PivotHead)
        return head

    def block(self, vector: Vector, term: int) -> np.ndarray:
        """Return the block of a term as an array; callers must not change it."""
        return self.vectors.to_array(self.vectors.take(vector, term))

    def potentials(self, theta: Vector) -> Edges:
        """Return T, s, e and U, as far as the model has them, with forbidden transitions at minus infinity."""
        edges = shared_edges(self.labelled, partial(self.block, theta), self.problem.label_count)
        return edges if self.forbidden is None else edges.plus(self.forbidden)

    # Parameters on their way to partitions, and sums on their way back.

    @cached_property
    def _deals(self) -> list[Deal]:
        """Function from a block of each term to the parts that partitions need."""
        assert self._places is not None and not isinstance(self.executor, InMemory)
        by_term = zip(*self._places, strict=True)
        return [self.executor.deal([place.chosen for place in places], places[0].size) for places in by_term]

    def _for_partitions(self, *vectors: Vector, side_by_side: bool = False) -> Iterator[tuple[Parameters, ...]]:
        """Yield what each partition needs of some vectors, one at a time: all of them may be much."""
        if self._places is None:
            yield vectors
            return
        ready = self._ready(vectors) if side_by_side else [self._ready([vector])[0] for vector in vectors]
        coming = [[deal(block) for deal, block in zip(self._deals, blocks, strict=True)] for blocks in ready]
        for _ in self.handles:
            yield tuple([next(blocks) for blocks in of_vector] for of_vector in coming)

    def _ready(self, vectors: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Return blocks that partitions multiply with: for each vector, [D, C] or [K] of each term in `dtype`."""
        ready = []
        for j, term in enumerate(self.terms):
            blocks = [self.vectors.take(vector, j) for vector in vectors]
            if len(vectors) > 1 and term.nested:
                ready.append(self._side_by_side(self.head(j).ready, [term.of_map(block) for block in blocks]))
            else:
                ready.append([self._ready_block(j, block) for block in blocks])
        return [list(blocks) for blocks in zip(*ready, strict=True)]

    def _side_by_side(self, solve: Callable[..., np.ndarray], blocks: list[Any], *more: Any) -> list[np.ndarray]:
        """Solve systems of pivots at several points as a partition of all data does: bits depend on the columns."""
        solved = solve(np.hstack(blocks), *more, self.dtype, self.workers)
        return [np.ascontiguousarray(columns) for columns in np.split(solved, len(blocks), axis=1)]

    def _ready_block(self, j: int, block: np.ndarray) -> np.ndarray:
        if not self.terms[j].clique.mapped:
            return block
        return self.head(j).ready(self.terms[j].of_map(block), self.dtype, self.workers)

    def _finished(self, j: int, sums: np.ndarray) -> np.ndarray:
        """Return the block of a gradient from the sum over partitions."""
        term = self.terms[j]
        if not term.clique.mapped:
            return sums
        head = self.head(j)
        if term.places is not None:
            return head.finish(sums.ravel(), term.places.kept // term.columns, self.dtype, self.workers)
        return head.finish(sums, None, self.dtype, self.workers).ravel()

    def _collected(self, points: Sequence[Any]) -> list[Vector]:
        """Return a vector for each point, of what partitions answered in total."""
        if self._places is None:
            return list(points)
        out = [self.vectors.empty() for _ in points]
        for j, term in enumerate(self.terms):
            sums = [blocks[j] for blocks in points]
            if len(points) > 1 and term.nested:
                finished = self._side_by_side(self.head(j).finish, sums, None)
            else:
                finished = [self._finished(j, total) for total in sums]
            for vector, block in zip(out, finished, strict=True):
                self.vectors.put(vector, j, block.ravel())
        return out

    def _each(self, *shared: Any) -> list[tuple]:
        """Return the same arguments for all partitions."""
        return [shared] * len(self.handles)

    def _asked(self, method: Method[Result], theta: Vector, *others: Any) -> list[Result]:
        """Return the answers of all partitions to a question about parameters."""
        arguments = ((*points, *others) for points in self._for_partitions(theta))
        return list(self.executor.ask(self.handles, method, arguments))

    def _joined(self, method: Method[np.ndarray], theta: Vector, *others: Any) -> np.ndarray:
        """Join the arrays of all partitions."""
        return np.concatenate(self._asked(method, theta, *others))

    def _rows_by_partition(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return positions by partition, counted from its first one."""
        within = self._partitions.within(rows).slices
        return [rows[part] - whole.start for part, whole in zip(within, self._partitions.slices, strict=True)]

    # The objective and its derivatives.

    def evaluate(self, theta: Vector) -> tuple[float, Vector]:
        """Return the weighted log-likelihood and the gradient of its negative; sums are in double precision."""
        return self._evaluate_together([theta])[0]

    def evaluate_all(self, thetas: Sequence[Vector]) -> Iterator[tuple[float, Vector]]:
        """Evaluate several points.

        Kernel values that are not stored are computed once for all points. If no term has kernel values, points are
        evaluated one after another, to save memory.
        """
        if len(thetas) > 1 and any(term.nested for term in self.terms):
            return iter(self._evaluate_together(thetas))
        return map(self.evaluate, thetas)

    def _evaluate_together(self, thetas: Sequence[Vector]) -> list[tuple[float, Vector]]:
        """Evaluate several points in one pass over the data."""
        arguments = ((points,) for points in self._for_partitions(*thetas, side_by_side=True))
        values, gradients = self.executor.total(self.handles, Partition.evaluate, arguments)
        return list(zip(values.tolist(), self._collected(gradients), strict=True))

    def product(self, theta: Vector, vector: Vector) -> Vector:
        """Multiply the Hessian of the negative log-likelihood at theta by a vector."""
        total = self.executor.total(self.handles, Partition.product, self._for_partitions(theta, vector))
        return self._collected([total])[0]

    def blocks(self, theta: Vector, diagonals: bool = False, negligible: float = 0.0) -> EngineBlocks:
        """Return blocks of the Hessian, `diagonals` of small ones, without cliques of `negligible` variance."""
        arguments = [(*points, diagonals, negligible) for points in self._for_partitions(theta)]
        return EngineBlocks(self, self.executor.derive(self.handles, Partition.blocks, arguments), negligible)

    def sampled_hessian(self, theta: Vector, places: np.ndarray, samples: int) -> np.ndarray | None:
        """Estimate the Hessian of the negative log-likelihood in parameters at these places, [d, d]; None: it cannot.

        It is the covariance of features' sums under the model, here of about so many labellings drawn from it: more of
        sequences whose labels are uncertain, two or more of each, and of no more sequences than that allows.
        """
        if not all(self.executor.ask(self.handles, Partition.draws, self._each())):
            return None
        size, S, weights = len(places), len(self.problem.weights), self.problem.position_weights()
        chosen = np.unique(np.linspace(0, S - 1, min(S, samples)).astype(np.int64))
        spread = np.sqrt(self._joined(Partition.label_variances, theta)[chosen])
        each = np.zeros(S, dtype=np.int64)
        each[chosen] = 2 + (samples * spread / max(spread.sum(), 1e-300)).astype(np.int64)
        number, scale = np.full(self.vectors.size, -1, dtype=np.int32), np.ones(self.vectors.size)
        number[places] = np.arange(size, dtype=np.int32)
        for j, (part, term) in enumerate(zip(self.vectors.blocks, self.terms, strict=True)):
            if term.clique.mapped and len(factors := self.head(j).scale):
                scale[part] = term.spread(np.append(factors, np.ones(term.rows - len(factors))))
        blocks = [number[part] for part in self.vectors.blocks]
        borders = [0, S] if self._places is None else self.problem.borders.tolist()
        arguments = []
        for k, points in enumerate(self._for_partitions(theta)):
            own = blocks
            if self._places is not None:
                own = [b if p.places is None else b[p.places] for b, p in zip(blocks, self._places[k], strict=True)]
            arguments.append((*points, own, size, each[borders[k] : borders[k + 1]], borders[k]))
        answers = iter(self.executor.ask(self.handles, Partition.sampled_hessian, arguments))
        total = reduce(iadd, answers, np.require(next(answers), requirements="W"))
        drawn = np.repeat(each > 0, np.diff(self.problem.offsets))
        own = (scale[places] * math.sqrt(weights.sum() / weights[drawn].sum())).astype(np.float32)

        def scale_rows(part: slice) -> None:
            total[part, : part.stop] *= own[part, None]
            total[part, : part.stop] *= own[: part.stop]

        def mirror(part: slice) -> None:
            total[part, part.stop :] = total[part.stop :, part].T

        self.workers.run(scale_rows, ranges(size, COLUMNS_TOGETHER))
        self.workers.run(mirror, ranges(size, COLUMNS_TOGETHER))
        return total

    def in_double(self, held: bool) -> Engine:
        """Return an engine of the same problem and vectors in double precision, or itself if it has that.

        If `held`, maps keep their values in double precision if memory allows; else they compute them every time.
        """
        if self.dtype == np.float64:
            return self
        double = self._remade(Partition.in_double, held, {}, np.dtype(np.float64))
        double.vectors = self.vectors
        return double

    def narrowed(self, sizes: dict[int, int]) -> Engine:
        """Return the engine of the same problem on the first m columns of some terms' nested maps."""
        return self._remade(Partition.narrowed, sizes, sizes, self.dtype)

    def with_parameters(self, numbers: Mapping[int, np.ndarray]) -> Engine:
        """Return the engine of the same problem with some parameters of some terms alone, by number, ascending."""
        terms, kept = list(self.terms), dict(numbers)
        for j, chosen in numbers.items():
            if (before := terms[j].places) is not None:
                kept[j] = before.kept[chosen]
            terms[j] = terms[j].with_kept(kept[j])
        if self._places is None:
            return Engine.of(self.handles[0].with_parameters(kept, None))
        arguments, places = [], []
        for of_partition in self._places:
            rows, own = zip(*map(placed, terms, [place.columns for place in of_partition]), strict=True)
            arguments.append(({j: rows[j] for j in numbers}, own))
            places.append(own)
        handles = self.executor.derive(self.handles, Partition.with_parameters, arguments)
        about = HostVectors(block_slices(terms), self.workers), self.workers, self.dtype, self.forbidden
        return Engine(self.problem, terms, self.executor, handles, places, *about)

    def _remade(self, method: Method[Partition], given: Any, sizes: dict[int, int], dtype: np.dtype) -> Engine:
        """Return the engine of partitions that a method makes of these, with so many columns of some nested maps."""
        handles = self.executor.derive(self.handles, method, self._each(given))
        if self._places is None:
            return type(self).of(handles[0])
        terms = list(self.terms)
        for j, m in sizes.items():
            leading = DistantRows(self.pivot_head(j).leading(m, self.workers.memory), terms[j].mean_diagonal, ())
            terms[j] = replace(terms[j], map=None, distant=leading)
        about = HostVectors(block_slices(terms), self.workers), self.workers, dtype, self.forbidden
        return Engine(self.problem, terms, self.executor, handles, self._places, *about)

    # Rounding errors, and statistics of maps that solvers begin with.

    def rounding(self, theta: Vector) -> list[Rounding]:
        """Bound the rounding error of an evaluation in double precision at theta, for each term."""
        error_sum = 2 * float(self.problem.position_weights().sum())  # |p - e_y| is at most 2, summed over labels
        bounds = [Rounding()] * len(self.terms)
        for j in self.mapped:
            extent = self.extent(j, self.head(j).scale)
            about = Evaluated(error_sum, self.problem.positions, extent, partial(self._outside_roots, theta, j))
            bounds[j] = self.head(j).rounding(self.terms[j].of_map(self.block(theta, j)), about)
        return bounds

    def extent(self, term: int, scale: np.ndarray) -> Extent:
        """Return the largest values of a term's rows, multiplied by factors of its columns if given."""
        if (term, len(scale)) not in self._extents:
            chosen = [None] if self._places is None else [places[term].columns for places in self._places]
            arguments = [
                (term, scale if columns is None else scale[columns[columns < len(scale)]]) for columns in chosen
            ]
            extents = self.executor.ask(self.handles, Partition.extent, arguments)
            self._extents[term, len(scale)] = reduce(Extent.joined, extents)
        return self._extents[term, len(scale)]

    def _outside_roots(self, theta: Vector, term: int, gram: float) -> float:
        arguments = ((*points, term, gram) for points in self._for_partitions(theta))
        return self.executor.total(self.handles, Partition.outside_roots, arguments)

    def column_squares(self, term: int) -> np.ndarray:
        """Return the weighted sum of squares of each column of a term's map, [D]."""
        raw: Any = self.executor.total(self.handles, Partition.raw_squares, self._each(term))
        return self.head(term).squares(raw.ravel())

    def leading_gram(self, term: int, m: int, most: int) -> np.ndarray:
        """Return Phi^T Phi [m, m] of the first m columns of a nested map, scaled to all from at most `most` rows."""
        rows, weights = spread_rows(self.problem, most), self.problem.position_weights()
        inverse = self.pivot_head(term).inverse(m, self.dtype)
        arguments = [(term, inverse, chosen) for chosen in self._rows_by_partition(rows)]
        gram = self.executor.total(self.handles, Partition.sampled_gram, arguments)
        return gram * (weights.sum() / weights[rows].sum())

    def real_grams(self, theta: Vector, most: Mapping[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Return Phi^T diag(q) Phi of some terms' real columns, [R, R] each, and `EngineBlocks.variance_share`.

        q is the mean variance of a term's states at each position. The sum is over a sample of at most `most`
        positions, scaled to all.
        """
        rows = {j: spread_rows(self.problem, many) for j, many in most.items()}
        by_part = {j: self._rows_by_partition(chosen) for j, chosen in rows.items()}
        arguments = [
            (*points, {j: chosen[number] for j, chosen in by_part.items()})
            for number, points in enumerate(self._for_partitions(theta))
        ]
        grams, variance = self.executor.total(self.handles, Partition.sampled_real_grams, arguments)
        weights = self.problem.position_weights()
        scales = [weights.sum() / weights[chosen].sum() for chosen in rows.values()]
        scaled = {j: gram * scale for j, gram, scale in zip(rows, grams, scales, strict=True)}
        return scaled, self.part_of_variance(variance)

    def part_of_variance(self, variance: float) -> float:
        """Divide a variance, summed over positions, by the largest possible."""
        return variance / max(self.problem.positions * (1 - 1 / self.problem.label_count), 1e-300)

    def inverse_power(self, matrix: np.ndarray, shift: float, power: float) -> np.ndarray:
        """Return (matrix + shift I)^-power of a positive semidefinite matrix [m, m], to 4 %; 0 < power < 1."""
        return inverse_power(matrix, shift, power, self.workers)

    # Labels and probabilities.

    def errors(self, theta: Vector, clique: Clique) -> np.ndarray:
        """Return w (p - e_y) of the cliques of each position, the factors of gradients, [N, columns]."""
        return self._joined(Partition.errors, theta, clique)

    def predictions(self, theta: Vector) -> Predictions:
        """Predict by each decoder, and return the probabilities of gold labels (any value for unknown labels)."""
        parts = self._asked(Partition.predictions, theta)
        labels = {name: np.concatenate([part.labels[name] for part in parts]) for name in DECODINGS}
        return Predictions(labels, np.concatenate([part.gold for part in parts]))

    def best_labels(self, theta: Vector, bonuses: np.ndarray) -> np.ndarray:
        """Return labels [N] int32 by Viterbi decoding, with numbers [Y + 1, Y] of `Edges.with_bonuses`."""
        return self._joined(Partition.best_labels, theta, bonuses)

    def sequence_log_probabilities(self, theta: Vector) -> np.ndarray:
        """Return log p(y | x) of each sequence, for the observed labels y, [S]."""
        return self._joined(Partition.sequence_log_probabilities, theta)


class EngineBlocks:
    """Blocks of the Hessian at one point (30), one per term, as if cliques were independent of each other."""

    def __init__(self, engine: Engine, handles: Sequence[Handle], negligible: float):
        self._engine, self._handles, self._negligible = engine, handles, negligible
        summary = engine.executor.total(handles, PartitionBlocks.summary, engine._each())
        self.operations, variance, small, open_rows = summary  # operations beyond those of half a pass
        self.variance_share = engine.part_of_variance(variance)  # mean variance of labels, of the largest possible
        # Blocks of terms over labels alone, without the prior: matrices, or their diagonals.
        self.small = dict(zip(engine.labelled, small, strict=True))
        self._open = dict(zip(engine.mapped, open_rows, strict=True))

    def share(self, term: int) -> float:
        """Return the share of the positions that a product with a term's block uses."""
        rows, N = self._open[term], self._engine.problem.positions
        return rows / max(N, 1) if self._negligible > 0 and rows <= (1 - WORTH_LEAVING_OUT) * N else 1.0

    def product(self, term: int, block: Vector) -> Vector:
        """Multiply the block of a term with a map, without the prior, by a block of a vector."""
        engine, leave_out = self._engine, self.share(term) < 1
        if engine._places is None:
            return engine.executor.total(self._handles, PartitionBlocks.product, [(term, block, leave_out)])
        dealt = engine._deals[term](engine._ready_block(term, block))
        arguments = ((term, part, leave_out) for part in dealt)
        total: Any = engine.executor.total(self._handles, PartitionBlocks.product, arguments)
        return engine._finished(term, total)

    def diagonal(self, term: int) -> np.ndarray:
        """Return the diagonal of the block of a term with an explicit map, without the prior, [size]."""
        engine = self._engine
        raw: Any = engine.executor.total(self._handles, PartitionBlocks.raw_diagonal, engine._each(term))
        return engine.terms[term].scaled_squares(np.require(raw.ravel(), None, "W"), engine.head(term).scale)
