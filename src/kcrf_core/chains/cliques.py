"""Types of cliques: where a term's parameters enter the potentials of a chain, and what comes back as its gradient.

    node      (x_t, y_t)                  columns of F                       a map, C columns
    edge-x    (x_t, y_{t-1}, y_t)         E_t, one matrix for each position  a map, Y^2 columns
    edge      (y_{t-1}, y_t)              T, s, e                            Y^2 + 2 Y parameters
    transitions  (y_{t-1}, y_t)           T alone                            Y^2 parameters
    edge2     (y_{t-2}, y_{t-1}, y_t)     U, the chain is of second order    Y^3 parameters

The objective loops over terms and asks their cliques, instead of telling types apart by name. A clique either looks at
the input through a feature map (`mapped`), and then has so many columns of weights, or at labels alone, and then has so
many parameters. With C = 1 for two labels, see `problem`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ..system import positions_within
from .chain import Change, Edges, Marginals
from .problem import Problem, gathered, score_columns, spread


@dataclass
class Potentials:
    """Scores and edges of some positions while terms add to them."""

    scores: np.ndarray | None  # [n, Y], None before any node term
    edges: Edges


@dataclass
class Sums:
    """Sums over positions and sequences, of marginals or of their changes."""

    edge: np.ndarray  # [Y, Y]
    start: np.ndarray  # [Y] over first positions
    end: np.ndarray  # [Y] over last ones
    triple: np.ndarray | None  # [Y, Y, Y] of a second-order chain

    @classmethod
    def zeros(cls, Y: int, second_order: bool) -> Sums:
        return cls(np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y), np.zeros((Y, Y, Y)) if second_order else None)

    @classmethod
    def observed(cls, problem: Problem, per_position: bool, second_order: bool) -> Sums:
        """The cliques of labels that are observed, of sequences that have all of theirs.

        First and last labels are subtracted position by position, and so are pairs where edges differ by position.
        """
        Y = problem.label_count
        complete = replace(problem, weights=problem.weights * problem.complete)
        pairs = np.zeros((Y, Y)) if per_position else complete.clique_counts(1)
        return cls(pairs, np.zeros(Y), np.zeros(Y), complete.clique_counts(2) if second_order else None)

    def subtract(self, other: Sums) -> None:
        self.edge -= other.edge
        self.start -= other.start
        self.end -= other.end
        if self.triple is not None:
            self.triple -= other.triple

    def add(self, other: Sums) -> None:
        self.edge += other.edge
        self.start += other.start
        self.end += other.end
        if self.triple is not None:
            self.triple += other.triple


MATRIX, DIAGONAL, ABOVE = "matrix", "diagonal", "above"  # forms of a block

LARGEST_EDGE_BLOCK = 2_000  # Y^2 up to which the block of transitions is a matrix


@dataclass
class PartialSum:
    """A sum over some positions, and how many of them went into it."""

    total: np.ndarray
    positions: int


class Clique(ABC):
    """One type of cliques. Instances have no state and compare by identity."""

    name: str
    mapped: bool  # looks at the input, through a feature map
    per_position: bool = False  # needs the marginals of every pair at every position
    second_order: bool = False

    def __repr__(self) -> str:
        return f"<{self.name} cliques>"

    def __reduce__(self) -> tuple:
        return _clique_named, (self.name,)

    @abstractmethod
    def states(self, Y: int) -> int:
        """Joint states of the labels of one clique."""

    def curvature_at_zero(self, squares: np.ndarray | float, Y: int, sigma2: float) -> np.ndarray | float:
        """The Hessian's diagonal at zero for columns with these sums of squares, all labels being as likely."""
        states = self.states(Y)
        variance = (1 - 1 / states) / states  # of one state's indicator
        return squares * variance + 1 / sigma2


class MappedClique(Clique):
    """A clique that looks at the input: it has columns of weights."""

    mapped = True

    axes: int  # labels that a column of weights is about

    @abstractmethod
    def columns(self, Y: int) -> int:
        """Columns of weights."""

    @abstractmethod
    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Weights [D, columns] laid out by labels, [D, Y], or by pairs of them, [D, Y, Y]."""

    @abstractmethod
    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Adjoint of `by_labels`, and its inverse where weights of two labels sum to zero."""

    @abstractmethod
    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Positions [n] whose labels are observed, with the column of weights [n] that these have."""

    @abstractmethod
    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        """Put the summed scores [n, columns] of all terms of this type into the potentials."""

    @abstractmethod
    def gather(self, found: Marginals | Change, Y: int) -> np.ndarray:
        """The adjoint of `add`: what the potentials' marginals are for the columns, [n, columns]."""

    @abstractmethod
    def distribution(self, found: Marginals) -> np.ndarray:
        """Marginals of the clique's states at each position, [n, states]."""

    @abstractmethod
    def covariance_product(self, p: np.ndarray, columns: np.ndarray, Y: int) -> np.ndarray:
        """(diag p_t - p_t p_t^T) u_t for scores u [n, columns] and distributions p [n, states], [n, columns]."""


class LabelClique(Clique):
    """A clique of labels alone: it has parameters of its own."""

    mapped = False

    @abstractmethod
    def size(self, Y: int) -> int:
        """Number of parameters."""

    @abstractmethod
    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        """The edges with the potentials of these parameters among them."""

    @abstractmethod
    def collect(self, sums: Sums) -> np.ndarray:
        """The gradient's block [size] out of sums over positions."""

    def seen(self, problem: Problem) -> np.ndarray | None:
        """Which parameters [size] may leave zero on this data; None: all."""
        return None

    def guess_in_data(self, problem: Problem, sigma2: float) -> np.ndarray:
        """A better guess than `curvature_at_zero` at the first entries of the diagonal, where there is one."""
        return np.empty(0)

    def guess_of_ends(self, problem: Problem, sigma2: float) -> np.ndarray:
        """The same at the last entries: those of labels that sequences begin and end with, where there are any."""
        return np.empty(0)

    # The block of the Hessian (30): the clique's positions taken as independent of each other.

    def block_form(self, Y: int, guess: bool) -> str:
        """MATRIX, or what stands in for a large one: its diagonal for a mere `guess`, else a diagonal above it."""
        return ABOVE

    def needs_every_pair(self, form: str) -> bool:
        """Whether a block of this form takes the marginals of every pair at every position."""
        return False

    @abstractmethod
    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, settled: float
    ) -> PartialSum:
        """What some sequences add to the block; `weights` [n] are those of positions."""

    def finish_block(self, total: np.ndarray, problem: Problem, node: np.ndarray, form: str) -> np.ndarray:
        """The block of all sequences, without the prior: a matrix or its diagonal. `node` [N, Y] are marginals."""
        return total


class Node(MappedClique):
    name = "node"
    axes = 1

    def states(self, Y: int) -> int:
        return Y

    def columns(self, Y: int) -> int:
        return score_columns(Y)

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return spread(weights, Y)

    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return gathered(weights, Y)

    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        labels, Y = problem.labels.astype(np.int64), problem.label_count
        rows = np.flatnonzero(labels >= 0)
        return rows, labels[rows] if self.columns(Y) == Y else np.zeros(len(rows), dtype=np.int64)

    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        scores = self.by_labels(values, Y)
        potentials.scores = scores if potentials.scores is None else potentials.scores + scores

    def gather(self, found: Marginals | Change, Y: int) -> np.ndarray:
        return self.from_labels(found.node, Y)

    def distribution(self, found: Marginals) -> np.ndarray:
        return found.node

    def covariance_product(self, p: np.ndarray, columns: np.ndarray, Y: int) -> np.ndarray:
        return self.from_labels(_centred(p, self.by_labels(columns, Y)), Y)


class State(Node):
    """Node cliques with a column of weights for each label, also where there are two.

    One column for both gives the optimum over all weights of a feature, but not over those of single labels.
    """

    name = "state"

    def columns(self, Y: int) -> int:
        return Y

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return weights

    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return weights


class EdgeX(MappedClique):
    name = "edge-x"
    axes = 2
    per_position = True

    def states(self, Y: int) -> int:
        return Y * Y

    def columns(self, Y: int) -> int:
        return Y * Y

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return weights.reshape(len(weights), Y, Y)

    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return weights.reshape(len(weights), -1)

    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        labels, known = problem.labels.astype(np.int64), problem.labels >= 0
        rows = np.flatnonzero((positions_within(problem.offsets) > 0) & known & np.roll(known, 1))
        return rows, labels[rows - 1] * problem.label_count + labels[rows]

    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        potentials.edges = potentials.edges.plus_pairs(values.reshape(len(values), Y, Y))

    def gather(self, found: Marginals | Change, Y: int) -> np.ndarray:
        return found.edge.reshape(len(found.node), -1)

    def distribution(self, found: Marginals) -> np.ndarray:
        return found.edge.reshape(len(found.node), -1)

    def covariance_product(self, p: np.ndarray, columns: np.ndarray, Y: int) -> np.ndarray:
        return _centred(p, columns)


class Edge(LabelClique):
    name = "edge"

    def states(self, Y: int) -> int:
        return Y * Y

    def size(self, Y: int) -> int:
        return Y * Y + 2 * Y

    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        pairs = block[: Y * Y].reshape(Y, Y)
        return Edges(pairs, block[Y * Y : Y * Y + Y], block[Y * Y + Y :], edges.triples)

    def collect(self, sums: Sums) -> np.ndarray:
        return np.concatenate([sums.edge.ravel(), sums.start, sums.end])

    def guess_in_data(self, problem: Problem, sigma2: float) -> np.ndarray:
        """The Hessian's diagonal for transitions [Y^2] if labels were drawn in the pairs that the data has."""
        counts = problem.clique_counts(1).ravel()
        share = (counts + 0.5) / (counts + 0.5).sum()
        return counts.sum() * share * (1 - share) + 1 / sigma2

    def guess_of_ends(self, problem: Problem, sigma2: float) -> np.ndarray:
        """The Hessian's diagonal for s and e [2 Y] at zero: sequences, not positions, add to it."""
        Y = problem.label_count
        totals = [problem.weights[problem.with_end(end)].sum() for end in (0, 1)]
        return np.repeat(totals, Y) * (1 - 1 / Y) / Y + 1 / sigma2

    def block_form(self, Y: int, guess: bool) -> str:
        if guess:
            return DIAGONAL
        return MATRIX if Y * Y <= LARGEST_EDGE_BLOCK else ABOVE

    def needs_every_pair(self, form: str) -> bool:
        return form != ABOVE

    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, settled: float
    ) -> PartialSum:
        if found.edge.ndim == 2:
            return PartialSum(found.edge.ravel(), 0)
        pairs = found.edge.reshape(len(found.node), -1)
        if form == MATRIX:
            unsettled = (positions_within(offsets) > 0) & (pairs.max(axis=1) < 1 - settled)
            return PartialSum(_covariance(pairs[unsettled], weights[unsettled]), int(unsettled.sum()))
        return PartialSum(weights @ (pairs * (1 - pairs) if form == DIAGONAL else pairs), 0)

    def finish_block(self, total: np.ndarray, problem: Problem, node: np.ndarray, form: str) -> np.ndarray:
        first, last = problem.with_end(0), problem.with_end(1)
        ends = (
            (problem.offsets[:-1][first], problem.weights[first]),
            (problem.offsets[1:][last] - 1, problem.weights[last]),
        )
        if form == MATRIX:
            from scipy.linalg import block_diag  # tagging knows cliques, too, and need not wait for scipy

            return block_diag(total, *(_covariance(node[rows].astype(np.float64), weights) for rows, weights in ends))
        variances = node * (1 - node) if form == DIAGONAL else node
        return np.concatenate([total, *(weights @ variances[rows] for rows, weights in ends)])


class InnerEdge(Edge):
    """Edges without weights for first and last labels, as CRFsuite, CRF++ and Wapiti have them."""

    name = "transitions"

    def size(self, Y: int) -> int:
        return Y * Y

    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        return Edges(block.reshape(Y, Y), np.zeros(Y), np.zeros(Y), edges.triples)

    def collect(self, sums: Sums) -> np.ndarray:
        return sums.edge.ravel()

    def guess_of_ends(self, problem: Problem, sigma2: float) -> np.ndarray:
        return np.empty(0)

    def finish_block(self, total: np.ndarray, problem: Problem, node: np.ndarray, form: str) -> np.ndarray:
        return total


class SeenTransitions(InnerEdge):
    """The same with weights for those pairs of labels alone that the data has, CRFsuite's default; others stay zero."""

    name = "seen-transitions"

    def seen(self, problem: Problem) -> np.ndarray:
        counts = problem.clique_counts(1).ravel()
        return (counts > 0) & (counts >= problem.least_count)


class Edge2(LabelClique):
    name = "edge2"
    second_order = True

    def states(self, Y: int) -> int:
        return Y**3

    def size(self, Y: int) -> int:
        return Y**3

    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        return edges.with_triples(block.reshape(Y, Y, Y))

    def collect(self, sums: Sums) -> np.ndarray:
        assert sums.triple is not None
        return sums.triple.ravel()

    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, settled: float
    ) -> PartialSum:
        assert found.triple is not None
        return PartialSum(found.triple.ravel(), 0)


NODE, STATE, EDGE_X, EDGE, TRANSITIONS, EDGE2 = Node(), State(), EdgeX(), Edge(), InnerEdge(), Edge2()
SEEN_TRANSITIONS = SeenTransitions()


def _clique_named(name: str) -> Clique:
    """The one instance of a type, also for who has it from another process."""
    from . import CLIQUES

    return CLIQUES[name]


def _centred(p: np.ndarray, change: np.ndarray) -> np.ndarray:
    """(diag p_t - p_t p_t^T) u_t of each row, [n, K]."""
    return p * (change - np.einsum("ny,ny->n", p, change)[:, None])


def _covariance(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_t w_t (diag p_t - p_t p_t^T) of rows p [n, K]."""
    weighted = p * weights[:, None]
    out = -(weighted.T @ p)
    out[np.diag_indices_from(out)] += weighted.sum(axis=0)
    return out
