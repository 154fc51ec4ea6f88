"""Training on a folder of shards, of which one at a time need be in memory.

Terms, pivots, kernels that have them and sigma2 are chosen on a sample of sequences from all over the folder; explicit
maps are found on all of it. Then P is minimised over all shards by an engine of parts (`objective.composed_engine`):
those that fit the memory are held, the others read again in every pass. The model is that of the same data in one file
with the same shards, given the same choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..config import GRADIENT, Config
from ..corpora import spread_sequences
from ..device import device_of
from ..encoding import Dataset, join_datasets
from ..errors import ConfigError
from ..features import FitContext, FittedTerm, fit_to, map_type, observed_only
from ..model import Model, ShardFolder, digest, joined_digests
from ..objective import (
    ComposedEngine,
    ComposedTerm,
    EnginePartitionSpec,
    Executor,
    LocalExecutor,
    ObjectiveTerm,
    Vector,
    executor_of,
    term_spec,
)
from ..objective.solvers import Event, Note, Observer, Run
from ..system import Workers, counted, hand_back, sequence_rows
from .growth import Growth
from .prior_search import Prior
from .problems import distinct_only
from .shard_maps import Scratch, ShardedData
from .task import Solution, TrainingTask
from .training import Report, TrainingRun, TrainOptions

# Positions of the sample: sigma2 is searched on a part of it, and pivots are chosen among them.
SAMPLE_POSITIONS = 400_000


@dataclass(frozen=True)
class ShardedTask(TrainingTask):
    """Terms whose maps are in shards, by specs for each partition of the problem."""

    names: Sequence[str] = field(kw_only=True)  # of the parts
    executor: Executor = field(kw_only=True)  # which has the parts
    scratch: Scratch = field(kw_only=True)  # where maps are written

    def subset(self, sequences: np.ndarray) -> ShardedTask:
        """Return the task of the sequences of these numbers, in ascending order; their maps are written anew."""
        offsets, borders = self.problem.offsets, self.problem.borders
        ends = np.searchsorted(sequences, borders).tolist()
        alive = [number for number, (first, last) in enumerate(pairwise(ends)) if first < last]
        rows = [sequence_rows(offsets, sequences[ends[k] : ends[k + 1]]) - offsets[borders[k]] for k in alive]
        terms = []
        for term in self.terms:
            if term.partitions is not None:
                distant: Any = term.map
                parts: list[Any] = []
                for number, chosen in zip(alive, rows, strict=True):
                    part: Any = term.partitions[number]
                    part, whole = part.subset(chosen, self.scratch, self.workers)
                    parts.append(part)
                    distant = distant if whole else distant.without_counts()
                term = replace(term, partitions=tuple(parts), map=distant)
            terms.append(term)
        problem, names = self.problem.subset(sequences), [self.names[number] for number in alive]
        return replace(self, problem=problem, terms=tuple(terms), names=names)

    def _engine(self, terms: Sequence[ObjectiveTerm], present: Sequence[FittedTerm]) -> ComposedEngine:
        places = [term.shape(self.problem.label_count).places for term in terms]
        parts = []
        for number, name in enumerate(self.names):
            own = tuple(
                term_spec(term.clique, None if fitted.partitions is None else fitted.partitions[number], kept)
                for term, fitted, kept in zip(terms, present, places, strict=True)
            )
            parts.append(EnginePartitionSpec(name, self.problem.partition(number), own, self.dtype, self.forbidden))
        composed = [ComposedTerm.of(term) for term in terms]
        handles = self.executor.load(parts)
        return ComposedEngine(self.problem, composed, self.executor, handles, self.workers, self.dtype, self.forbidden)


def check_shard_terms(config: Config) -> None:
    """Refuse terms that look at all positions at once."""
    for term in config.mapped_terms:
        if term.map.type == "full":
            raise ConfigError(
                f"term '{term.name}': map 'full' has every position as a pivot, and shards are not in memory at once; "
                "'reduced' can",
                settings=["map"],
            )
        if term.map.select == GRADIENT:
            raise ConfigError(
                f"term '{term.name}': 'select: gradient' looks at all positions after each fit, and shards are not in "
                "memory at once: choose another way to find pivots",
                settings=["select"],
            )


def train_shards(
    folder: ShardFolder,
    config: Config,
    *,
    outline: Dataset | None = None,
    workers: Workers,
    **wishes: Any,
) -> tuple[Model, Report]:
    """Fit a model to a folder of shards; `wishes` are those of `TrainOptions`, and `train` says what they mean.

    `outline` is the folder's own, where it is loaded already. The workers' executor has the parts, else this process.
    """
    options = TrainOptions(**wishes)
    whole = "and shards are not in memory at once: leave it out"
    if options.prune is not None:
        raise ConfigError(f"pruning looks at the scores of all positions at once, {whole}", settings=["prune"])
    if options.certify == "exact":
        raise ConfigError(f"an exact certificate takes all pairs of positions, {whole}", settings=["certify"])
    check_shard_terms(config)
    with Scratch(folder.path) as scratch:
        outline = folder.outline() if outline is None else outline
        return ShardRun(folder, outline, config, workers, options, scratch).run()


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
        self._executor = executor_of(workers) or LocalExecutor(workers)
        device = device_of(workers)
        if device is not None:
            name = device.backend.name
            options.observer.note(f"engine {name}: threads go through shards; pivots and sigma2 are found on it")
        kept = None if self._violations is None else self._violations.kept
        self._data = ShardedData.of(folder, kept)

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
        borders, parts = self._dataset.borders, []
        for number, part in enumerate(self._data.parts):
            first, last = np.searchsorted(which, borders[number : number + 2])
            if first < last:
                parts.append(part.dataset().subset(which[first:last] - borders[number]))
        labels = self._dataset.subset(which).labels  # as they are trained on
        sample = replace(join_datasets(parts), labels=labels, source=self._folder.path)
        self._observer.note(
            f"pivots and sigma2 are chosen on {counted(sample.sequences, 'sequence')} from all over the data, "
            f"{sample.positions:,} of {counted(self._dataset.positions, 'position')}"
        )
        options = replace(
            self._options,
            observer=_Prefixed(self._observer, "sample: "),
            dev=None,
            start=None,
            keep="last",
            hold_out=self._hold_out.subset(which),
        )
        config = replace(self._config, terms=self._terms)
        rehearsal = TrainingRun(self._encoding, sample, config, self._workers, options)
        task = rehearsal.fit_terms()
        if rehearsal.training.precision != self.training.precision:  # single is not enough for some pivots
            self.training = replace(self.training, precision=rehearsal.training.precision)
            self._config = replace(self._config, training=self.training)
        self._hold_out = options.hold_out
        return task

    def _on_shards(self, names: Sequence[str], chosen: Mapping[str, FittedTerm]) -> ShardedTask:
        """Fit the terms of these names to all of the data."""
        training, borders = self.training, self._dataset.borders
        self._observer.stage("going through shards")
        problem, first = distinct_only(self._problem, self._trained_on(), self._observer)
        data = replace(self._data, scratch=self._scratch)
        alive = list(range(len(data.parts)))
        if first is not None:
            own = np.split(first, np.searchsorted(first, borders[1:-1]))
            data = replace(data, kept=tuple(each - border for each, border in zip(own, borders[:-1], strict=True)))
            alive = [number for number, each in enumerate(own) if len(each)]
        config = replace(self._config, terms=tuple(term for term in self._terms if term.name in names))
        context = FitContext(data, config, self._workers, self._observer)
        pivots = {name: partial(data.with_pivots, term, context.dtype, self._observer) for name, term in chosen.items()}
        terms = fit_to(context, None, chosen=pivots)
        hand_back()
        terms = [
            replace(term, partitions=tuple(term.partitions[number] for number in alive)) if term.partitions else term
            for term in terms
        ]
        if training.observed_features:
            terms = observed_only(terms, problem, self._workers, self._observer)
        if executor_of(self._workers) is None:
            self._observer.note(f"{counted(len(alive), 'shard')}, gone through one after another in every pass")
        return ShardedTask(
            problem,
            tuple(terms),
            self._workers,
            context.dtype,
            self._forbidden,
            training.c1 or 0.0,
            names=[str(self._data.parts[number].shard) for number in alive],
            executor=self._executor,
            scratch=self._scratch,
        )

    def settle(self, task: TrainingTask) -> tuple[TrainingTask, Dataset]:
        """Return the task of the final fit, on all shards."""
        if not isinstance(task, ShardedTask):
            names = [term.config.name for term in task.terms]
            pivots = {term.config.name: term for term in task.terms if term.basis is not None}
            del task
            hand_back()
            task = self._on_shards(names, pivots)
        return task, self._dataset

    def starting_point(self, task: TrainingTask, prior: Prior, run: Run) -> Vector:
        """Return parameters to begin with; those of the sample have other columns."""
        return super().starting_point(task, replace(prior, theta=None), run)

    def outside(self, solution: Solution, growth: Growth | None, dataset: Dataset) -> tuple[float | None, str]:
        """Return no gain outside explicit maps; that outside pivots is not known, as it takes all positions."""
        has_pivots = any(term.basis is not None for term in solution.task.terms)
        return None if has_pivots or not solution.objective.convex else 0.0, self._options.certify

    def data_digest(self) -> str:
        if self._violations is None:
            return self._folder.data_digest
        return joined_digests(map(digest, self._trained_on()))

    def _trained_on(self) -> Iterator[Dataset]:
        """Yield shards with those sequences and labels that are trained on."""
        borders = self._dataset.offsets[self._dataset.borders].tolist()
        for part, rows in zip(self._data.parts, pairwise(borders), strict=True):
            yield replace(part.dataset(), labels=self._dataset.known_labels[slice(*rows)])


class _Prefixed(Observer):
    """Hands events to another observer, notes with a prefix."""

    def __init__(self, other: Observer, prefix: str):
        self._other, self._prefix = other, prefix

    def tell(self, event: Event) -> None:
        self._other.tell(Note(self._prefix + event.text) if isinstance(event, Note) else event)
