"""Sequences some of whose labels are not observed: their likelihood is the sum over all ways to fill these in.

    log p(observed | x) = log Z(held) - log Z,    gradient   E[phi | x] - E[phi | x, observed]

Where a label is observed, held chains give all others minus infinity. P is then a difference of convex functions and
has no certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system import complete_sequences, offsets_of, sequence_rows
from . import chain
from .problem import Problem


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


def hold(
    labels: np.ndarray, offsets: np.ndarray, scores: np.ndarray, edges: chain.Edges, weights: np.ndarray
) -> Held | None:
    """Return the held chains of a chunk with labels [n], negative if not observed; None if all are observed."""
    if not len(labels) or labels.min() >= 0:
        return None
    sequences = np.flatnonzero(~complete_sequences(labels, offsets))
    rows = sequence_rows(offsets, sequences)
    own = labels[rows]
    observed = np.flatnonzero(own >= 0)
    held = scores[rows]
    kept = held[observed, own[observed]]
    held[observed] = -np.inf
    held[observed, own[observed]] = kept
    ends = offsets_of(np.diff(offsets)[sequences])
    return Held(sequences, rows, ends, held, edges.rows(rows), weights[sequences])


def first_impossible(problem: Problem, forbidden: chain.Edges) -> int | None:
    """Return the first position of the first sequence whose observed labels leave no way to fill in the others."""
    labels, offsets, cut = problem.labels, problem.offsets, problem.cut
    held = hold(labels, offsets, np.zeros((len(labels), len(forbidden.start))), forbidden, np.ones(len(offsets) - 1))
    if held is None:
        return None
    for k, first, last in zip(held.sequences, held.offsets[:-1].tolist(), held.offsets[1:].tolist(), strict=True):
        own = forbidden if cut is None else forbidden.cut(*cut[k])
        reach = own.start + held.scores[first]
        for t in range(first + 1, last):
            reach = (reach[:, None] + own.transitions).max(axis=0) + held.scores[t]
        if np.isneginf(reach + own.end).all():
            return int(held.rows[first])
    return None
