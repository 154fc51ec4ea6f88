"""The seam between the objective and whoever does its arithmetic.

P, its gradient, its Hessian and its blocks are sums over shards of sequences (see `shards`). An engine owns the shards
of one problem and all vectors like theta, and answers the questions below; solvers know nothing else of the data, nor
does what training asks about a fit. Arguments are vectors of the engine, small arrays and plain values: no function
that an engine would have to run elsewhere is ever handed to it.

`ThreadEngine` works with threads of this process. Another engine is another class with these members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ..chains import Clique, Edges, Problem
from ..maps import KeptPlaces, KeptWeights, Rounding

Vector = Any  # whatever `Vectors` of the engine takes: nobody else may look inside


@dataclass(frozen=True, eq=False)
class Predictions:
    """What some parameters say of N positions."""

    labels: dict[str, np.ndarray]  # [N] int32 the best labels, by each of DECODINGS
    gold: np.ndarray  # [N] the probabilities of gold labels


@dataclass(frozen=True, eq=False)
class TermShape:
    """What a term's parameters are, without its data."""

    clique: Clique
    size: int  # parameters
    rows: int = 0  # D of its map, 0 of a term over labels alone
    columns: int = 0  # columns of weights
    nested: bool = False  # whether its map's first m columns are the map of its first m pivots
    kept: np.ndarray | None = None  # [size] places in W, row by row, that have parameters; None: all of them
    real: int = 0  # last rows of W that are those of real columns, with a parameter at every place
    real_columns: int = 0  # all last rows of W that are those of real columns

    @property
    def product_size(self) -> int:
        """Weights that a product with the map goes through, D C."""
        return self.rows * self.columns

    def weights(self, block: np.ndarray) -> np.ndarray:
        """W [D, columns] of a term with a map: a view of its block, but where only some places have parameters."""
        if self.kept is None:
            return block.reshape(self.rows, self.columns)
        weights = np.zeros((self.rows, self.columns), dtype=block.dtype)
        weights.ravel()[self.kept] = block
        return weights

    @cached_property
    def places(self) -> KeptPlaces | None:
        """The places that have parameters, as products want them; None: all."""
        return None if self.kept is None else KeptPlaces(self.kept, self.rows, self.columns)

    def of_map(self, block: np.ndarray) -> np.ndarray | KeptWeights:
        """W in the form that maps take: never laid out where only some places have parameters."""
        return self.weights(block) if self.places is None else KeptWeights(self.places, block)

    def scaled_squares(self, raw: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Sums of squares at all parameters [size], from those without factors of columns `scale` [D or fewer]."""
        factors = np.ones(self.rows)
        factors[: len(scale)] = np.square(scale)
        return raw * (np.repeat(factors, self.columns) if self.kept is None else factors[self.kept // self.columns])

    def block(self, weights: np.ndarray) -> np.ndarray:
        """Inverse of `weights`; places without a parameter have no say."""
        return weights.ravel() if self.kept is None else weights.ravel()[self.kept]


class EngineBlocks(Protocol):
    """Blocks of the Hessian at one point (30): each term by itself, its cliques taken as independent of each other."""

    operations: int  # floating-point operations beyond those of half a pass
    unsettled: float  # mean variance of labels, as a part of the largest possible

    def small(self, term: int) -> np.ndarray:
        """The block of a term over labels alone, without the prior: a matrix, or a diagonal that stands in for it."""

    def share(self, term: int) -> float:
        """The part of the positions that a product with a term's block goes through."""

    def product(self, term: int, block: Vector) -> Vector:
        """The block of a term with a map, without the prior, times a block of a vector."""

    def diagonal(self, term: int) -> np.ndarray:
        """The diagonal of the block of a term with an explicit map, without the prior, [size]."""

    def leading(self, term: int, columns: Any, sigma2: float, settled: float) -> tuple[np.ndarray, int]:
        """Inverses [C, m, m] of the block on leading columns, label by label, with the prior; operations that took.

        Positions whose variance of a label is up to `settled` are left out.
        """


class Engine(Protocol):
    """Shards of one problem with its terms' maps, and vectors like theta."""

    vectors: Any  # see `Vectors`
    terms: tuple[TermShape, ...]
    problem: Problem  # labels, offsets and weights, without inputs
    dtype: np.dtype  # of scores
    forbidden: Edges | None  # minus infinity where labels must not follow each other, else zero

    def evaluate(self, theta: Vector) -> tuple[float, Vector]:
        """The weighted log-likelihood, and the gradient of its negative; sums are in double precision."""

    def evaluate_all(self, thetas: Sequence[Vector]) -> Iterator[tuple[float, Vector]]:
        """The same at several points, one after another or going through the data once."""

    def in_double(self, held: bool) -> Engine:
        """The same problem in double precision, with the same vectors; itself where it is.

        What maps need for it is held as far as memory allows, or computed every time.
        """

    def rounding(self, theta: Vector) -> list[Rounding]:
        """What rounding may change about an evaluation in double precision at theta, for each term."""

    def product(self, theta: Vector, vector: Vector) -> Vector:
        """The Hessian of the negative log-likelihood at theta, times a vector."""

    def blocks(self, theta: Vector, guess: bool, settled: float) -> EngineBlocks:
        """Blocks of the Hessian; a `guess` takes diagonals of small blocks. Cliques that are `settled` are left out."""

    def column_squares(self, term: int) -> np.ndarray:
        """Weighted sum of squares of each column of a term's map, [D]."""

    def leading_gram(self, term: int, m: int, most: int) -> np.ndarray:
        """Phi^T Phi of the first m columns of a nested map, from at most so many positions, scaled to all, [m, m]."""

    def inverse_power(self, matrix: np.ndarray, shift: float, power: float) -> np.ndarray:
        """(matrix + shift I)^-power of a positive semidefinite matrix [m, m], to 4 %; 0 < power < 1."""

    def real_grams(self, theta: Vector, most: dict[int, int]) -> tuple[dict[int, np.ndarray], float]:
        """Phi^T diag(q) Phi of some terms' real columns, [R, R] each, and `EngineBlocks.unsettled`.

        q is the mean variance of a term's states at each position; `most` says of how many positions the sum is taken
        at most, and it is scaled to all.
        """

    def leading_columns(self, term: int, m: int) -> Any:
        """The first m columns of a nested map, for `EngineBlocks.leading`."""

    def narrowed(self, sizes: dict[int, int]) -> Engine:
        """The same problem on the first m columns of some terms' nested maps."""

    def edges(self, theta: Vector) -> Edges:
        """T, s, e and U, those that are there, without what is forbidden."""

    def potentials(self, theta: Vector) -> Edges:
        """The same with forbidden transitions at minus infinity."""

    def errors(self, theta: Vector, clique: Clique) -> np.ndarray:
        """w (p - e_y) of the cliques of each position, what the gradient is made of, [N, columns]."""

    def predictions(self, theta: Vector) -> Predictions:
        """The best labels by each decoder and the probabilities of gold labels; of labels unknown, any."""

    def mean_label_log_probability(self, theta: Vector) -> float:
        """Mean over positions of log p(y_t | x), gold labels by their own marginals, weighted by sequence."""

    def accuracy(self, theta: Vector) -> float:
        """Part of the positions whose most probable labelling is right, weighted by sequence."""

    def sequence_log_probabilities(self, theta: Vector) -> np.ndarray:
        """log p(y | x) of each sequence, of what is observed of y, [S]."""

    def drawn_labels(self, theta: Vector, chance: np.ndarray) -> np.ndarray:
        """Labels drawn from a first-order model by uniform numbers [draws, N], [draws, N]."""
