"""Terms during training: their data in partitions, a plan of the map, then the map on each partition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .._lazy import cached_property
from ..chains import MappedClique
from ..config import PRECISIONS, Config, TermConfig
from ..errors import ConfigError
from ..objective import DistantRows, ObjectiveTerm
from ..system import Workers, counted, size_text

if TYPE_CHECKING:  # `tag` imports this module and needs none of these
    from ..encoding import Dataset, Encoding, Translation
    from ..kernels import Inputs
    from ..maps import FeatureMap, GrowingBasis, Weights
    from ..objective.solvers import Observer
    from .term import Term, TermBasis

DTYPES = dict(zip(PRECISIONS, map(np.dtype, (np.float32, np.float64)), strict=True))
# Share of the positions whose input must have occurred before, for sharing to pay.
WORTH_SHARING = 0.4

# Makes a map of some rows, which are given with their numbers.
MakeMap: TypeAlias = "Callable[[Inputs, np.ndarray | slice], FeatureMap]"


@dataclass(frozen=True, eq=False)
class TrainingData(ABC):
    """Encoded sequences, in memory or elsewhere."""

    encoding: Encoding

    @abstractmethod
    def inputs_of(self, features: tuple[str, ...], zeros: bool = False) -> TermInputs:
        """Return the inputs of a term with these features; `zeros`: with attributes of value zero."""


class TermInputs(ABC):
    """Inputs of one term at all training positions, without values that training never saw."""

    features: tuple[str, ...]
    like: Inputs  # inputs of no position
    in_memory = True
    is_empty = False  # True if the inputs are in memory and no row has anything
    where_shared = ""  # where each distinct input is computed once
    whole: Inputs  # all inputs, if they are in memory
    dataset: Dataset  # likewise

    @abstractmethod
    def __iter__(self) -> Iterator[Inputs]:
        """Yield the inputs of each partition."""

    @abstractmethod
    def fitted_to(self) -> Inputs:
        """Return inputs with the lengths of all, for kernels to be fitted to."""

    @abstractmethod
    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> FeatureMap | DistantRows:
        """Return the map of all inputs, or its rows where they were put."""

    def distinct(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the first row of each group of equal inputs of a partition, and the group of each row."""
        return inputs.distinct()

    def scanned(self, name: str, observer: Observer, visit: Callable[[Inputs], None] | None = None) -> bool:
        """Hand each partition's inputs to `visit`; True if enough inputs recur to compute each of them once."""
        distinct = positions = 0
        for inputs in self:
            if visit is not None:
                visit(inputs)
            distinct, positions = distinct + len(self.distinct(inputs)[0]), positions + len(inputs)
        if distinct > (1 - WORTH_SHARING) * positions:
            return False
        many, all_of_them = counted(distinct, "distinct input"), counted(positions, "position")
        observer.note(f"term {name}: {many} at {all_of_them}, each computed once{self.where_shared}")
        return True

    def map_of_partition(self, inputs: Inputs, make: MakeMap, shared: bool, workers: Workers) -> FeatureMap:
        """Return the map of a partition, made of its distinct inputs where they are shared."""
        from ..maps import RepeatedMap

        if not shared:
            return make(inputs, slice(None))
        rows, group = self.distinct(inputs)
        return RepeatedMap(make(inputs.take(rows), rows), group, workers)


@dataclass(frozen=True, eq=False)
class DataInMemory(TrainingData):
    """A dataset in memory: one partition for plans; distinct inputs are found within partitions of the problem."""

    dataset: Dataset

    def inputs_of(self, features: tuple[str, ...], zeros: bool = False) -> InputsInMemory:
        inputs = self.encoding.inputs(self.dataset, features, zeros).seen()
        return InputsInMemory(features, inputs, self.dataset)


class InputsInMemory(TermInputs):
    """Inputs of a term in memory."""

    def __init__(self, features: tuple[str, ...], inputs: Inputs, dataset: Dataset):
        self.features, self.like = features, inputs.take(slice(0, 0))
        self.whole, self.dataset, self.is_empty = inputs, dataset, inputs.is_empty

    def __iter__(self) -> Iterator[Inputs]:
        yield self.whole

    def fitted_to(self) -> Inputs:
        return self.whole

    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> FeatureMap:
        return self.map_of_partition(self.whole, make, shared, workers)

    def distinct(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        return self._distinct

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of each group of equal inputs of a partition, partitions in order, and the group of each row.

        Inputs are compared within a partition of the problem: each may be elsewhere.
        """
        _, group = self.whole.distinct()
        lengths = np.diff(self.dataset.offsets[self.dataset.borders])
        partition = np.repeat(np.arange(len(lengths)), lengths)
        both = partition * (int(group.max(initial=0)) + 1) + group
        _, first, number = np.unique(both, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return first[order].astype(np.int64), rank[number.ravel()]


@dataclass(frozen=True)
class FitContext:
    """Data that terms are fitted to, settings, threads, and the observer of fits."""

    data: TrainingData
    config: Config
    workers: Workers
    observer: Observer

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self.config.training.precision]


@dataclass(frozen=True)
class TermPlan(ABC):
    """Map that a term which looks at the input will get."""

    has_pivots: ClassVar[bool] = False

    term: TermConfig
    data: TermInputs

    @abstractmethod
    def fit(self, context: FitContext) -> MappedTerm:
        """Carry out the plan."""

    def about(self, rows: FeatureMap | DistantRows, context: FitContext) -> dict[str, Any]:
        """Return what all fitted terms have, for a map that is here or distant."""
        labels, place = len(context.data.encoding.labels), "distant" if isinstance(rows, DistantRows) else "map"
        given = {"clique": self.term.clique, "label_count": labels, "config": self.term}
        return given | {"features": self.data.features, place: rows}


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTerm(ObjectiveTerm):
    """A term on its training data, before any weight is estimated. This one looks at labels alone."""

    takes_over: ClassVar[frozenset[str]] = frozenset()  # kinds of terms of an earlier model, see `warm_start`

    config: TermConfig
    features: tuple[str, ...] = ()
    roots: np.ndarray | None = None  # [D] root of the number of features that share a column; None: one each
    basis: TermBasis | None = None  # None: no pivots
    growing: GrowingBasis | None = None  # pivots that training adds to; None: it adds none

    @property
    def least_rows(self) -> int:
        """Number of rows that a column of its map must have."""
        return 1


class MappedTerm(FittedTerm, ABC):
    """A term that looks at the input through a map."""

    @property
    def about(self) -> tuple[str, str, tuple[str, ...]]:
        """First fields of all terms of a model."""
        return self.config.name, self.config.type, self.features

    @abstractmethod
    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        """Return the map on other data."""

    @abstractmethod
    def to_model(self, weights: Weights, precision: str) -> Term:
        """Return the term of a model, with weights [D, columns] of the map found in the given precision."""

    @abstractmethod
    def map_weights(self, term: Any) -> np.ndarray:
        """Return weights [D, columns] of the map that give the scores of a term made by `to_model`."""

    def taken_over(self, old: Any, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        """Return weights [D, columns] of the map that score as a term of an earlier model, and in words how much it is.

        The earlier term is of a kind in `takes_over`; `between` leads from the inputs of this term to its own.
        """
        raise TypeError(f"a term of the kind '{old.kind}' cannot be taken over here")


@dataclass(frozen=True)
class LabelMatch:
    """Labels of an earlier model and of a new one, matched by name."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    sparse: bool = False  # True: zeros stay zero, for an L1 penalty

    @property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the labels that both have: among the new ones, and among the old ones."""
        number = {label: y for y, label in enumerate(self.old)}
        pairs = [(y, number[label]) for y, label in enumerate(self.new) if label in number]
        return tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)

    def summary(self) -> str:
        return f"{len(self._places[0])} of {counted(len(self.new), 'label')}"

    def chosen(self, values: np.ndarray, axes: int) -> np.ndarray:
        """Return values whose last `axes` axes are old labels, laid out by new ones; zero where one is new."""
        out = np.zeros(values.shape[: values.ndim - axes] + (len(self.new),) * axes)
        places: list[Any] = [(..., *np.ix_(*[place] * axes)) for place in self._places]
        out[places[0]] = values[places[1]]
        return out

    def weights(self, weights: np.ndarray, old: MappedClique, clique: MappedClique, centred: bool = True) -> np.ndarray:
        """Return weights [D, columns] of the old model's cliques in the columns of the new ones."""
        by_labels = self.chosen(old.by_labels(weights, len(self.old)), old.axes)
        # What all labels share changes no probability and only costs in the prior (Lemma 12): where all have weights.
        if centred and clique.axes == 1 and not self.sparse:
            by_labels -= by_labels.mean(axis=1, keepdims=True)
        return clique.from_labels(by_labels, len(self.new))


def check_memory(term: TermConfig, what: str, needed: int, workers: Workers) -> None:
    """Refuse what has to be in memory at once and cannot, before the work that leads to it."""
    if needed > workers.memory.total:
        raise ConfigError(
            f"term '{term.name}': {what} needs up to {size_text(needed)}, but there is memory for "
            f"{size_text(workers.memory.total)}: give more, or 'map: reduced', which needs less",
            settings=["memory", "map"],
        )
