"""Terms while they are trained: a plan of the map, then the map on training data, before any weight is estimated.

A plan says which kind of map a term gets, how many columns and why, and how much memory that takes; it is made once,
by `plan_term`, and training carries it out. A fitted term has the map and makes a term of the model out of weights.
`linear`, `conjunctions` and `pivots` have both for their kinds of maps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..chains import MappedClique
from ..config import PRECISIONS, Config, TermConfig
from ..errors import ConfigError
from ..system import Workers, size_text
from .stored_terms import mapped_clique

if TYPE_CHECKING:  # `tag` imports this module and needs none of these
    from ..chains import Problem
    from ..encoding import Dataset, Translation
    from ..kernels import Inputs
    from ..maps import FeatureMap, GrowingBasis, Weights
    from ..objective import MapSpec
    from ..objective.solvers import Observer
    from .bases import TermBasis
    from .label_match import LabelMatch
    from .partitions import TermInputs, TrainingData
    from .term import Term

DTYPES = dict(zip(PRECISIONS, map(np.dtype, (np.float32, np.float64)), strict=True))


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

    @property
    def seed(self) -> int:
        return self.config.training.seed


@dataclass(frozen=True)
class TermFootprint:
    """Memory of one term's map."""

    name: str
    map: str  # in words
    table: int  # bytes that are held where they fit, else computed again
    fixed: int  # bytes that have to be there while a model is fitted
    building: int  # bytes that are there at once, beside those of a table, while the map is made
    parameters: int  # D times the columns of weights; of conjunctions it is an estimate

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TermPlan(ABC):
    """Map that a term which looks at the input will get."""

    has_pivots: ClassVar[bool] = False

    term: TermConfig
    data: TermInputs

    @property
    def features(self) -> tuple[str, ...]:
        return self.data.features

    @property
    def inputs(self) -> Inputs:
        """Inputs of all training positions, which are in memory."""
        inputs = self.data.whole
        assert inputs is not None
        return inputs

    def shared_rows(self) -> np.ndarray | None:
        """Return the first row of each group of equal inputs, where enough of them recur; else None."""
        rows, _ = self.data.distinct(self.inputs)
        return rows if self.data.worth_sharing(len(rows), len(self.inputs)) else None

    @abstractmethod
    def fit(self, context: FitContext) -> MappedTerm:
        """Carry it out."""

    @abstractmethod
    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        """Return the memory for `width` columns of weights, or for those of pairs with observed labels alone."""


@dataclass(frozen=True)
class FittedTerm:
    """A term on its training data, before any weight is estimated. This one looks at labels alone."""

    has_features: ClassVar[bool] = False  # each with weights of its own
    takes_over: ClassVar[frozenset[str]] = frozenset()  # kinds of terms of an earlier model, see `warm_start`

    config: TermConfig
    features: tuple[str, ...]
    map: FeatureMap | None  # None: the term looks at labels alone
    kept: np.ndarray | None = field(default=None, kw_only=True)  # [K] places in W that have weights; None: all
    # [D] root of the number of features that share a column; None: one each
    roots: np.ndarray | None = field(default=None, kw_only=True)
    # What the map of each partition is made of; None: the map is in memory
    partitions: tuple[MapSpec, ...] | None = field(default=None, kw_only=True)
    basis: TermBasis | None = field(default=None, kw_only=True)  # None: no pivots
    growing: GrowingBasis | None = field(default=None, kw_only=True)  # pivots that training adds to; None: it adds none

    @property
    def name(self) -> str:
        return self.config.name

    def score_scale(self) -> float:
        """Return the mean of k(x, x): sigma2 times this is the prior variance of a score."""
        return 1.0

    def threshold(self, c1: float, label_count: int) -> float | np.ndarray:
        """Return what an L1 penalty of c1 on weights of single features is for parameters; [D] for rows of W."""
        return c1

    def observed(self, problem: Problem, workers: Workers, observer: Observer) -> FittedTerm:
        """Return the term with weights for those pairs of features and labels alone that the problem has."""
        return self

    def begun_growth(self, context: FitContext) -> FittedTerm:
        """Return the term; with its first pivots where its basis is to grow."""
        return self

    def outside_gain(
        self,
        errors: Callable[[], np.ndarray],  # m [N, columns] of a fit
        inputs: Callable[[], Inputs],  # of training positions
        sigma2: float,
        certify: str,
        workers: Workers,
    ) -> float:
        """Bound or estimate what leaving the span of the map could still gain."""
        return 0.0


@dataclass(frozen=True)
class MappedTerm(FittedTerm, ABC):
    """A term that looks at the input through a map."""

    map: FeatureMap

    @property
    def clique(self) -> MappedClique:
        return mapped_clique(self.config.type)

    def score_scale(self) -> float:
        return self.map.mean_diagonal()

    def threshold(self, c1: float, label_count: int) -> float | np.ndarray:
        # k features of one column have its weight over root k each. Scores of two labels are plus and minus the one
        # column over root 2 (see `chains.problem`), and both labels' weights have the penalty.
        labels = self.clique.columns(label_count) == 1 and label_count == 2
        each = c1 * 2**0.5 if labels else c1
        return each if self.roots is None else each * self.roots

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


def check_memory(term: TermConfig, what: str, needed: int, workers: Workers) -> None:
    """Refuse what has to be in memory at once and cannot, before the work that leads to it."""
    if needed > workers.memory.total:
        raise ConfigError(
            f"term '{term.name}': {what} takes up to {size_text(needed)}, and there is memory for "
            f"{size_text(workers.memory.total)}; 'map: reduced' with fewer pivots needs less",
            settings=["memory"],
        )
