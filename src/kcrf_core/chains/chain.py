"""Inference on chains: log Z, marginals and their derivatives, the best labellings, scores of given labellings.

All functions take scores [n, Y] of sequences laid end to end, the `offsets` [S+1] of their first positions, and the
potentials between labels. Chains are of second order if their edges have triples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NumericError
from ..system import positions_within
from . import _best, _chain, _messages
from .pairs import PairStates

if TYPE_CHECKING:
    from ..scoring import Transitions

STEP = 1e-4  # of differences of log Z


@dataclass(frozen=True)
class Edges:
    """Potentials between neighbouring labels, and of the first and last label."""

    transitions: np.ndarray  # [Y, Y] T, or [n, Y, Y] with row t leading from t-1 to t
    start: np.ndarray  # [Y] s
    end: np.ndarray  # [Y] e
    triples: np.ndarray | None = None  # [Y, Y, Y] U: the chain is of second order

    @classmethod
    def zeros(cls, labels: int) -> Edges:
        return cls(np.zeros((labels, labels)), np.zeros(labels), np.zeros(labels))

    def plus(self, other: Edges) -> Edges:
        """Add transitions and potentials of first and last labels; triples stay."""
        transitions = self.transitions + other.transitions
        return Edges(transitions, self.start + other.start, self.end + other.end, self.triples)

    def times(self, factor: float) -> Edges:
        """Multiply all potentials by a positive number; forbidden transitions stay forbidden."""
        triples = None if self.triples is None else factor * self.triples
        return Edges(factor * self.transitions, factor * self.start, factor * self.end, triples)

    def with_bonuses(self, bonuses: np.ndarray) -> Edges:
        """Add numbers [Y + 1, Y] to transitions and, in the last row, to potentials of first labels."""
        return replace(self, transitions=self.transitions + bonuses[:-1], start=self.start + bonuses[-1])

    def plus_pairs(self, pairs: np.ndarray) -> Edges:
        """Add potentials [n, Y, Y], row t leading from t-1 to t."""
        return replace(self, transitions=self.transitions + pairs)

    def permitted(self, allowed: Transitions) -> Edges:
        """Put minus infinity for transitions that are not allowed."""
        pairs = np.where(allowed.pairs, self.transitions, -np.inf)
        start, end = np.where(allowed.first, self.start, -np.inf), np.where(allowed.last, self.end, -np.inf)
        return Edges(pairs, start, end, self.triples)

    def rows(self, which: slice | np.ndarray) -> Edges:
        """Return the potentials of some positions."""
        return self if self.transitions.ndim == 2 else replace(self, transitions=self.transitions[which])

    def cut(self, start: bool, end: bool) -> Edges:
        """Drop potentials of first or last labels, for sequences that are cut off from others there."""
        if not start and not end:
            return self
        none = np.zeros(len(self.start))
        return Edges(self.transitions, none if start else self.start, none if end else self.end, self.triples)

    def stacked(self) -> np.ndarray:
        """Return transitions as [1, Y, Y] or [n, Y, Y]."""
        transitions = np.ascontiguousarray(self.transitions, dtype=np.float64)
        return transitions if transitions.ndim == 3 else transitions[None]

    def states(self) -> PairStates | None:
        """Return the layout of pairs that are states of a second-order chain; None where states are labels."""
        return None if self.triples is None else PairStates.of(self.stacked())

    def potentials(self, layout: PairStates | None) -> _messages.StatePotentials:
        """Return the potentials between such states."""
        ends, stacked, apart = (_doubles(self.start), _doubles(self.end)), self.stacked(), self.transitions.ndim == 3
        if layout is None:
            table = stacked.reshape(len(stacked), len(self.start) ** 2)
            return _messages.StatePotentials(*ends, table, apart, None, None)
        triples = np.zeros(3 * stacked.shape[1:2]) if self.triples is None else self.triples
        return _messages.StatePotentials(*ends, layout.blocks(triples), apart, layout.pairs(stacked), layout)


@dataclass(frozen=True)
class Change:
    """Derivatives of marginals along a direction of the potentials, or errors."""

    node: np.ndarray  # [n, Y]
    edge: np.ndarray  # [Y, Y] weighted sum over positions, or [n, Y, Y] for potentials per position
    triple: np.ndarray | None = None  # [Y, Y, Y] weighted sum over positions, of a second-order chain


@dataclass(frozen=True)
class Marginals(Change):
    """Marginals p(y_t | x) and p(y_{t-1}, y_t | x)."""

    log_z: np.ndarray = field(kw_only=True)  # [S]


def marginals(scores: np.ndarray, edges: Edges, offsets: np.ndarray, weights: np.ndarray | None = None) -> Marginals:
    """Run forward-backward. `weights` [S] only concern sums: shared edge marginals and triples."""
    _, Y, offsets = _checked(scores, edges, offsets)
    weights = _weights(weights, len(offsets) - 1)
    if edges.triples is not None or edges.transitions.ndim == 3:
        return _recursions(scores, edges, offsets, weights)
    node, edge, log_z = np.empty_like(scores), np.zeros((Y, Y)), np.empty(len(offsets) - 1)
    room = np.empty(_chain.work_size(_longest(offsets), Y))
    potentials = edges.stacked()[0], _doubles(edges.start), _doubles(edges.end)
    bad = _chain.forward_backward(scores, *potentials, offsets, weights, node, edge, log_z, room)
    _check_path(bad, scores, offsets)
    return Marginals(node, edge, log_z=log_z)


def entropies(scores: np.ndarray, edges: Edges, offsets: np.ndarray, found: Marginals) -> np.ndarray:
    """Return the entropy of p(y | x) of each sequence in nats, [S], given its marginals.

    It is log Z - E[F], and E[F] the derivative of log Z(b) = log sum_y exp(b F(x, y)) at b = 1: a central difference,
    as marginals of transitions are summed over sequences. Sums of entropies of single labels count what labels share.
    """
    above, below = (marginals(factor * scores, edges.times(factor), offsets).log_z for factor in (1 + STEP, 1 - STEP))
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    most = np.bincount(sequence, label_entropies(found.node), minlength=len(offsets) - 1)
    return np.clip(found.log_z - (above - below) / (2 * STEP), 0.0, most)


def label_entropies(node: np.ndarray) -> np.ndarray:
    """Return the entropy of p(y_t | x) of each position in nats, [n]."""
    return -(node * np.log(np.maximum(node, np.finfo(np.float64).tiny))).sum(axis=1)


def _recursions(
    scores: np.ndarray,
    edges: Edges,
    offsets: np.ndarray,
    weights: np.ndarray,
    d_scores: np.ndarray | None = None,
    d_edges: Edges | None = None,
) -> Marginals:
    """Return marginals of chains of any kind, or their derivatives along a direction."""
    (n, Y), layout, apart = scores.shape, edges.states(), edges.transitions.ndim == 3
    rows, node, log_z = n if apart else 1, np.empty((n, Y)), np.empty(len(offsets) - 1)
    pair = None if layout is None else np.zeros((rows, len(layout.first)))
    transition = np.zeros((rows, Y * Y) if layout is None else (1, len(layout.triples)))
    _messages.recursions(
        edges.potentials(layout),
        None if d_edges is None else d_edges.potentials(layout),
        _doubles(scores),
        None if d_scores is None else _doubles(d_scores),
        offsets,
        weights,
        node,
        pair,
        transition,
        log_z,
    )
    _check_finite(log_z, scores, offsets)
    edge = transition.reshape(rows, Y, Y) if layout is None or pair is None else layout.spread_pairs(pair)
    triple = None if layout is None else layout.spread_triples(transition)
    return Marginals(node.astype(scores.dtype, copy=False), edge if apart else edge[0], triple, log_z=log_z)


def tangent(
    scores: np.ndarray,
    edges: Edges,
    offsets: np.ndarray,
    d_scores: np.ndarray,
    d_edges: Edges,
    weights: np.ndarray | None = None,
) -> Change:
    """Return derivatives of all marginals along a direction.

    Long-range correlations are included, so a direction of the weights becomes an exact product with the Hessian.
    """
    n, Y, offsets = _checked(scores, edges, offsets)
    _check_shapes(d_edges, n, Y)
    fits = d_scores.shape == scores.shape and d_scores.dtype == scores.dtype
    if not fits or d_edges.transitions.shape != edges.transitions.shape:
        raise ValueError("a direction must have the shape and type of the potentials")
    return _recursions(scores, edges, offsets, _weights(weights, len(offsets) - 1), d_scores, d_edges)


def viterbi(
    scores: np.ndarray, edges: Edges, offsets: np.ndarray, checked: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best labels [n] int32 and their unnormalised log scores [S].

    A sequence without any labelling is an error, or, unless that is to be checked, has the score minus infinity.
    """
    n, Y, offsets = _checked(scores, edges, offsets)
    layout = edges.states()
    path, best = np.empty(n, dtype=np.int32), np.empty(len(offsets) - 1)
    room = np.empty(_longest(offsets) * max(Y, 0 if layout is None else len(layout.first)) + Y)
    _best.viterbi(edges.potentials(layout), _doubles(scores), offsets, path, best, room)
    if checked:
        _check_finite(best, scores, offsets)
    return path, best


def posterior_labels(
    node: np.ndarray, scores: np.ndarray, edges: Edges, offsets: np.ndarray, costs: np.ndarray | None = None
) -> np.ndarray:
    """Return the labels [n] with the largest marginals [n, Y], times the costs [Y] of missing a label if there are any.

    Where transitions are impossible, this is the possible labelling with the largest sum of them, which has the most
    labels right on average.
    """
    if costs is not None:
        node = node * costs
    parts = (edges.transitions, edges.start, edges.end)
    if all(np.isfinite(part).all() for part in parts):
        return node.argmax(axis=1).astype(np.int32)
    possible = Edges(*(np.where(np.isneginf(part), -np.inf, 0.0) for part in parts))
    return viterbi(np.where(np.isneginf(scores), -np.inf, node), possible, offsets)[0]


def path_scores(scores: np.ndarray, edges: Edges, offsets: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the unnormalised log scores [S] of the given labels [n]."""
    n, Y, offsets = _checked(scores, edges, offsets)
    labels, stacked, S = _checked_labels(labels, n, Y), edges.stacked(), len(offsets) - 1
    rows, sequence, filled = np.arange(n), np.repeat(np.arange(S), np.diff(offsets)), np.diff(offsets) > 0
    first, last = offsets[:-1][filled], offsets[1:][filled] - 1
    # Two terms of each position, in the order in which the recursions add them; first positions have those of the ends.
    terms = np.empty((n, 2))
    terms[:, 0] = scores[rows, labels]
    terms[:, 1] = stacked[rows % len(stacked), labels[rows - 1], labels]
    terms[first, 1] = terms[first, 0]
    terms[first, 0] = edges.start[labels[first]] + edges.end[labels[last]]
    out = np.bincount(np.repeat(sequence, 2), terms.ravel(), minlength=S)
    if edges.triples is not None:
        third = np.flatnonzero(positions_within(offsets) >= 2)
        found = edges.triples[labels[third - 2], labels[third - 1], labels[third]]
        out += np.bincount(sequence[third], found, minlength=S)
    return out


@dataclass(frozen=True)
class Labellings:
    """The best labellings of one sequence, the best first."""

    labels: np.ndarray  # [K, T] int32
    scores: np.ndarray  # [K] unnormalised log scores


def best_labellings(scores: np.ndarray, edges: Edges, offsets: np.ndarray, number: int) -> list[Labellings]:
    """Return the `number` best labellings of each sequence, or all that are possible."""
    scores, layout, Y = _doubles(scores), edges.states(), scores.shape[1]
    potentials = edges.potentials(layout)
    found = []
    for first, last in pairwise(offsets.tolist()):
        T = last - first
        most = min(number, Y ** min(T, 64))  # a longer sequence has more than anyone can ask for
        states, totals = np.empty((most, T), dtype=np.int32), np.empty(most)
        work = np.empty((most, 3), dtype=np.int64), np.empty(T * Y * (1 if layout is None else Y) + Y)
        count = _best.best_lists(potentials, scores, first, T, states, totals, *work)
        labels = states[:count]
        if layout is not None and T > 1:
            labels = np.hstack([layout.first[labels[:, 1:2]], layout.second[labels[:, 1:]]])
        found.append(Labellings(labels, totals[:count]))
    return found


def _doubles(values: np.ndarray) -> np.ndarray:
    """Return values in double precision, contiguous in memory."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _weights(weights: np.ndarray | None, sequences: int) -> np.ndarray:
    if weights is None:
        return np.ones(sequences)
    if weights.shape != (sequences,):
        raise ValueError(f"weights must be {sequences} numbers, one for each sequence")
    return _doubles(weights)


def _longest(offsets: np.ndarray) -> int:
    return int(np.diff(offsets).max(initial=0))


# The Cython modules index without bounds checks, so nothing inconsistent may reach them.


def _checked(scores: np.ndarray, edges: Edges, offsets: np.ndarray) -> tuple[int, int, np.ndarray]:
    """Return n, Y and the offsets of potentials that fit each other."""
    n, Y = scores.shape
    _check_shapes(edges, n, Y)
    return n, Y, _checked_offsets(offsets, n)


def _check_shapes(edges: Edges, n: int, Y: int) -> None:
    if edges.transitions.shape not in ((Y, Y), (n, Y, Y)) or edges.start.shape != (Y,) or edges.end.shape != (Y,):
        raise ValueError(f"edge potentials do not fit {Y} labels and {n} positions")
    if edges.triples is not None and edges.triples.shape != (Y, Y, Y):
        raise ValueError(f"potentials of triples do not fit {Y} labels")


def _checked_offsets(offsets: np.ndarray, n: int) -> np.ndarray:
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 0):
        raise ValueError(f"offsets must rise from 0 to {n}")
    return offsets


def _checked_labels(labels: np.ndarray, n: int, Y: int) -> np.ndarray:
    labels = np.ascontiguousarray(labels, dtype=np.int32)
    if len(labels) != n or (n and not 0 <= labels.min() <= labels.max() < Y):
        raise ValueError(f"labels must be {n} numbers in 0..{Y - 1}")
    return labels


def _check_finite(log_z: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> None:
    bad = np.flatnonzero(~np.isfinite(log_z))
    _check_path(int(bad[0]) if len(bad) else _chain.STATUS_OK, scores, offsets)


def _check_path(bad: int, scores: np.ndarray, offsets: np.ndarray) -> None:
    """Explain why a sequence, the one that a status names, has no labelling with a finite score."""
    if bad == _chain.STATUS_OK:
        return
    if not (scores[offsets[bad] : offsets[bad + 1]] < np.inf).all():  # minus infinity is for labels that are excluded
        raise NumericError("scores overflowed: a larger prior precision (smaller sigma2) or scaled columns will help")
    raise NumericError("no labelling of a sequence has a finite score: its transitions are all forbidden")
