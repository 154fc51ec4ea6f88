"""Terms of P with the shapes of their parameters, and the potentials of those over labels alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._lazy import cached_property
from ..chains import Clique, Edges, LabelClique, MappedClique
from ..maps import KeptPlaces, KeptWeights

if TYPE_CHECKING:  # `tag` imports this module and needs none of these
    from ..maps import FeatureMap, Head
    from ..system import Workers


class Source(Protocol):
    """A picklable description of the rows of a map, without its head."""

    @property
    def columns(self) -> np.ndarray | None: ...  # [D'] int32, those of the whole map that it has, ascending; None: all

    @property
    def nbytes(self) -> int: ...  # of what it makes, and has to be held

    @property
    def table(self) -> int: ...  # bytes that are held where they fit, else computed again

    def load(self, workers: Workers) -> Any:
        """Return a map of these rows without a head, with memory and threads of these workers."""


@dataclass(frozen=True, eq=False)
class DistantRows:
    """Rows of a term's map that are in partitions elsewhere: their sources, and what is known of all of them."""

    head: Head
    mean_diagonal: float  # of k(x, x)
    sources: tuple[Source, ...]  # of each partition


@dataclass(frozen=True, eq=False)
class ObjectiveTerm:
    """A term of P: the type of its cliques, their prior variance, and a map where they look at the input.

    The parameters of a map are weights W [D, columns], or those at some places of it.
    """

    clique: Clique
    sigma2: float = 1.0
    map: FeatureMap | None = None  # None: it looks at labels alone, or rows of its map are `distant`
    places: KeptPlaces | None = None  # in W that have parameters; None: all of them
    threshold: float | np.ndarray = 0.0  # of an L1 penalty: of each parameter, or [D] of those in each row of W
    label_count: int = 0  # Y; 0: that of the problem, see `for_labels`
    distant: DistantRows | None = None

    def for_labels(self, Y: int) -> ObjectiveTerm:
        """Return the term for Y labels, which sizes depend on."""
        return self if self.label_count == Y else replace(self, label_count=Y)

    @property
    def head(self) -> Head | None:
        """Head of its map, which all partitions share; None: it looks at labels alone."""
        if self.distant is not None:
            return self.distant.head
        return None if self.map is None else self.map.head

    @property
    def mean_diagonal(self) -> float:
        """Mean of k(x, x): sigma2 times this is the prior variance of a score."""
        if self.distant is not None:
            return self.distant.mean_diagonal
        return 1.0 if self.map is None else self.map.mean_diagonal()

    @property
    def _columns_of_map(self) -> FeatureMap | Head | None:
        """Its map, or the head where rows are elsewhere: either has the number and the kinds of columns."""
        return self.map if self.distant is None else self.distant.head

    @cached_property
    def rows(self) -> int:
        """D of its map; 0 if it has none."""
        return 0 if (known := self._columns_of_map) is None else known.size

    @cached_property
    def columns(self) -> int:
        """Columns of weights; 0 if it has no map."""
        return self.clique.columns(self.label_count) if isinstance(self.clique, MappedClique) else 0

    @cached_property
    def size(self) -> int:
        """Number of parameters."""
        if isinstance(self.clique, LabelClique):
            return self.clique.size(self.label_count)
        return self.rows * self.columns if self.places is None else len(self.places.kept)

    @cached_property
    def nested(self) -> bool:
        """True if its map's first m columns are the map of its first m pivots."""
        return (known := self._columns_of_map) is not None and known.nested

    @cached_property
    def real_columns(self) -> int:
        """Last rows of W, of real columns."""
        return 0 if (known := self._columns_of_map) is None or known.nested else known.real_size

    @cached_property
    def real(self) -> int:
        """Last rows of W, of real columns, if each place there has a parameter, else 0."""
        if self.places is None:
            return self.real_columns
        kept = self.places.ends[-1] - self.places.ends[self.rows - self.real_columns]
        return self.real_columns if kept == self.real_columns * self.columns else 0

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Return values of the rows of W [D] for each parameter, [size]."""
        return np.repeat(values, self.columns) if self.places is None else values[self.places.kept // self.columns]

    def with_kept(self, kept: np.ndarray) -> ObjectiveTerm:
        """Return the term with parameters at these places of W alone."""
        return replace(self, places=KeptPlaces(kept, self.rows, self.columns))

    def thresholds(self) -> np.ndarray:
        """Return the thresholds of all parameters, [size]."""
        if isinstance(self.threshold, np.ndarray):
            return self.spread(self.threshold)
        return np.full(self.size, float(self.threshold))

    def weights(self, block: np.ndarray) -> np.ndarray:
        """Return W [D, columns], a view of the block if every place has a parameter, else a copy with zeros."""
        if self.places is None:
            return block.reshape(self.rows, self.columns)
        return self.places.tail(block, 0)

    def of_map(self, block: np.ndarray) -> np.ndarray | KeptWeights:
        """Return W in the form that maps take: dense, or `KeptWeights` if only some places have parameters."""
        return self.weights(block) if self.places is None else KeptWeights(self.places, block)

    def scaled_squares(self, raw: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Multiply sums of squares at all parameters [size] by squared factors of columns `scale` [D or fewer]."""
        if self.places is None:  # in place
            raw.reshape(self.rows, self.columns)[: len(scale)] *= np.square(scale)[:, None]
        elif len(scale):
            raw *= self.spread(np.append(np.square(scale), np.ones(self.rows - len(scale))))
        return raw

    def block(self, weights: np.ndarray) -> np.ndarray:
        """Return the block of W, the inverse of `weights`; places without a parameter are left out."""
        return weights.ravel() if self.places is None else weights.ravel()[self.places.kept]


def cliques_by_kind(terms: Sequence[ObjectiveTerm]) -> tuple[dict[int, MappedClique], dict[int, LabelClique]]:
    """Return cliques of terms with maps, and of terms over labels alone, by number of the term."""
    mapped = {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, MappedClique)}
    return mapped, {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, LabelClique)}


def block_slices(terms: Sequence[ObjectiveTerm]) -> list[slice]:
    """Return the blocks of terms in a vector like theta."""
    ends = np.cumsum([0, *(term.size for term in terms)], dtype=np.int64).tolist()
    return [slice(*ends) for ends in pairwise(ends)]


def shared_edges(labelled: Mapping[int, LabelClique], block: Callable[[int], np.ndarray], Y: int) -> Edges:
    """Return T, s, e and U, as far as terms over labels alone have them, from the blocks of these terms."""
    edges = Edges.zeros(Y)
    for j, clique in labelled.items():
        edges = clique.edges(block(j).astype(np.float64, copy=False), edges, Y)
    return edges


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted labels of N positions at some parameters."""

    labels: dict[str, np.ndarray]  # [N] int32 the best labels, for each of DECODINGS
    gold: np.ndarray  # [N] the probabilities of gold labels
