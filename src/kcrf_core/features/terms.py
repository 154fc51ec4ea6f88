"""What a term is while it is trained: a plan of its map, then the map on training data, before any weight is estimated.

A plan says which kind of map a term gets, how many columns and why, and how much memory that takes; it is made once,
by `plan_term`, and training carries it out. A fitted term has the map and makes a term of the model out of weights.
There is one class of each for every kind of map: `explicit_terms` and `pivot_terms` have them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..chains import Problem
from ..config import PRECISIONS, Config, TermConfig
from ..encoding import Dataset, Encoding, Translation
from ..errors import ConfigError
from ..kernels import Inputs
from ..maps import FeatureMap, GrowingBasis, RepeatedMap, Weights
from ..solvers import Observer
from ..system import Workers, counted, size_text
from .bases import TermBasis
from .label_match import LabelMatch
from .term import Term

DTYPES = dict(zip(PRECISIONS, map(np.dtype, (np.float32, np.float64)), strict=True))

# Part of the positions whose input must have stood elsewhere before, for sharing to pay.
WORTH_SHARING = 0.4


@dataclass(frozen=True)
class FitContext:
    """What terms are fitted to, and with."""

    encoding: Encoding
    dataset: Dataset
    config: Config
    workers: Workers
    observer: Observer

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self.config.training.precision]

    @property
    def seed(self) -> int:
        return self.config.training.seed


@dataclass(frozen=True)
class TermFootprint:
    """Memory of one term's map."""

    name: str
    what: str  # in words
    table: int  # bytes that are held where they fit, else computed again
    fixed: int  # bytes that have to be there while a model is fitted
    building: int  # bytes that are there at once, beside those of a table, while the map is made
    parameters: int  # D times the columns of weights; of conjunctions it is an estimate

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "map": self.what,
            "table": self.table,
            "fixed": self.fixed,
            "building": self.building,
            "parameters": self.parameters,
        }


@dataclass(frozen=True)
class TermPlan(ABC):
    """How a term that looks at the input is to be fitted."""

    has_pivots: ClassVar[bool] = False

    term: TermConfig
    features: tuple[str, ...]
    inputs: Inputs  # of all training positions, without what training never saw

    @abstractmethod
    def fit(self, context: FitContext) -> FittedTerm:
        """Carry it out."""

    @abstractmethod
    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        """Memory for `width` columns of weights, or only for those of pairs with labels that were observed."""

    def shared(self, make: Callable[[Inputs, np.ndarray | slice], FeatureMap], context: FitContext) -> FeatureMap:
        """A map of the inputs; `make` makes one of some rows, given with their numbers."""
        return shared_map(self.term, self.inputs, context.dataset, make, context.workers, context.observer)


class FittedTerm(ABC):
    """A term with its map on the training data, and what the model keeps of it."""

    config: TermConfig
    features: tuple[str, ...]
    map: FeatureMap | None  # None: the term looks at labels alone
    kept: np.ndarray | None  # [K] places in W that have weights, see `observed_features`; None: all
    basis: TermBasis | None  # None: no pivots
    growing: GrowingBasis | None  # pivots that training adds to; None: it adds none
    has_features: ClassVar[bool] = False  # each with weights of its own
    takes_over: ClassVar[frozenset[str]] = frozenset()  # kinds of terms of an earlier model, see `warm_start`

    @property
    def name(self) -> str:
        return self.config.name

    @abstractmethod
    def score_scale(self) -> float:
        """Mean of k(x, x): sigma2 times this is the prior variance of a score."""

    def threshold(self, c1: float, label_count: int) -> float | np.ndarray:
        """What an L1 penalty of c1 on the weights of single features is for parameters; [D] for those of rows of W."""
        return c1

    def observed(self, problem: Problem, observer: Observer) -> FittedTerm:
        """The same term with weights of those pairs of features and labels alone that the problem has."""
        return self

    def begun_growth(self, context: FitContext) -> FittedTerm:
        """The same term; with its first pivots where its basis is to grow."""
        return self

    def outside_gain(
        self,
        errors: Callable[[], np.ndarray],  # m [N, columns] of a fit
        inputs: Callable[[], Inputs],  # of training positions
        sigma2: float,
        certify: str,
        workers: Workers,
    ) -> float:
        """What leaving the span of the map could still gain."""
        return 0.0


@dataclass(frozen=True)
class FittedLabels(FittedTerm):
    """A term that looks at labels alone."""

    config: TermConfig

    features: ClassVar[tuple[str, ...]] = ()
    map: ClassVar[None] = None
    kept: ClassVar[None] = None
    basis: ClassVar[None] = None
    growing: ClassVar[None] = None

    def score_scale(self) -> float:
        return 1.0


@dataclass(frozen=True)
class MappedTerm(FittedTerm):
    """A term that looks at the input through a map."""

    config: TermConfig
    features: tuple[str, ...]
    map: FeatureMap
    kept: np.ndarray | None = None
    roots: np.ndarray | None = None  # [D] root of the number of features that share a column; None: one each

    basis: ClassVar[TermBasis | None] = None
    growing: ClassVar[GrowingBasis | None] = None

    def score_scale(self) -> float:
        return self.map.mean_diagonal()

    def threshold(self, c1: float, label_count: int) -> float | np.ndarray:
        # k features of one column have its weight over root k each. Scores of two labels are plus and minus the one
        # column over root 2 (see `chains.problem`), and both labels' weights have the penalty.
        labels = self.config.clique.columns(label_count) == 1 and label_count == 2
        each = c1 * 2**0.5 if labels else c1
        return each if self.roots is None else each * self.roots

    @property
    def about(self) -> tuple[str, str, tuple[str, ...]]:
        """What all terms of a model begin with."""
        return self.config.name, self.config.type, self.features

    @abstractmethod
    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        """The same map on other data."""

    @abstractmethod
    def to_model(self, weights: Weights, precision: str) -> Term:
        """The term of a model, with weights [D, columns] of the map found in the given precision."""

    @abstractmethod
    def map_weights(self, term: Term) -> np.ndarray:
        """Inverse of `to_model`: weights [D, columns] of the map that give the scores of a term made of it."""

    def taken_over(self, old: Term, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        """Weights [D, columns] of the map that say what a term of an earlier model says, and in words how much it is.

        The earlier term is of a kind in `takes_over`; `between` leads from the inputs of this term to its own.
        """
        raise TypeError(f"a term of the kind '{old.kind}' cannot be taken over here")


def shared_map(
    term: TermConfig,
    inputs: Inputs,
    dataset: Dataset,
    make: Callable[[Inputs, np.ndarray | slice], FeatureMap],
    workers: Workers,
    observer: Observer,
) -> FeatureMap:
    """A map of inputs, made of distinct ones where enough of them recur; `make` takes rows and their numbers.

    Those are distinct within a portion of the data: each portion may be elsewhere.
    """
    rows, group = distinct_by_portion(inputs, dataset)
    if not worth_sharing(len(rows), len(inputs)):
        return make(inputs, slice(None))
    distinct, positions = counted(len(rows), "distinct input"), counted(len(inputs), "position")
    observer.note(f"term {term.name}: {distinct} at {positions}, each computed once")
    return RepeatedMap(make(inputs.take(rows), rows), group, workers)


def distinct_by_portion(inputs: Inputs, dataset: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the first of each group of equal rows of a portion, portions in order, and the group of each row."""
    _, group = inputs.distinct()
    lengths = np.diff(dataset.offsets[dataset.borders])
    portion = np.repeat(np.arange(len(lengths)), lengths)
    both = portion * (int(group.max(initial=0)) + 1) + group
    _, first, number = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[number.ravel()]


def worth_sharing(distinct: int, positions: int) -> bool:
    return distinct <= (1 - WORTH_SHARING) * positions


def check_memory(term: TermConfig, what: str, needed: int, workers: Workers) -> None:
    """Refuse what has to be in memory at once and cannot, before the work that leads to it."""
    if needed > workers.memory.total:
        raise ConfigError(
            f"term '{term.name}': {what} takes up to {size_text(needed)}, and there is memory for "
            f"{size_text(workers.memory.total)}; 'map: reduced' with fewer pivots needs less",
            settings=["memory"],
        )
