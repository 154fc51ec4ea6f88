"""A partition: a `ThreadEngine` on a run of whole sequences, which answers questions wherever it is.

Partitions are made of picklable specs, and are the same wherever they are made. Questions are names of methods of
`EnginePartition`, their arguments arrays and plain values. Parameters come as one block for each term, rows that its
head has made ready, those that the partition has columns for, in the precision of a pass. Results are summed over
partitions, by `plus` or an `Accumulator`, in the one order that all sums over partitions have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..chains import Clique, Edges, MappedClique, Problem
from ..maps import TOGETHER, KeptPlaces, Partitions, add_rows
from ..system import Workers
from .thread_engine import ObjectiveTerm, ThreadBlocks, ThreadEngine
from .vectors import HostVectors


class MapSpec(Protocol):
    """A picklable description of the core of a map on some rows."""

    @property
    def columns(self) -> np.ndarray | None: ...  # [D'] int32, those of the whole map that it has, ascending; None: all

    @property
    def nbytes(self) -> int: ...  # of what it makes, and has to be held

    @property
    def table(self) -> int: ...  # bytes that are held where they fit, else computed again

    def load(self, workers: Workers) -> Any:
        """Return the core, with memory and threads of these workers."""


@dataclass(frozen=True, eq=False)
class TermSpec:
    """A term of a partition."""

    clique: Clique
    map: MapSpec | None = None  # None: the term looks at labels alone
    places: np.ndarray | None = None  # [K'] which of the parameters that are kept are here, ascending; None: all are
    kept: np.ndarray | None = None  # [K'] likewise, their places in the rows of W that are here


@dataclass(frozen=True, eq=False)
class EnginePartitionSpec:
    """A picklable description of a partition: labels, and rows of maps."""

    name: str  # in messages
    problem: Problem
    terms: tuple[TermSpec, ...]
    dtype: np.dtype
    forbidden: Edges | None = None

    @property
    def maps(self) -> list[MapSpec]:
        return [term.map for term in self.terms if term.map is not None]

    def about(self) -> list[tuple[np.ndarray | None, np.ndarray | None]]:
        """Return columns of the whole map, and parameters that are kept, which are here of each term; None: all."""
        return [(None if term.map is None else term.map.columns, term.places) for term in self.terms]

    def without_maps(self) -> EnginePartitionSpec:
        """Return the spec without those of its maps, which may be sent once for many partitions."""
        return replace(self, terms=tuple(replace(term, map=None) for term in self.terms))

    def with_maps(self, maps: Sequence[MapSpec]) -> EnginePartitionSpec:
        """Inverse of `without_maps`."""
        coming = iter(maps)
        terms = (replace(term, map=next(coming)) if term.clique.mapped else term for term in self.terms)
        return replace(self, terms=tuple(terms))

    @property
    def nbytes(self) -> int:
        """Bytes that have to be in memory at once: maps, errors of positions, and some arrays of weights."""
        problem, own = self.problem, sum(each.nbytes for each in self.maps)
        for term in self.terms:
            if term.map is not None:
                assert isinstance(term.clique, MappedClique)
                columns = term.clique.columns(problem.label_count)
                rows = 0 if term.map.columns is None else len(term.map.columns)
                weights = rows * columns if term.kept is None else 2 * len(term.kept)
                own += columns * problem.positions * self.dtype.itemsize + weights * (2 * 8 + self.dtype.itemsize)
        return own + problem.labels.nbytes + problem.offsets.nbytes + problem.weights.nbytes

    @property
    def table(self) -> int:
        return sum(each.table for each in self.maps)

    def load(self, workers: Workers) -> EnginePartition:
        """Return the partition, with memory and threads of these workers."""
        maps = iter([spec.load(workers) for spec in self.maps])
        terms = [
            ObjectiveTerm(term.clique, 1.0, None if term.map is None else next(maps), term.kept) for term in self.terms
        ]
        return EnginePartition(ThreadEngine(self.problem, terms, workers, self.dtype, self.forbidden), self.about())


def term_spec(clique: Clique, spec: MapSpec | None, places: KeptPlaces | None) -> TermSpec:
    """Return a term of a partition, of whose W only some places may have parameters."""
    if spec is None or places is None:
        return TermSpec(clique, spec)
    columns = np.arange(places.rows) if spec.columns is None else spec.columns.astype(np.int64)
    counts = places.ends[columns + 1] - places.ends[columns]
    own = np.repeat(places.ends[columns] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    kept = np.repeat(np.arange(len(columns)) * places.width, counts) + places.kept[own] % places.width
    return TermSpec(clique, spec, own, kept.astype(np.int64))


def partition_specs(
    problem: Problem,
    terms: Sequence[ObjectiveTerm],
    dtype: np.dtype,
    forbidden: Edges | None,
    maps: Sequence[Sequence[MapSpec] | None] | None,
    names: Sequence[str] | None,
) -> list[EnginePartitionSpec]:
    """Return specs of all partitions of a problem, from those of each term's map or from maps that are here."""
    partitions = Partitions(problem.offsets[problem.borders].astype(np.int64))
    places = [term.shape(problem.label_count).places for term in terms]
    if maps is None:
        maps = [None if term.map is None else map_specs(term.map, partitions) for term in terms]
    found = []
    for number in range(len(partitions)):
        own = tuple(
            term_spec(term.clique, None if specs is None else specs[number], kept)
            for term, kept, specs in zip(terms, places, maps, strict=True)
        )
        name = f"shard {number + 1} of {len(partitions)}" if names is None else names[number]
        found.append(EnginePartitionSpec(name, problem.partition(number), own, np.dtype(dtype), forbidden))
    return found


def map_specs(feature_map: Any, partitions: Partitions) -> list[MapSpec]:
    """Return specs of a map's partitions, made once: many problems share a map."""
    key, held = partitions.borders.tobytes(), feature_map.__dict__.setdefault("_partition_specs", {})
    if key not in held:
        held.clear()
        held[key] = [feature_map.spec(np.arange(part.start, part.stop)) for part in partitions.slices]
    return held[key]


@dataclass(frozen=True, eq=False)
class SomeRows:
    """Some rows of an array whose other rows are zero."""

    size: int  # rows of the whole
    places: np.ndarray  # [n] int32 or int64, ascending
    values: np.ndarray  # [n, C]


def plus(a: Any, b: Any) -> Any:
    """Add two answers: numbers, arrays, rows, and lists and tuples of these."""
    if a is None:
        return None
    if isinstance(a, SomeRows):
        places = np.union1d(a.places, b.places)
        values = np.zeros((len(places), a.values.shape[1]))  # sums of several are in double precision
        for each in (a, b):
            add_rows(values, np.searchsorted(places, each.places), each.values)
        return SomeRows(a.size, places, values)
    if isinstance(a, list | tuple):
        return type(a)(plus(x, y) for x, y in zip(a, b, strict=True))
    return a + b


class Accumulator:
    """Running sum of answers in the order of partitions; rows are put where they belong at once."""

    def __init__(self) -> None:
        self._total: Any = None
        self._group: Any = None
        self._count = 0

    def add(self, answer: Any) -> None:
        """Add the next partition's answer to the running sum."""
        if self._count and self._count % TOGETHER == 0:
            self.add_group(self._group)
            self._group = None
        self._group = _into(self._group, answer)
        self._count += 1

    def add_group(self, answer: Any) -> None:
        """Add the sum of the next partitions that stand together."""
        self._total = _into(self._total, answer)

    @property
    def total(self) -> Any:
        if self._group is not None:
            self.add_group(self._group)
            self._group = None
        return self._total


def _into(total: Any, answer: Any) -> Any:
    """Return total + answer, in the place of total where that is an array; None is zero."""
    if isinstance(answer, list | tuple):
        totals = [None] * len(answer) if total is None else total
        return type(answer)(_into(own, more) for own, more in zip(totals, answer, strict=True))
    if isinstance(answer, SomeRows):
        if total is None:
            total = np.zeros((answer.size, answer.values.shape[1]))
        add_rows(total, answer.places, answer.values)
        return total
    if isinstance(answer, np.ndarray):
        return answer.copy() if total is None else np.add(total, answer, out=total)
    return answer if total is None else total + answer


Block: TypeAlias = np.ndarray | SomeRows  # of an answer, for one term


@dataclass(frozen=True, eq=False)
class RowPlan:
    """Rows of a partition's block that other partitions share, and where they stand among all shared rows."""

    shared: np.ndarray  # [n] bool
    taken: np.ndarray  # [shared ones] int32


@dataclass(frozen=True, eq=False)
class DealtBlock:
    """A block of parameters whose shared rows are sent once for all partitions."""

    plan: Any  # a RowPlan, or the handle of one
    shared: Any  # rows that several partitions have, or their handle
    private: np.ndarray  # rows that this partition alone has

    def laid_out(self) -> np.ndarray:
        out = np.empty((len(self.plan.shared), *self.private.shape[1:]), dtype=self.private.dtype)
        out[self.plan.shared] = self.shared[self.plan.taken]
        out[~self.plan.shared] = self.private
        return out


def row_plans(rows: Sequence[np.ndarray], size: int) -> tuple[np.ndarray, list[RowPlan]]:
    """Return rows that several partitions have, where each has some of so many, and the plan of each."""
    counts = np.zeros(size, dtype=np.int32)
    for own in rows:
        counts[own] += 1
    several = counts > 1
    number = np.cumsum(several, dtype=np.int32) - 1
    return np.flatnonzero(several), [RowPlan(several[own], number[own][several[own]]) for own in rows]


Blocks: TypeAlias = Sequence[np.ndarray | DealtBlock]  # of parameters, one for each term


class PartitionVectors(HostVectors):
    """Vectors of a partition, which may also be lists of blocks in precisions of their own."""

    def take(self, vector: np.ndarray | list[np.ndarray], number: int) -> np.ndarray:
        return vector[number] if isinstance(vector, list) else super().take(vector, number)

    def cast(self, vector: np.ndarray | list[np.ndarray], dtype: np.dtype | type) -> Any:
        if isinstance(vector, list):
            return [block.astype(dtype, copy=False) for block in vector]
        return super().cast(vector, dtype)


class EnginePartition:
    """A run of whole sequences, with the cores of its terms' maps."""

    def __init__(self, engine: ThreadEngine, about: Sequence[tuple[np.ndarray | None, np.ndarray | None]]):
        engine.vectors = PartitionVectors(engine.vectors.blocks, engine.workers)
        self.engine, self._about = engine, list(about)

    def _vector(self, blocks: Blocks) -> list[np.ndarray]:
        return [(block.laid_out() if isinstance(block, DealtBlock) else block).reshape(-1) for block in blocks]

    def _blocks(self, vector: np.ndarray, sizes: Sequence[int]) -> list[Block]:
        """Return the blocks of a vector, placed in those of the whole, whose terms have so many rows."""
        return [self._block(self.engine.vectors.take(vector, j), j, size) for j, size in enumerate(sizes)]

    def _block(self, block: np.ndarray, term: int, size: int, squares: bool = False) -> Block:
        """Return the block of a term, placed in that of the whole; sums of squares stay in double precision."""
        shape, (columns, places) = self.engine.terms[term], self._about[term]
        if not shape.clique.mapped:
            return block
        if columns is None:
            return block.reshape(shape.rows, shape.columns)
        if not shape.real_columns and not squares:  # sums of sparse columns are in the precision of a pass already
            block = block.astype(self.engine.dtype)
        if places is not None:
            return SomeRows(size, places, block.reshape(-1, 1))
        return SomeRows(size, columns, block.reshape(shape.rows, shape.columns))

    def evaluate(self, points: Sequence[Blocks], sizes: Sequence[int]) -> tuple[np.ndarray, list[list[Block]]]:
        """Return log-likelihoods and gradients at some points."""
        found = list(self.engine.evaluate_all([self._vector(blocks) for blocks in points]))
        return np.array([value for value, _ in found]), [self._blocks(gradient, sizes) for _, gradient in found]

    def product(self, theta: Blocks, vector: Blocks, sizes: Sequence[int]) -> list[Block]:
        return self._blocks(self.engine.product(self._vector(theta), self._vector(vector)), sizes)

    def raw_squares(self, term: int, size: int) -> Block:
        raw, columns = self.engine.raw_squares(term), self._about[term][0]
        return raw if columns is None else SomeRows(size, columns, raw[:, None])

    def at(self, theta: Blocks, question: str, *others: Any) -> Any:
        """Ask the engine a question about parameters, with further arguments."""
        return getattr(self.engine, question)(self._vector(theta), *others)

    def of_term(self, question: str, *arguments: Any) -> Any:
        """Ask the engine a question about a term's map."""
        return getattr(self.engine, question)(*arguments)

    def in_double(self, held: bool) -> EnginePartition:
        engine = self.engine.in_double(held)
        assert isinstance(engine, ThreadEngine)
        return EnginePartition(engine, self._about)

    def narrowed(self, sizes: dict[int, int]) -> EnginePartition:
        return EnginePartition(self.engine.narrowed(sizes), self._about)

    def blocks(self, theta: Blocks, diagonals: bool, negligible: float) -> PartitionBlocks:
        return PartitionBlocks(self, self.engine.blocks(self._vector(theta), diagonals, negligible))


class PartitionBlocks:
    """Blocks of the Hessian of one partition."""

    def __init__(self, partition: EnginePartition, blocks: ThreadBlocks):
        self._partition, self._blocks = partition, blocks

    def summary(self) -> tuple[int, float, list[np.ndarray], list[int]]:
        """Return operations, the variance of labels, small blocks, and counts of positions that products go through."""
        blocks = self._blocks
        open_rows = [len(blocks.open_part(j)[1]) for j in self._partition.engine.mapped]
        return blocks.operations, blocks.variance, list(blocks.small.values()), open_rows

    def product(self, term: int, block: np.ndarray | DealtBlock, leave_out: bool, size: int) -> Block:
        found = self._blocks.product(term, self._partition._vector([block])[0], leave_out)
        return self._partition._block(found, term, size)

    def raw_diagonal(self, term: int, size: int) -> Block:
        return self._partition._block(self._blocks.raw_diagonal(term), term, size, squares=True)

    def leading_grams(self, term: int, columns: np.ndarray, negligible: float) -> tuple[np.ndarray, np.ndarray]:
        return self._blocks.leading_grams(term, columns, negligible)
