"""Engines compute the objective, its gradient and Hessian, and own the parameter vectors.

An engine owns the data of one problem and all vectors like theta; solvers and training access the data only through it.
Arguments are vectors of the engine, small arrays and plain values, never functions, since an engine may run in other
processes. `ThreadEngine` uses threads of this process, `ComposedEngine` partitions in any place, and
`device.DeviceEngine` arrays of a device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..chains import Clique, Edges, LabelClique, MappedClique, Problem
from ..maps import Evaluated, Extent, FeatureMap, Head, KeptPlaces, KeptWeights, Partitions, PivotHead, Rounding
from ..system import Workers
from .inverse_powers import inverse_power
from .vectors import Vector, Vectors

LeadingColumns: TypeAlias = Any  # argument of `EngineBlocks.leading`: an array, or handles of partitions


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predicted labels of N positions at some parameters."""

    labels: dict[str, np.ndarray]  # [N] int32 the best labels, for each of DECODINGS
    gold: np.ndarray  # [N] the probabilities of gold labels


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
    def of(cls, clique: Clique, own: FeatureMap | Head | None, kept: np.ndarray | None, Y: int) -> TermShape:
        """Return the shape of a term for Y labels; of its map, the head is enough."""
        if isinstance(clique, LabelClique):
            return cls(clique, clique.size(Y))
        assert isinstance(clique, MappedClique) and own is not None
        rows, columns = own.size, clique.columns(Y)
        size = rows * columns if kept is None else len(kept)
        real = all_real = 0 if own.nested else own.real_size
        if kept is not None and np.count_nonzero(kept >= (rows - real) * columns) < real * columns:
            real = 0
        return cls(clique, size, rows, columns, own.nested, kept, real, all_real)

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


class EngineBlocks(ABC):
    """Blocks of the Hessian at one point (30), one per term, as if cliques were independent of each other."""

    operations: int  # floating-point operations beyond those of half a pass
    variance_share: float  # mean variance of labels, as a share of the largest possible
    small: dict[int, np.ndarray]  # blocks of terms over labels alone, without the prior: matrices, or their diagonals

    @abstractmethod
    def share(self, term: int) -> float:
        """Return the share of the positions that a product with a term's block uses."""

    @abstractmethod
    def product(self, term: int, block: Vector) -> Vector:
        """Multiply the block of a term with a map, without the prior, by a block of a vector."""

    @abstractmethod
    def diagonal(self, term: int) -> np.ndarray:
        """Return the diagonal of the block of a term with an explicit map, without the prior, [size]."""

    @abstractmethod
    def leading(self, term: int, columns: LeadingColumns, sigma2: float, negligible: float) -> tuple[np.ndarray, int]:
        """Return inverses [C, m, m] of the block on leading columns, for each label, and the number of operations.

        The prior is included. Nearly deterministic positions, with a variance up to `negligible`, are left out.
        """


def spread_rows(problem: Problem, most: int) -> np.ndarray:
    """Choose at most so many positions, evenly spread over all."""
    N = problem.positions
    return np.unique(np.linspace(0, N - 1, min(N, most)).astype(np.int64))


class Engine(ABC):
    """Data of one problem with its terms' maps, and vectors like theta."""

    lasting: ClassVar[bool] = False  # True if making it is slow, because its data is in other processes
    cheap_blocks: ClassVar[bool] = True  # False if blocks of the Hessian take far longer than a pass
    vectors: Vectors

    def __init__(
        self,
        problem: Problem,  # labels, offsets and weights, without inputs
        terms: Sequence[TermShape],
        workers: Workers,
        dtype: np.dtype | type,  # of scores
        forbidden: Edges | None,  # minus infinity for forbidden transitions, else zero
    ):
        self.problem, self.workers, self.dtype, self.forbidden = problem, workers, np.dtype(dtype), forbidden
        self.terms = tuple(terms)
        # Cliques of terms with maps, and of terms over labels alone, by number of the term.
        self.mapped = {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, MappedClique)}
        self.labelled = {j: term.clique for j, term in enumerate(terms) if isinstance(term.clique, LabelClique)}
        self.partitions = Partitions(problem.offsets[problem.borders].astype(np.int64))  # of positions
        self._extents: dict[tuple[int, int], Extent] = {}
        ends = np.cumsum([0, *(term.size for term in self.terms)], dtype=np.int64).tolist()
        self.block_slices = [slice(*ends) for ends in pairwise(ends)]  # of terms in a vector

    @abstractmethod
    def head(self, term: int) -> Head:
        """Return the head of the map of a term that has one."""

    def pivot_head(self, term: int) -> PivotHead:
        """Return the head of a nested map."""
        head = self.head(term)
        assert isinstance(head, PivotHead)
        return head

    def block(self, vector: Vector, term: int) -> np.ndarray:
        """Return the block of a term as an array; callers must not change it."""
        return self.vectors.to_array(self.vectors.take(vector, term))

    def edges(self, theta: Vector) -> Edges:
        """Return T, s, e and U, as far as the model has them, without forbidden transitions."""
        Y, blocks = self.problem.label_count, [self.block(theta, j) for j in self.labelled]
        edges = Edges.zeros(Y)
        for clique, block in zip(self.labelled.values(), blocks, strict=True):
            edges = clique.edges(block, edges, Y)
        return edges

    def potentials(self, theta: Vector) -> Edges:
        """Return the edges with forbidden transitions at minus infinity."""
        edges = self.edges(theta)
        return edges if self.forbidden is None else edges.plus(self.forbidden)

    def evaluate(self, theta: Vector) -> tuple[float, Vector]:
        """Return the weighted log-likelihood and the gradient of its negative; sums are in double precision."""
        return self._evaluate_together([theta])[0]

    def evaluate_all(self, thetas: Sequence[Vector]) -> Iterator[tuple[float, Vector]]:
        """Evaluate several points.

        Kernel values that are not stored are computed once for all points. If no term has kernel values, points are
        evaluated one after another, to save memory.
        """
        if len(thetas) > 1 and any(term.nested for term in self.terms):
            return iter(self._evaluate_together(thetas))
        return map(self.evaluate, thetas)

    @abstractmethod
    def _evaluate_together(self, thetas: Sequence[Vector]) -> list[tuple[float, Vector]]:
        """Evaluate several points in one pass over the data."""

    @abstractmethod
    def product(self, theta: Vector, vector: Vector) -> Vector:
        """Multiply the Hessian of the negative log-likelihood at theta by a vector."""

    @abstractmethod
    def blocks(self, theta: Vector, diagonals: bool = False, negligible: float = 0.0) -> EngineBlocks:
        """Return blocks of the Hessian, `diagonals` of small ones, without cliques of `negligible` variance."""

    def in_double(self, held: bool) -> Engine:
        """Return an engine of the same problem and vectors in double precision, or itself if it has that.

        If `held`, maps keep their values in double precision if memory allows; else they compute them every time.
        """
        return self if self.dtype == np.float64 else self._in_double(held)

    @abstractmethod
    def _in_double(self, held: bool) -> Engine: ...

    @abstractmethod
    def narrowed(self, sizes: dict[int, int]) -> Engine:
        """Return the engine of the same problem on the first m columns of some terms' nested maps."""

    def rounding(self, theta: Vector) -> list[Rounding]:
        """Bound the rounding error of an evaluation in double precision at theta, for each term."""
        error_sum = 2 * float(self.problem.position_weights().sum())  # |p - e_y| is at most 2, summed over labels
        found = [Rounding()] * len(self.terms)
        for j in self.mapped:
            extent = self.extent(j, self.head(j).scale)
            about = Evaluated(error_sum, self.problem.positions, extent, partial(self.outside_roots, theta, j))
            found[j] = self.head(j).rounding(self.terms[j].of_map(self.block(theta, j)), about)
        return found

    def extent(self, term: int, scale: np.ndarray) -> Extent:
        """Return the largest values of a term's rows, multiplied by factors of its columns if given."""
        if (term, len(scale)) not in self._extents:
            self._extents[term, len(scale)] = self._find_extent(term, scale)
        return self._extents[term, len(scale)]

    @abstractmethod
    def _find_extent(self, term: int, scale: np.ndarray) -> Extent: ...

    @abstractmethod
    def outside_roots(self, theta: Vector, term: int, gram: float) -> float:
        """Return the part outside the pivots of a full map, for `Head.rounding`."""

    def column_squares(self, term: int) -> np.ndarray:
        """Return the weighted sum of squares of each column of a term's map, [D]."""
        return self.head(term).squares(self.raw_squares(term))

    @abstractmethod
    def raw_squares(self, term: int) -> np.ndarray:
        """Return the argument of `Head.squares`, summed over rows."""

    def leading_gram(self, term: int, m: int, most: int) -> np.ndarray:
        """Return Phi^T Phi [m, m] of the first m columns of a nested map, scaled to all from at most `most` rows."""
        rows, weights = spread_rows(self.problem, most), self.problem.position_weights()
        gram = self.sampled_gram(term, self.pivot_head(term).inverse(m, self.dtype), rows)
        return gram * (weights.sum() / weights[rows].sum())

    @abstractmethod
    def sampled_gram(self, term: int, inverse: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return Phi^T Phi [m, m] of some rows, for kernel values with the first m pivots times a matrix."""

    def leading_columns(self, term: int, m: int) -> LeadingColumns:
        """Return the first m columns of a nested map, for `EngineBlocks.leading`."""
        return self.leading_features(term, self.pivot_head(term).inverse(m, self.dtype))

    @abstractmethod
    def leading_features(self, term: int, inverse: np.ndarray) -> LeadingColumns:
        """Return kernel values with the first m pivots times a matrix [m, m], [N, m]."""

    def real_grams(self, theta: Vector, most: Mapping[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Return Phi^T diag(q) Phi of some terms' real columns, [R, R] each, and `EngineBlocks.variance_share`.

        q is the mean variance of a term's states at each position. The sum is over a sample of at most `most`
        positions, scaled to all.
        """
        rows = {j: spread_rows(self.problem, many) for j, many in most.items()}
        grams, variance = self.sampled_real_grams(theta, rows)
        weights = self.problem.position_weights()
        scales = [weights.sum() / weights[own].sum() for own in rows.values()]
        scaled = {j: gram * scale for j, gram, scale in zip(rows, grams, scales, strict=True)}
        return scaled, self.part_of_variance(variance)

    @abstractmethod
    def sampled_real_grams(self, theta: Vector, rows: dict[int, np.ndarray]) -> tuple[list[np.ndarray], float]:
        """Return Gram matrices of real columns on some positions [n] of each term, and the variance of all labels."""

    def part_of_variance(self, variance: float) -> float:
        """Divide a variance, summed over positions, by the largest possible."""
        return variance / max(self.problem.positions * (1 - 1 / self.problem.label_count), 1e-300)

    def inverse_power(self, matrix: np.ndarray, shift: float, power: float) -> np.ndarray:
        """Return (matrix + shift I)^-power of a positive semidefinite matrix [m, m], to 4 %; 0 < power < 1."""
        return inverse_power(matrix, shift, power, self.workers)

    @abstractmethod
    def errors(self, theta: Vector, clique: Clique) -> np.ndarray:
        """Return w (p - e_y) of the cliques of each position, the factors of gradients, [N, columns]."""

    @abstractmethod
    def predictions(self, theta: Vector) -> Predictions:
        """Predict by each decoder, and return the probabilities of gold labels (any value for unknown labels)."""

    @abstractmethod
    def best_labels(self, theta: Vector, bonuses: np.ndarray) -> np.ndarray:
        """Return labels [N] int32 by Viterbi decoding, with numbers [Y + 1, Y] of `Edges.with_bonuses`."""

    @abstractmethod
    def sequence_log_probabilities(self, theta: Vector) -> np.ndarray:
        """Return log p(y | x) of each sequence, for the observed labels y, [S]."""

    @abstractmethod
    def drawn_labels(self, theta: Vector, chance: np.ndarray) -> np.ndarray:
        """Draw labels [draws, N] from a first-order model by uniform numbers [draws, N]."""
