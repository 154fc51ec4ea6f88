"""Terms of a model: sums over parts, features or pivots, that score positions.

Each kind of map has one class, which knows everything about it: how it scores, what a file holds of it, what its parts
are called, what they add to a score, and which of them can be dropped. The fitted terms of `training` make them.

Every term is a sum of value_e W[row_e, :] over its parts e.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..chains import MappedClique
from ..encoding import Encoding
from ..kernels import Inputs
from ..system import Workers
from .stored_terms import StoredTerm, mapped_clique

if TYPE_CHECKING:
    from ..device import Device


@dataclass(frozen=True)
class PartsOfRow:
    """The parts that make up the score of one position."""

    rows: np.ndarray  # [E] of the weights
    values: np.ndarray  # [E]
    name: Callable[[int], tuple[str, int | None]]  # of part e, and its line of training data if it is a pivot


@dataclass(frozen=True)
class TermParts:
    """A term taken apart."""

    weights: np.ndarray  # [D, C] float64
    of: Callable[[Inputs], Iterator[PartsOfRow]]


@dataclass(frozen=True)
class WeightTable:
    """Names of the parts of a term, and what each adds to a score where it is there."""

    items: int  # features, conjunctions or pivots
    name: Callable[[int], str]
    rows: Callable[[slice], np.ndarray]  # [n, C] of some of them


@dataclass(frozen=True)
class Term(ABC):
    """Some features, and weights over labels or pairs of labels."""

    kind: ClassVar[str]  # the word for it in files
    has_pivots: ClassVar[bool] = False  # inputs of training data, instead of features of them
    likes_many_rows: ClassVar[bool] = False  # True if it pays to score many positions at a time
    is_quick: ClassVar[bool] = False  # True if scores are sums of few weights

    name: str
    type: str  # node or edge-x
    features: tuple[str, ...]

    @property
    def clique(self) -> MappedClique:
        """The type of its cliques."""
        return mapped_clique(self.type)

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Weights [n, C] with a column for each label, [n, Y], or for each pair of labels, [n, Y^2]."""
        return self.clique.by_labels(weights, Y).reshape(len(weights), Y**self.clique.axes)

    def labels_of_column(self, column: int, Y: int) -> tuple[int, ...]:
        """The labels that a column of such weights is about."""
        return tuple(int(label) for label in np.unravel_index(column, (Y,) * self.clique.axes))

    @abstractmethod
    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        """Add the scores of inputs to out [n, C]."""

    @abstractmethod
    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Its entry in the header of a file, but for what all terms have, and its arrays, by names that begin so."""

    @classmethod
    @abstractmethod
    def unpack(cls, stored: StoredTerm) -> Term:
        """Inverse of `pack`."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Its map and its kernel, for people."""

    @property
    @abstractmethod
    def weight_count(self) -> int:
        """Numbers that a file holds for it, but for what its features or pivots are."""

    @property
    @abstractmethod
    def nonzero(self) -> int:
        """Weights and coefficients that are not zero."""

    @property
    def is_linear(self) -> bool:
        """True if it has one weight for each feature, and nothing else that adds to scores."""
        return False

    def on_device(self, device: Device) -> Term | None:
        """Return the term with scores from a device; None where the device cannot give them."""
        return None

    @abstractmethod
    def table(self, encoding: Encoding) -> WeightTable: ...

    @abstractmethod
    def parts(self, encoding: Encoding) -> TermParts: ...

    @abstractmethod
    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> Term:
        """Return the term with zeros for what changes no score of the inputs by more than the budget."""

    @abstractmethod
    def compacted(self) -> Term:
        """Return a term of the same scores, without room for what is zero."""
