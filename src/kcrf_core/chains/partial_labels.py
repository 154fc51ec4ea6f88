"""Sequences some of whose labels are not observed, or half known.

The likelihood of missing labels, and of sets of labels, is the sum over all ways to fill them in:

    log p(observed | x) = log Z(held) - log Z,    gradient   E[phi | x] - E[phi | x, observed]

Where a label is observed, held chains give all others minus infinity, and where it is a set all those outside. P is
then a difference of convex functions and has no certificate. Soft labels have q(y), proportional to the product of
q_t(y_t) over allowed labellings y, and -sum_y q(y) log p(y | x) is convex:

    sum_y q(y) log p(y | x) = E_q[score] - log Z,    gradient   E[phi | x] - E_q[phi]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..system import complete_sequences, offsets_of, sequence_rows
from . import chain
from .problem import HalfKnown, Problem, label_logs


@dataclass(frozen=True)
class Held:
    """Sequences of a chunk that lack labels, with the observed ones held."""

    sequences: np.ndarray  # their numbers
    rows: np.ndarray  # their positions
    offsets: np.ndarray  # [s+1], from 0
    scores: np.ndarray  # [n, Y]
    edges: chain.Edges
    weights: np.ndarray  # [s]

    def marginals(self) -> chain.Marginals:
        return chain.marginals(self.scores, self.edges, self.offsets, self.weights)

    def tangent(self, d_scores: np.ndarray, d_edges: chain.Edges) -> chain.Change:
        """Return derivatives along directions of the whole chunk."""
        directions = d_scores[self.rows], d_edges.rows(self.rows)
        return chain.tangent(self.scores, self.edges, self.offsets, *directions, self.weights)

    def subtract(self, found: chain.Change, held: chain.Change) -> None:
        """Subtract what was found here from what was found on the whole chunk."""
        found.node[self.rows] -= held.node
        found.edge[self.rows if found.edge.ndim == 3 else ...] -= held.edge
        if found.triple is not None:
            found.triple[...] -= held.triple


@dataclass(frozen=True)
class Expected:
    """Sequences of a chunk with soft labels, and the expected cliques under their q(y)."""

    held: Held  # chains of q(y): their scores are log q_t, their edges 0, or minus infinity where they are forbidden
    marginals: chain.Marginals

    def subtract(self, likely: chain.Change, scores: np.ndarray, edges: chain.Edges) -> np.ndarray:
        """Subtract expected cliques from those of the whole chunk with these potentials, and return E_q[score], [s].

        Scores of pairs and triples, which are summed over sequences, are divided equally among them: the weighted sum
        of the numbers is right, not each of them.
        """
        held, found = self.held, self._like(edges)
        held.subtract(likely, found)
        each = _products(found.node, scores[held.rows])
        each[held.offsets[:-1]] += _products(found.node[held.offsets[:-1]], edges.start)
        each[held.offsets[1:] - 1] += _products(found.node[held.offsets[1:] - 1], edges.end)
        shared = 0.0
        if found.edge.ndim == 3:
            each += _products(found.edge, edges.transitions[held.rows]).sum(axis=1)
        else:
            shared = float(_products(found.edge, edges.transitions).sum())
        if found.triple is not None and edges.triples is not None:
            shared += float(_products(found.triple, edges.triples).sum())
        return np.add.reduceat(each, held.offsets[:-1]) + shared / max(float(held.weights.sum()), 1e-300)

    def _like(self, edges: chain.Edges) -> chain.Marginals:
        """Return the marginals of pairs at each position, where edges differ by position."""
        if edges.transitions.ndim == self.marginals.edge.ndim:
            return self.marginals
        n, Y = self.held.scores.shape
        return replace(self.held, edges=self.held.edges.plus_pairs(np.zeros((n, Y, Y)))).marginals()


def _products(expected: np.ndarray, potentials: np.ndarray) -> np.ndarray:
    """Return expected values times potentials, summed over the last axis; 0 times minus infinity is 0."""
    return np.multiply(expected, potentials, where=expected > 0, out=np.zeros(expected.shape)).sum(axis=-1)


def hold(
    labels: np.ndarray,
    offsets: np.ndarray,
    scores: np.ndarray,
    edges: chain.Edges,
    weights: np.ndarray,
    half_known: HalfKnown | None = None,
) -> Held | None:
    """Return the held chains of a chunk with labels [n], negative if not observed; None if all are observed."""
    if not len(labels) or labels.min() >= 0:
        return None
    sequences = np.flatnonzero(~complete_sequences(labels, offsets))
    rows = sequence_rows(offsets, sequences)
    held = scores[rows]
    logs = label_logs(labels[rows], held.shape[1], half_known)
    held = np.where(np.isneginf(logs), -np.inf, held + logs).astype(scores.dtype, copy=False)
    ends = offsets_of(np.diff(offsets)[sequences])
    return Held(sequences, rows, ends, held, edges.rows(rows), weights[sequences])


def impossible_sequences(problem: Problem, forbidden: chain.Edges) -> Iterator[tuple[int, int]]:
    """Yield the first position of each sequence without an allowed labelling, and where none is left."""
    labels, offsets, cut = problem.labels, problem.offsets, problem.cut
    none, ones = np.zeros((len(labels), len(forbidden.start))), np.ones(len(offsets) - 1)
    held = hold(labels, offsets, none, forbidden, ones, problem.half_known)
    if held is None:
        return
    for k, first, last in zip(held.sequences, held.offsets[:-1].tolist(), held.offsets[1:].tolist(), strict=True):
        own = forbidden if cut is None else forbidden.cut(*cut[k])
        reach = own.start + held.scores[first]
        for t in range(first, last):
            if t > first:
                reach = (reach[:, None] + own.transitions).max(axis=0) + held.scores[t]
            if np.isneginf(reach + own.end if t == last - 1 else reach).all():
                yield int(held.rows[first]), int(held.rows[t])
                break
