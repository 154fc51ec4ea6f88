"""Sequences some of whose labels are not observed: what is observed of them is the sum over all ways to fill them in.

    log p(observed | x) = log Z(held) - log Z,    gradient   E[phi | x] - E[phi | x, observed]

Held chains give every label but the observed one minus infinity where a label is observed. P is then a difference of
convex functions and has no certificate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system import complete_sequences, sequence_rows
from . import chain
from .problem import Problem


@dataclass(frozen=True)
class Held:
    """The sequences of a chunk with labels that are not observed, on which the observed ones are held."""

    sequences: np.ndarray  # their numbers
    rows: np.ndarray  # their positions
    offsets: np.ndarray  # [s+1], from 0
    scores: np.ndarray  # [n, Y]
    edges: chain.Edges
    weights: np.ndarray  # [s]

    def marginals(self) -> chain.Marginals:
        return chain.marginals(self.scores, self.edges, self.offsets, self.weights)

    def tangent(self, d_scores: np.ndarray, d_edges: chain.Edges) -> chain.Change:
        """Along directions that are those of the whole chunk."""
        directions = d_scores[self.rows], d_edges.rows(self.rows)
        return chain.tangent(self.scores, self.edges, self.offsets, *directions, self.weights)

    def subtract(self, found: chain.Marginals | chain.Change, held: chain.Marginals | chain.Change) -> None:
        """From what was found on the whole chunk what was found here."""
        found.node[self.rows] -= held.node
        if found.edge.ndim == 3:
            found.edge[self.rows] -= held.edge
        else:
            found.edge[...] -= held.edge
        if found.triple is not None:
            found.triple[...] -= held.triple


def hold(
    labels: np.ndarray, offsets: np.ndarray, scores: np.ndarray, edges: chain.Edges, weights: np.ndarray
) -> Held | None:
    """What a chunk with these labels [n], negative where not observed, has to hold; None where all are observed."""
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
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[sequences])]).astype(np.int64)
    return Held(sequences, rows, ends, held, edges.rows(rows), weights[sequences])


def first_impossible(problem: Problem, forbidden: chain.Edges) -> int | None:
    """Where the first sequence begins whose observed labels leave no way to fill in the others; None if all do."""
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
