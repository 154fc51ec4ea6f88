"""Training on a folder of shards, of which one at a time need be in memory.

Terms, pivots and sigma2 are chosen on a sample from all over the folder; explicit maps are found on all of it, made
once for each shard and written to scratch space, which a pass reads back. Kernel values are made again of the shard's
inputs where they do not fit memory. P is minimised over all shards (`objective.engine`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..config import GRADIENT, Config
from ..corpora import spread_sequences
from ..encoding import Dataset, join_datasets
from ..errors import ConfigError
from ..features import FitContext, FittedTerm, MakeMap, TermInputs, TrainingData, fit_to, map_type
from ..files import ScratchFolder
from ..kernels import Inputs, Kernel
from ..maps import (
    CompressedRows,
    ExplicitHead,
    ExplicitMap,
    ExplicitSpec,
    FeatureMap,
    KernelSpec,
    RepeatedMap,
    RepeatedSpec,
)
from ..model import Model, ShardFolder, StoredShard, encoding_of
from ..objective import DistantRows, Engine, Executor, LocalExecutor, Vector
from ..objective.solvers import Event, Note, Observer, Run
from ..system import Workers, counted, hand_back, sequence_rows
from .growth import Growth
from .prior_search import Prior
from .task import Solution, TrainingTask
from .training import Report, TrainingRun, TrainOptions

# Positions of the sample: sigma2 is searched on some of it, and pivots are chosen among them.
SAMPLE_POSITIONS = 400_000


@dataclass(frozen=True, eq=False)
class ShardPart:
    """The sequences of a shard that are trained on: a plain value, to be loaded anywhere by its path."""

    shard: StoredShard
    folder: str
    digest: str
    sequences: np.ndarray | None = None  # those that are, by their numbers in the shard; None: all

    def dataset(self) -> Dataset:
        found = self.shard.load(encoding_of(self.folder, self.digest), check=False)
        return found if self.sequences is None else found.subset(self.sequences)

    def inputs(self, features: Sequence[str], zeros: bool = False) -> Inputs:
        """Return the inputs of some features at its positions."""
        return encoding_of(self.folder, self.digest).inputs(self.dataset(), features, zeros).seen()


@dataclass(frozen=True, eq=False)
class ShardedData(TrainingData):
    """Shards of a folder as they are trained on; those of which nothing is left are not there."""

    parts: tuple[ShardPart, ...]
    scratch: Scratch | None = None  # where maps are written
    observer: Observer = field(default_factory=Observer)

    @classmethod
    def of(cls, folder: ShardFolder, sequences: np.ndarray | None = None) -> ShardedData:
        """Take some sequences of a folder, by their numbers in ascending order, or all."""
        ends = np.cumsum([0, *(shard.sequences for shard in folder.shards)])
        parts = []
        for number, shard in enumerate(folder.shards):
            own = None
            if sequences is not None:
                first, last = np.searchsorted(sequences, ends[number : number + 2])
                own = sequences[first:last] - ends[number]
                if not len(own):
                    continue
                own = None if len(own) == shard.sequences else own
            there = replace(shard, path=os.path.abspath(shard.path))  # for processes in another folder
            parts.append(ShardPart(there, os.path.abspath(folder.path), folder.digest, own))
        return cls(folder.encoding, tuple(parts))

    def visited(self) -> Iterator[ShardPart]:
        """Go through the parts, and report how many are done."""
        for number, part in enumerate(self.parts):
            self.observer.steps("going through shards", number, len(self.parts))
            yield part

    def inputs_of(self, features: tuple[str, ...], zeros: bool = False) -> ShardInputs:
        like = self.encoding.inputs(self.encoding.empty_dataset(), features)
        return ShardInputs(features, like, self, zeros)

    def with_pivots(self, term: FittedTerm, dtype: np.dtype, observer: Observer) -> FittedTerm:
        """Return a term whose pivots were chosen on a sample, with kernel values of all parts."""
        data, basis, head, sizes = self.inputs_of(term.features), term.basis, term.head, []
        assert basis is not None and head is not None

        def visit(inputs: Inputs) -> None:
            sizes.append((len(inputs), inputs.nbytes // max(len(inputs), 1)))

        shared = data.scanned(term.config.name, observer, visit)
        values = tuple(
            ShardKernel(part, term.features, basis.kernel, basis.pivots, dtype, *size, shared)
            for part, size in zip(self.parts, sizes, strict=True)
        )
        return replace(term, map=None, distant=DistantRows(head, term.mean_diagonal, values))


class ShardInputs(TermInputs):
    """Inputs of a term, shard by shard."""

    in_memory = False
    where_shared = " in its shard"

    def __init__(self, features: tuple[str, ...], like: Inputs, data: ShardedData, zeros: bool):
        self.features, self.like, self._data, self._zeros = features, like, data, zeros

    def __iter__(self) -> Iterator[Inputs]:
        for part in self._data.visited():
            yield part.inputs(self.features, self._zeros)

    def fitted_to(self) -> Inputs:
        norms, first = [], None
        for inputs in self:
            first = inputs if first is None else first
            norms.append(inputs.squared_norms())
        assert first is not None
        return _Lengths(first.codes, first.sizes, first.real, first.bag, first.unseen, np.concatenate(norms))

    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> DistantRows:
        scratch, written, squares, positions = self._data.scratch, [], 0.0, 0
        assert scratch is not None
        for inputs in self:
            made = self.map_of_partition(inputs, make, shared, workers)
            squares, positions = squares + made.mean_diagonal() * len(inputs), positions + len(inputs)
            written.append(scratch.keep(made.spec(np.arange(len(inputs)))))
        return DistantRows(made.head, squares / max(positions, 1), tuple(written))


def _has_all(some: np.ndarray, group: np.ndarray) -> bool:
    """True if some positions have all groups."""
    return len(np.unique(some)) == int(group.max(initial=-1)) + 1


@dataclass(frozen=True)
class _Lengths(Inputs):
    """Some inputs, with the squared lengths of many more."""

    norms: np.ndarray

    def squared_norms(self) -> np.ndarray:
        return self.norms


class Scratch(ScratchFolder):
    """A folder for maps, removed after training; beside the data, where large files have room, if that can be."""

    def __init__(self, beside: str):
        place = os.path.dirname(os.path.abspath(beside))
        self._place = place if os.access(place, os.W_OK) else tempfile.gettempdir()
        super().__init__(self._place)
        self._count = 0

    def keep(self, spec: ExplicitSpec | RepeatedSpec) -> WrittenMap:
        """Write what a map is made of, for passes to come."""
        group = spec.group if isinstance(spec, RepeatedSpec) else None
        own = spec.distinct if isinstance(spec, RepeatedSpec) else spec
        by_columns = own.rows.by_columns()
        arrays = [own.rows.indptr, own.rows.indices, own.rows.values, own.dense]
        arrays += [by_columns.indptr, by_columns.indices, by_columns.values]
        arrays += [each for each in (own.rest, *(own.rows.zeros or ()), group) if each is not None]
        self._count += 1
        path = os.path.join(self.path, f"map-{self._count:06d}")
        try:
            with open(path, "wb") as stream:
                for array in map(np.ascontiguousarray, arrays):  # `numpy.save` loses the reason of a failure
                    np.lib.format.write_array_header_1_0(stream, np.lib.format.header_data_from_array_1_0(array))
                    stream.write(array.reshape(-1).view(np.uint8).data)
        except OSError as error:
            why = f"{error.strerror}, where scratch files of training go: make room, or put the shards on another disk"
            raise OSError(error.errno, why, self._place) from None
        having = own.rest is not None, own.rows.zeros is not None, group is not None
        return WrittenMap(path, own.columns, spec.nbytes, own.rows.width, *having)


@dataclass(frozen=True, eq=False)
class WrittenMap:
    """The spec of an explicit map that is read from a file."""

    path: str
    columns: np.ndarray  # [D'] int32, those of the whole map that it has, ascending
    nbytes: int
    width: int  # of its sparse part
    has_rest: bool
    has_zeros: bool
    repeated: bool

    table = 0

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[WrittenMap, bool]:
        """Write the map of some rows; return it, and True if all of its distinct rows are still there."""
        made: Any = self.load(workers)
        kept = scratch.keep(made.spec(rows))
        whole = self.repeated and _has_all(made.group[rows], made.group)
        return replace(kept, columns=self.columns[kept.columns]), whole

    def load(self, workers: Workers) -> FeatureMap:
        with open(self.path, "rb") as stream:

            def array() -> Any:
                return np.lib.format.read_array(stream, allow_pickle=False)

            nothing = np.empty(0)
            rows = CompressedRows(self.width, array(), array(), array(), nothing)
            dense = array()
            by_columns = CompressedRows(len(rows.indptr) - 1, array(), array(), array(), nothing)
            rest = array() if self.has_rest else None
            rows = replace(rows, zeros=(array(), array()) if self.has_zeros else None)
            own = ExplicitMap(rows, dense, dense.dtype, rest=rest, by_columns=by_columns)
            return RepeatedMap(own, array(), workers) if self.repeated else own


@dataclass(frozen=True, eq=False)
class ShardKernel:
    """The spec of kernel values of a shard with pivots."""

    part: ShardPart
    features: tuple[str, ...]
    kernel: Kernel
    pivots: Inputs
    dtype: np.dtype
    positions: int
    width: int  # bytes of the inputs of a position
    shared: bool  # True if each distinct input is computed once
    rows: np.ndarray | None = None  # of those positions that the part has, these alone; None: all

    columns = None  # all of them

    def subset(self, rows: np.ndarray, scratch: Scratch, workers: Workers) -> tuple[ShardKernel, bool]:
        """Return kernel values of some rows."""
        rows = rows if self.rows is None else self.rows[rows]
        return replace(self, rows=rows, positions=len(rows)), True

    @property
    def nbytes(self) -> int:
        return self.positions * (self.width + 8) + self.pivots.nbytes

    @property
    def table(self) -> int:
        return self.positions * len(self.pivots) * self.dtype.itemsize

    def load(self, workers: Workers) -> FeatureMap:
        inputs, group = self.part.inputs(self.features), None
        if self.shared:
            rows, group = inputs.distinct()
            if self.rows is not None:
                chosen, group = np.unique(group[self.rows], return_inverse=True)
                rows, group = rows[chosen], group.ravel()
            inputs = inputs.take(rows)
        elif self.rows is not None:
            inputs = inputs.take(self.rows)
        diagonal = self.kernel.diagonal(inputs)
        own = KernelSpec(inputs, self.kernel, self.pivots, diagonal, None, False, self.dtype).load(workers)
        return own if group is None else RepeatedMap(own, group, workers)


@dataclass(frozen=True)
class ShardedTask(TrainingTask):
    """Terms whose maps are in shards, by specs for each partition of the problem."""

    names: Sequence[str] = field(kw_only=True)  # of the parts
    executor: Executor = field(kw_only=True)  # which has the parts
    scratch: Scratch = field(kw_only=True)  # where maps are written

    def subset(self, sequences: np.ndarray) -> ShardedTask:
        offsets, borders = self.problem.offsets, self.problem.borders
        ends = np.searchsorted(sequences, borders).tolist()
        alive = [number for number, (first, last) in enumerate(pairwise(ends)) if first < last]
        rows = [sequence_rows(offsets, sequences[ends[k] : ends[k + 1]]) - offsets[borders[k]] for k in alive]
        terms = []
        for term in self.terms:
            if (distant := term.distant) is not None:
                sources, head = [], distant.head
                for number, chosen in zip(alive, rows, strict=True):
                    source: Any = distant.sources[number]
                    source, whole = source.subset(chosen, self.scratch, self.workers)
                    sources.append(source)
                    if not whole and isinstance(head, ExplicitHead):  # as a map in memory scales it
                        head = replace(head, counts=None)
                term = replace(term, distant=DistantRows(head, distant.mean_diagonal, tuple(sources)))
            terms.append(term)
        problem, names = self.problem.subset(sequences), [self.names[number] for number in alive]
        return replace(self, problem=problem, terms=tuple(terms), names=names)

    def _engine(self, terms: Sequence[FittedTerm]) -> Engine:
        about = self.workers, self.dtype, self.forbidden, self.names
        return Engine.over(self.problem, terms, self.executor, *about)


def check_shard_terms(config: Config) -> None:
    """Refuse terms that look at all positions at once."""
    for term in config.mapped_terms:
        at, why = f"term '{term.name}'", "and shards are not in memory at once"
        if term.map.type == "full":
            message = f"{at}: map 'full' has every position as a pivot, {why}; 'reduced' can"
            raise ConfigError(message, settings=["map"])
        if term.map.select == GRADIENT:
            message = f"{at}: 'select: gradient' needs all positions after each fit, {why}"
            raise ConfigError(f"{message}: choose another value", settings=["select"])


def train_shards(
    folder: ShardFolder, config: Config, *, outline: Dataset | None = None, workers: Workers, **wishes: Any
) -> tuple[Model, Report]:
    """Fit a model to a folder of shards; `wishes` are those of `TrainOptions`, and `train` says what they mean.

    `outline` is the folder's own, where it is loaded already. The workers' executor has the parts, else this process.
    """
    options = TrainOptions(**wishes)
    whole = "and shards are not in memory at once: leave it out"
    if options.prune is not None:
        raise ConfigError(f"pruning needs the scores of all positions at once, {whole}", settings=["prune"])
    if options.certify == "exact":
        raise ConfigError(f"an exact certificate needs all pairs of positions, {whole}", settings=["certify"])
    check_shard_terms(config)
    scratch = Scratch(folder.path)
    try:
        outline = folder.outline() if outline is None else outline
        return ShardRun(folder, outline, config, workers, options, scratch).run()
    finally:
        scratch.remove()


class ShardRun(TrainingRun):
    """One run on shards. Stages before the final fit look at a sample, `settle` turns to all of the data."""

    def __init__(
        self,
        folder: ShardFolder,
        outline: Dataset,
        config: Config,
        workers: Workers,
        options: TrainOptions,
        scratch: Scratch,
    ):
        super().__init__(folder.encoding, outline, config, workers, options)
        self._folder, self._scratch = folder, scratch
        self._executor = workers.executor or LocalExecutor(workers)
        device = workers.device
        if device is not None:
            name = device.backend.name
            options.observer.note(f"engine {name}: threads go through shards; pivots and sigma2 are found on it")
        self._data = replace(ShardedData.of(folder), observer=options.observer)

    def fit_terms(self) -> TrainingTask:
        """Fix the terms on a sample; on all of the data where no choice is to be made."""
        # On the sample a kernel may have an explicit map that it has not on all of the data.
        inputs = {
            term.name: self._data.inputs_of(tuple(self._encoding.term_features(term)))
            for term in self._config.mapped_terms
        }
        types = {term.name: map_type(term, inputs[term.name]) for term in self._config.mapped_terms}
        self._terms = tuple(
            replace(term, map=replace(term.map, type=types[term.name])) if term.name in types else term
            for term in self._config.terms
        )
        if None not in self._given.values() and not self._options.select_terms and set(types.values()) == {"explicit"}:
            return self._on_shards([term.name for term in self._config.terms], {})
        which = spread_sequences(self._dataset.sequences, self._dataset.positions, SAMPLE_POSITIONS)
        parts = [part.dataset() for part in ShardedData.of(self._folder, which).parts]
        own, sample = self._dataset.subset(which), join_datasets(parts)
        sample = replace(sample, labels=own.labels, half_known=own.half_known, source=self._folder.path)
        self._observer.report(
            f"pivots and sigma2 are chosen on {counted(sample.sequences, 'sequence')} from all over the data, "
            f"{sample.positions:,} of {counted(self._dataset.positions, 'position')}"
        )
        options = replace(
            self._options,
            observer=_OfSample(self._observer),
            dev=None,
            start=None,
            hold_out=self._hold_out.subset(which),
        )
        config = replace(self._config, terms=self._terms)
        rehearsal = TrainingRun(self._encoding, sample, config, self._workers, options)
        task = rehearsal.fit_terms()
        if rehearsal.training.precision != self.training.precision:  # single is not enough for some pivots
            self.training = replace(self.training, precision=rehearsal.training.precision)
            self._config = replace(self._config, training=self.training)
        if self._options.select_terms or None in self._given.values():
            self.hold_out = rehearsal.hold_out
        return task

    def _on_shards(self, names: Sequence[str], chosen: Mapping[str, FittedTerm]) -> ShardedTask:
        """Fit the terms of these names to all of the data."""
        training, problem, data = self.training, self._problem, replace(self._data, scratch=self._scratch)
        config = replace(self._config, terms=tuple(term for term in self._terms if term.name in names))
        context = FitContext(data, config, self._workers, self._observer)
        pivots = {name: partial(data.with_pivots, term, context.dtype, self._observer) for name, term in chosen.items()}
        terms = fit_to(context, None, chosen=pivots)
        hand_back()
        restricted = self.restriction.terms(terms, problem, self._workers, self._observer)
        if self._workers.executor is None:
            self._observer.note(f"{counted(len(data.parts), 'shard')}, gone through one after another in every pass")
        return ShardedTask(
            problem,
            restricted,
            self._workers,
            context.dtype,
            self._forbidden,
            training.c1 or 0.0,
            names=[str(part.shard) for part in data.parts],
            executor=self._executor,
            scratch=self._scratch,
        )

    def settle(self, task: TrainingTask) -> TrainingTask:
        if not isinstance(task, ShardedTask):
            names = [term.config.name for term in task.terms]
            pivots = {term.config.name: term for term in task.terms if term.basis is not None}
            del task
            hand_back()
            task = self._on_shards(names, pivots)
        return task

    def starting_point(self, task: TrainingTask, prior: Prior, run: Run) -> Vector:
        """Return parameters to begin with; those of the sample have other columns."""
        return super().starting_point(task, replace(prior, theta=None), run)

    def outside(self, solution: Solution, growth: Growth | None) -> tuple[float | None, str]:
        """Return no gain outside explicit maps; that outside pivots is not known, as it takes all positions."""
        has_pivots = any(term.basis is not None for term in solution.task.terms)
        return None if has_pivots or not solution.objective.convex else 0.0, self._options.certify

    def data_digest(self) -> str:
        return self._folder.data_digest


class _OfSample(Observer):
    """Hands events to another observer, notes as those of a sample."""

    def __init__(self, other: Observer):
        self._other = other

    def tell(self, event: Event) -> None:
        self._other.tell(replace(event, text=f"sample: {event.text}") if isinstance(event, Note) else event)
