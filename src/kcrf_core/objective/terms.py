"""Terms of P, the shapes of their parameters, and the potentials of those over labels alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..chains import Clique, Edges, LabelClique, MappedClique
from ..maps import FeatureMap, Head, KeptPlaces, KeptWeights


@dataclass(frozen=True)
class ObjectiveTerm:
    """A term of P: the type of its cliques, their prior variance, and a map where they look at the input."""

    clique: Clique
    sigma2: float
    map: FeatureMap | None = None
    kept: np.ndarray | None = None  # [K] int64 places in W, row by row, that have parameters; None: all of them
    threshold: float | np.ndarray = 0.0  # of an L1 penalty: of each parameter, or [D] of those in each row of W

    def thresholds(self, Y: int) -> np.ndarray:
        """Return the thresholds of all parameters, [size]."""
        shape = self.shape(Y)
        if not isinstance(self.threshold, np.ndarray):
            return np.full(shape.size, float(self.threshold))
        if self.kept is None:
            return np.repeat(self.threshold, shape.columns)
        return self.threshold[self.kept // shape.columns]

    def shape(self, Y: int) -> TermShape:
        return TermShape.of(self.clique, self.map, self.kept, Y)


@dataclass(frozen=True, eq=False)
class TermShape:
    """Shape of a term's parameters, without its data."""

    clique: Clique
    size: int  # parameters
    rows: int = 0  # D of its map; 0 if it has none
    columns: int = 0  # columns of weights
    nested: bool = False  # True if its map's first m columns are the map of its first m pivots
    kept: np.ndarray | None = None  # [size] places in W, row by row, that have parameters; None: all of them
    real: int = 0  # last rows of W, of real columns, if each place there has a parameter
    real_columns: int = 0  # last rows of W, of real columns

    @classmethod
    def of(cls, clique: Clique, rows_or_head: FeatureMap | Head | None, kept: np.ndarray | None, Y: int) -> TermShape:
        """Return the shape of a term for Y labels; of its map, the head is enough."""
        if isinstance(clique, LabelClique):
            return cls(clique, clique.size(Y))
        assert isinstance(clique, MappedClique) and rows_or_head is not None
        rows, columns = rows_or_head.size, clique.columns(Y)
        size = rows * columns if kept is None else len(kept)
        real = all_real = 0 if rows_or_head.nested else rows_or_head.real_size
        if kept is not None and np.count_nonzero(kept >= (rows - real) * columns) < real * columns:
            real = 0
        return cls(clique, size, rows, columns, rows_or_head.nested, kept, real, all_real)

    def weights(self, block: np.ndarray) -> np.ndarray:
        """Return W [D, columns], a view of the block if every place has a parameter, else a copy with zeros."""
        if self.kept is None:
            return block.reshape(self.rows, self.columns)
        weights = np.zeros((self.rows, self.columns), dtype=block.dtype)
        weights.ravel()[self.kept] = block
        return weights

    @cached_property
    def places(self) -> KeptPlaces | None:
        """Places that have parameters, in the form for products; None: all."""
        return None if self.kept is None else KeptPlaces(self.kept, self.rows, self.columns)

    def of_map(self, block: np.ndarray) -> np.ndarray | KeptWeights:
        """Return W in the form that maps take: dense, or `KeptWeights` if only some places have parameters."""
        return self.weights(block) if self.places is None else KeptWeights(self.places, block)

    def scaled_squares(self, raw: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Multiply sums of squares at all parameters [size] by squared factors of columns `scale` [D or fewer]."""
        factors = np.ones(self.rows)
        factors[: len(scale)] = np.square(scale)
        return raw * (np.repeat(factors, self.columns) if self.kept is None else factors[self.kept // self.columns])

    def block(self, weights: np.ndarray) -> np.ndarray:
        """Return the block of W, the inverse of `weights`; places without a parameter are left out."""
        return weights.ravel() if self.kept is None else weights.ravel()[self.kept]


def cliques_by_kind(terms: Sequence[TermShape]) -> tuple[dict[int, MappedClique], dict[int, LabelClique]]:
    """Return cliques of terms with maps, and of terms over labels alone, by number of the term."""
    mapped = {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, MappedClique)}
    return mapped, {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, LabelClique)}


def block_slices(terms: Sequence[TermShape]) -> list[slice]:
    """Return the blocks of terms in a vector like theta."""
    ends = np.cumsum([0, *(term.size for term in terms)], dtype=np.int64).tolist()
    return [slice(*ends) for ends in pairwise(ends)]


def shared_edges(labelled: Mapping[int, LabelClique], block: Callable[[int], np.ndarray], Y: int) -> Edges:
    """Return T, s, e and U, as far as terms over labels alone have them, from the blocks of these terms."""
    edges = Edges.zeros(Y)
    for j, clique in labelled.items():
        edges = clique.edges(block(j), edges, Y)
    return edges


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted labels of N positions at some parameters."""

    labels: dict[str, np.ndarray]  # [N] int32 the best labels, for each of DECODINGS
    gold: np.ndarray  # [N] the probabilities of gold labels
