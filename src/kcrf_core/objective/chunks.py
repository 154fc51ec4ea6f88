"""A run of whole sequences on the way through P: their potentials, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..chains import Held, chain, hold, positions_within


@dataclass(frozen=True)
class Chunk:
    """A run of whole sequences with their potentials."""

    rows: slice  # positions of the problem
    offsets: np.ndarray  # [s+1], from 0
    scores: np.ndarray  # [n, Y]
    edges: chain.Edges
    labels: np.ndarray  # [n]
    weights: np.ndarray  # [s]

    def marginals(self) -> chain.Marginals:
        return chain.marginals(self.scores, self.edges, self.offsets, self.weights)

    def position_weights(self) -> np.ndarray:
        return np.repeat(self.weights, np.diff(self.offsets))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last row of each sequence that has any."""
        filled = np.diff(self.offsets) > 0
        return self.offsets[:-1][filled], self.offsets[1:][filled] - 1

    def with_edges_repeated(self) -> Chunk:
        """The same with edges for every row, so that the marginals of every pair come out."""
        n, Y = self.scores.shape
        if self.edges.transitions.ndim == 3:
            return self
        edges = self.edges.plus_pairs(np.zeros((n, Y, Y)))
        return Chunk(self.rows, self.offsets, self.scores, edges, self.labels, self.weights)

    def held(self) -> Held | None:
        return hold(self.labels, self.offsets, self.scores, self.edges, self.weights)

    def subtract_observed(self, likely: chain.Marginals) -> np.ndarray:
        """Turn marginals of single positions into p - e_y, and tell the scores of what is observed, [s].

        Sums over positions are left to whoever has them, but for those of sequences that lack labels.
        """
        held, labels, rows = self.held(), self.labels, np.arange(len(self.labels))
        if held is not None:
            labels = np.maximum(labels, 0)  # of sequences that lack some, nothing but `held` counts
            rows = np.delete(rows, held.rows)
        scores = chain.path_scores(self.scores, self.edges, self.offsets, labels)
        likely.node[rows, labels[rows]] -= 1
        if likely.edge.ndim == 3:
            inner = rows[positions_within(self.offsets)[rows] > 0]
            likely.edge[inner, labels[inner - 1], labels[inner]] -= 1
        if held is not None:
            found = held.marginals()
            held.subtract(likely, found)
            scores[held.sequences] = found.log_z
        return scores
