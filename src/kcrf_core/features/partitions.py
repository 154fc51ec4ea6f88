"""Training data as terms are fitted to it: a partition at a time. Data in memory is one partition.

What an explicit map has to know of all data, such as which columns are equal, is found by going through the inputs of
one partition after another; then each partition gets its map.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..encoding import Dataset, Encoding
from ..kernels import Inputs
from ..maps import FeatureMap, RepeatedMap
from ..objective.solvers import Observer
from ..system import Workers, counted

if TYPE_CHECKING:
    from ..objective import MapSpec

# Part of the positions whose input must have stood elsewhere before, for sharing to pay.
WORTH_SHARING = 0.4

MakeMap = Callable[[Inputs, np.ndarray | slice], FeatureMap]  # of some rows, which are given with their numbers


class TrainingData(ABC):
    """Encoded sequences, in memory or elsewhere."""

    @property
    @abstractmethod
    def encoding(self) -> Encoding: ...

    @abstractmethod
    def inputs_of(self, features: tuple[str, ...]) -> TermInputs:
        """Return the inputs of a term with these features."""


class TermInputs(ABC):
    """Inputs of one term at all training positions, without what training never saw."""

    where_shared = ""  # where each distinct input is computed once
    whole: Inputs | None = None  # all inputs, if they are in memory
    dataset: Dataset | None = None  # likewise

    def __init__(self, features: tuple[str, ...], like: Inputs):
        self.features, self.like = features, like  # inputs of no position

    @property
    def is_empty(self) -> bool:
        """True if the inputs are in memory and no row has anything."""
        return self.whole is not None and self.whole.is_empty

    @abstractmethod
    def __iter__(self) -> Iterator[Inputs]:
        """Yield the inputs of each partition."""

    @abstractmethod
    def fitted_to(self) -> Inputs:
        """Return inputs with the lengths of all, for kernels to be fitted to."""

    @abstractmethod
    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> tuple[FeatureMap, tuple[MapSpec, ...] | None]:
        """Return the map of all inputs, and what the map of each partition is made of unless they are in memory."""

    def distinct(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return the first row of each group of equal inputs of a partition, and the group of each row."""
        return inputs.distinct()

    @staticmethod
    def worth_sharing(distinct: int, positions: int) -> bool:
        return distinct <= (1 - WORTH_SHARING) * positions

    def scanned(self, name: str, observer: Observer, visit: Callable[[Inputs], None] | None = None) -> bool:
        """Hand each partition's inputs to `visit`; True if enough inputs recur to compute each of them once."""
        distinct = positions = 0
        for inputs in self:
            if visit is not None:
                visit(inputs)
            distinct, positions = distinct + len(self.distinct(inputs)[0]), positions + len(inputs)
        if not self.worth_sharing(distinct, positions):
            return False
        many, all_of_them = counted(distinct, "distinct input"), counted(positions, "position")
        observer.note(f"term {name}: {many} at {all_of_them}, each computed once{self.where_shared}")
        return True

    def map_of_partition(self, inputs: Inputs, make: MakeMap, shared: bool, workers: Workers) -> FeatureMap:
        """Return the map of a partition, made of its distinct inputs where they are shared."""
        if not shared:
            return make(inputs, slice(None))
        rows, group = self.distinct(inputs)
        return RepeatedMap(make(inputs.take(rows), rows), group, workers)


@dataclass(frozen=True)
class DataInMemory(TrainingData):
    """A dataset in memory: one partition for plans; distinct inputs are found within partitions of the problem."""

    own_encoding: Encoding
    dataset: Dataset

    @property
    def encoding(self) -> Encoding:
        return self.own_encoding

    def inputs_of(self, features: tuple[str, ...]) -> InputsInMemory:
        return InputsInMemory(features, self.encoding.inputs(self.dataset, features).seen(), self.dataset)


class InputsInMemory(TermInputs):
    """Inputs of a term in memory."""

    whole: Inputs
    dataset: Dataset

    def __init__(self, features: tuple[str, ...], inputs: Inputs, dataset: Dataset):
        super().__init__(features, inputs.take(slice(0, 0)))
        self.whole, self.dataset = inputs, dataset

    def __iter__(self) -> Iterator[Inputs]:
        yield self.whole

    def fitted_to(self) -> Inputs:
        return self.whole

    def mapped(self, make: MakeMap, shared: bool, workers: Workers) -> tuple[FeatureMap, None]:
        return self.map_of_partition(self.whole, make, shared, workers), None

    def distinct(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        return self.distinct_rows

    @cached_property
    def distinct_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """First row of each group of equal inputs of a partition, partitions in order, and the group of each row.

        Inputs are compared within a partition of the data: each partition may be elsewhere.
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
