"""Types of cliques: where the parameters of a term enter the potentials of a chain, and how its gradient is collected.

    node      (x_t, y_t)                  columns of F                       a map, C columns
    edge-x    (x_t, y_{t-1}, y_t)         E_t, one matrix for each position  a map, Y^2 columns
    edge      (y_{t-1}, y_t)              T, s, e                            Y^2 + 2 Y parameters
    transitions  (y_{t-1}, y_t)           T alone                            Y^2 parameters
    edge2     (y_{t-2}, y_{t-1}, y_t)     U, the chain is of second order    Y^3 parameters

A clique either looks at the input through a feature map (`mapped`), and then has columns of weights, or at labels
alone, and then has parameters. With C = 1 for two labels, see `problem`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from ..system import linear_algebra, positions_within
from .chain import Change, Edges, Marginals
from .problem import HALF_KNOWN, Problem, gathered, score_columns, spread


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
        """Count the cliques of observed labels, of sequences that have all of theirs.

        First and last labels are subtracted position by position, and so are pairs where edges differ by position.
        """
        out = cls.zeros(problem.label_count, second_order)
        complete = replace(problem, weights=problem.weights * problem.complete)
        if not per_position:
            out.edge = complete.clique_counts(1)
        if second_order:
            out.triple = complete.clique_counts(2)
        return out

    def add(self, other: Sums, operation: np.ufunc = np.add) -> None:
        """Add other sums to these in place, or combine them by another operation."""
        for own, more in zip(vars(self).values(), vars(other).values(), strict=True):
            if own is not None:
                operation(own, more, out=own)


MATRIX, ABOVE = "matrix", "above"  # forms of a block

LARGEST_EDGE_BLOCK = 2_000  # Y^2 up to which the block of transitions is a matrix


@dataclass
class PartialSum:
    """A sum over some positions, and their number."""

    total: np.ndarray
    positions: int


class Clique(ABC):
    """One type of cliques. Instances have no state and compare by identity."""

    name: str
    mapped: bool  # looks at the input, through a feature map
    axes: int  # labels of one clique
    per_position: bool = False  # needs the marginals of every pair at every position
    second_order: bool = False

    def __repr__(self) -> str:
        return f"<{self.name} cliques>"

    def __reduce__(self) -> tuple:
        return _clique_named, (self.name,)

    def states(self, Y: int) -> int:
        """Return the number of joint states of the labels of one clique."""
        return Y**self.axes


class MappedClique(Clique):
    """A clique that looks at the input: it has columns of weights, by default one for each joint state."""

    mapped = True

    def columns(self, Y: int) -> int:
        """Return the number of columns of weights."""
        return self.states(Y)

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Lay weights [D, columns] out by labels, [D, Y], or by pairs of labels, [D, Y, Y]."""
        return weights.reshape(len(weights), *[Y] * self.axes)

    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        """Apply the adjoint of `by_labels`, which is its inverse if the weights of two labels sum to zero."""
        return weights.reshape(len(weights), self.states(Y))

    @abstractmethod
    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions [n] with observed labels, and the column of weights [n] of these labels."""

    @abstractmethod
    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        """Put the summed scores [n, columns] of all terms of this type into the potentials."""

    def gather(self, found: Change, Y: int) -> np.ndarray:
        """Apply the adjoint of `add` to marginals of the potentials, or to their changes, [n, columns]."""
        return self.from_labels(self.distribution(found), Y)

    @abstractmethod
    def distribution(self, found: Change) -> np.ndarray:
        """Return the marginals of the clique's states at each position, [n, states]."""

    def covariance_product(self, p: np.ndarray, columns: np.ndarray, Y: int) -> np.ndarray:
        """Return (diag p_t - p_t p_t^T) u_t for scores u [n, columns] and distributions p [n, states], [n, columns]."""
        change = self.by_labels(columns, Y).reshape(p.shape)
        return self.from_labels(p * (change - np.einsum("ny,ny->n", p, change)[:, None]), Y)


class LabelClique(Clique):
    """A clique of labels alone: it has parameters of its own."""

    mapped = False
    only_seen = False  # parameters of pairs of labels that are not `Problem.seen_pairs` stay zero

    @abstractmethod
    def size(self, Y: int) -> int:
        """Return the number of parameters."""

    @abstractmethod
    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        """Return the edges with the potentials of these parameters in their place."""

    @abstractmethod
    def collect(self, sums: Sums) -> np.ndarray:
        """Return the gradient's block [size] out of sums over positions."""

    def curvature_in_data(self, problem: Problem, sigma2: float, ends: bool) -> np.ndarray:
        """Return a better estimate than that at zero of the Hessian's first diagonal entries, if there is one."""
        return np.empty(0)

    # The block of the Hessian (30): the clique's positions taken as independent of each other.

    def block_form(self, Y: int, diagonals: bool) -> str:
        """Return MATRIX, or ABOVE, a diagonal above it, for a large one or where `diagonals` are enough."""
        return ABOVE

    @abstractmethod
    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, negligible: float
    ) -> PartialSum:
        """Return what some sequences add to the block; `weights` [n] are those of positions."""

    def finish_block(self, total: np.ndarray, problem: Problem, node: np.ndarray, form: str) -> np.ndarray:
        """Return the block of all sequences without the prior, a matrix or its diagonal; `node` are marginals."""
        return total


class State(MappedClique):
    """Node cliques with a column of weights for each label, also where there are two.

    One column for both gives the optimum over all weights of a feature, but not over those of single labels.
    """

    name = "state"
    axes = 1

    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        labels, Y = problem.labels.astype(np.int64), problem.label_count
        rows = np.flatnonzero(labels >= 0)
        columns = labels[rows]
        if problem.half_known is not None:  # all labels of a set, and all soft ones
            half = np.flatnonzero(labels <= HALF_KNOWN)
            some, more = np.nonzero(problem.half_known.weights[HALF_KNOWN - labels[half]])
            rows, columns = np.append(rows, half[some]), np.append(columns, more)
        return rows, columns if self.columns(Y) == Y else np.zeros(len(rows), dtype=np.int64)

    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        scores = self.by_labels(values, Y)
        potentials.scores = scores if potentials.scores is None else potentials.scores + scores

    def distribution(self, found: Change) -> np.ndarray:
        return found.node


class Node(State):
    """Node cliques with one column of weights for two labels."""

    name = "node"

    def columns(self, Y: int) -> int:
        return score_columns(Y)

    def by_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return spread(weights, Y)

    def from_labels(self, weights: np.ndarray, Y: int) -> np.ndarray:
        return gathered(weights, Y)


class EdgeX(MappedClique):
    """Pairs of labels with the input."""

    name = "edge-x"
    axes = 2
    per_position = True

    def observed_columns(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        labels, known = problem.labels.astype(np.int64), problem.labels >= 0
        rows = np.flatnonzero((positions_within(problem.offsets) > 0) & known & np.roll(known, 1))
        return rows, labels[rows - 1] * problem.label_count + labels[rows]

    def add(self, values: np.ndarray, potentials: Potentials, Y: int) -> None:
        potentials.edges = potentials.edges.plus_pairs(self.by_labels(values, Y))

    def distribution(self, found: Change) -> np.ndarray:
        return found.edge.reshape(len(found.node), self.states(found.node.shape[1]))


class Edge(LabelClique):
    """Pairs of labels, first labels and last ones."""

    name = "edge"
    axes = 2
    ends = True  # first and last labels have weights

    def size(self, Y: int) -> int:
        return Y * Y + 2 * Y * self.ends

    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        edges = replace(edges, transitions=block[: Y * Y].reshape(Y, Y))
        return replace(edges, start=block[Y * Y : Y * Y + Y], end=block[Y * Y + Y :]) if self.ends else edges

    def collect(self, sums: Sums) -> np.ndarray:
        return np.concatenate([sums.edge.ravel(), sums.start, sums.end][: 3 if self.ends else 1])

    def curvature_in_data(self, problem: Problem, sigma2: float, ends: bool) -> np.ndarray:
        """Return the diagonal for transitions [Y^2] if labels were drawn in the pairs that the data has.

        For s and e [2 Y] it is the one at zero, to which sequences add, not positions.
        """
        Y, counts = problem.label_count, problem.clique_counts(1).ravel()
        share = (counts + 0.5) / (counts + 0.5).sum()
        totals = [problem.weights[problem.with_end(end)].sum() for end in (0, 1) if ends and self.ends]
        at_ends = np.repeat(totals, Y) * (1 - 1 / Y) / Y
        return np.concatenate([counts.sum() * share * (1 - share), at_ends]) + 1 / sigma2

    def block_form(self, Y: int, diagonals: bool) -> str:
        return ABOVE if diagonals or Y * Y > LARGEST_EDGE_BLOCK else MATRIX

    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, negligible: float
    ) -> PartialSum:
        if found.edge.ndim == 2:
            return PartialSum(found.edge.ravel(), 0)
        pairs = found.edge.reshape(len(found.node), -1)
        if form == MATRIX:
            uncertain = (positions_within(offsets) > 0) & (pairs.max(axis=1) < 1 - negligible)
            return PartialSum(_covariance(pairs[uncertain], weights[uncertain]), int(uncertain.sum()))
        return PartialSum(weights @ pairs, 0)

    def finish_block(self, total: np.ndarray, problem: Problem, node: np.ndarray, form: str) -> np.ndarray:
        if not self.ends:
            return total
        first, last = problem.with_end(0), problem.with_end(1)
        ends = (
            (problem.offsets[:-1][first], problem.weights[first]),
            (problem.offsets[1:][last] - 1, problem.weights[last]),
        )
        if form == MATRIX:
            # Tagging knows cliques, too, and need not wait for SciPy.
            return linear_algebra.block_diag(
                total,
                *(_covariance(node[rows].astype(np.float64), weights) for rows, weights in ends),
            )
        return np.concatenate([total, *(weights @ node[rows] for rows, weights in ends)])


class InnerEdge(Edge):
    """Edges without weights for first and last labels, as CRFsuite, CRF++ and Wapiti have them."""

    name = "transitions"
    ends = False


class SeenTransitions(InnerEdge):
    """Transitions with weights for pairs of labels that the data has, CRFsuite's default; others stay zero."""

    name = "seen-transitions"
    only_seen = True


class Edge2(LabelClique):
    """Triples of labels."""

    name = "edge2"
    axes = 3
    second_order = True

    def size(self, Y: int) -> int:
        return self.states(Y)

    def edges(self, block: np.ndarray, edges: Edges, Y: int) -> Edges:
        return replace(edges, triples=block.reshape(Y, Y, Y))

    def collect(self, sums: Sums) -> np.ndarray:
        assert sums.triple is not None
        return sums.triple.ravel()

    def block_part(
        self, found: Marginals, offsets: np.ndarray, weights: np.ndarray, form: str, negligible: float
    ) -> PartialSum:
        assert found.triple is not None
        return PartialSum(found.triple.ravel(), 0)


NODE, STATE, EDGE_X, EDGE, TRANSITIONS, EDGE2 = Node(), State(), EdgeX(), Edge(), InnerEdge(), Edge2()
SEEN_TRANSITIONS = SeenTransitions()


def _clique_named(name: str) -> Clique:
    """Return the one instance of a type, also of one that was pickled in another process."""
    from . import CLIQUES

    return CLIQUES[name]


def _covariance(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return sum_t w_t (diag p_t - p_t p_t^T) of rows p [n, K]."""
    weighted = p * weights[:, None]
    out = -(weighted.T @ p)
    out[np.diag_indices_from(out)] += weighted.sum(axis=0)
    return out
