"""Marginals of a position from all that came before it and a few positions after it.

A forward message in log space (`_messages.forward`) sums up what came before: with it in the place of the first scores,
later positions are a chain of their own. The message of a second-order chain is over pairs of labels; it stands where
transitions from a position before lead to the first one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import _messages, chain
from .pairs import PairStates

VALUES_AT_ONCE = 1 << 20  # of windows that are laid end to end


@dataclass(frozen=True)
class Messages:
    """Forward messages of consecutive positions."""

    values: np.ndarray  # [n, Y], or [n, Y, Y] for pairs of labels
    order: int
    first: bool  # the first of them begins its sequence: there is no pair yet

    @classmethod
    def of(cls, scores: np.ndarray, edges: chain.Edges, before: np.ndarray | None) -> Messages:
        """Return messages of positions with scores [n, Y], n > 0; `before` is the last one of earlier positions."""
        n, Y = scores.shape
        stacked, scores = edges.stacked(), np.ascontiguousarray(scores, dtype=np.float64)
        begun, pairs = before is None, edges.triples is not None
        out = np.empty((n, Y, Y) if pairs else (n, Y))
        done = 0
        if before is None:
            before = edges.start + scores[0]
            out[0] = before  # where messages are over pairs, the same for every label before, of which there is none
            done = 1
        if pairs and n > done and before.ndim == 1:
            before = before[:, None] + stacked[min(done, len(stacked) - 1)] + scores[done]
            out[done] = before
            done += 1
        layout = PairStates.of(np.zeros((1, Y, Y))) if pairs else None
        last = np.ascontiguousarray(before).ravel()
        potentials = edges.rows(slice(done, None)).potentials(layout)
        _messages.forward(potentials, scores[done:], last, out[done:].reshape(n - done, out[0].size))
        return cls(out, 2 if pairs else 1, begun)

    @property
    def last(self) -> np.ndarray:
        """The message that `of` takes for later positions: [Y], or [Y, Y] except at the first position."""
        return self.values[-1, 0] if self.order == 2 and self.first and len(self.values) == 1 else self.values[-1]

    def marginals(self, scores: np.ndarray, edges: chain.Edges, ahead: int) -> np.ndarray:
        """Return marginals [n, Y] of the n positions, each given all before it and `ahead` more.

        Scores, and edges where each position has its own, are those of the n positions and `ahead` more.
        """
        n, Y = len(self.values), scores.shape[1]
        edges, out = replace(edges, end=np.zeros(Y)), np.empty((n, Y))
        begin = int(self.order == 2 and self.first)
        if begin:
            there = slice(0, 1 + ahead)
            out[0] = chain.marginals(scores[there], edges.rows(there), np.array([0, 1 + ahead])).node[0]
        size = (ahead + 2) * Y * (Y if self.order == 2 or edges.transitions.ndim == 3 else 1)
        at_once = max(VALUES_AT_ONCE // size, 1)
        for first in range(begin, n, at_once):
            last = min(first + at_once, n)
            out[first:last] = self._windows(scores, edges, ahead, first, last)[:, 0]
        return out

    def _windows(self, scores: np.ndarray, edges: chain.Edges, ahead: int, first: int, last: int) -> np.ndarray:
        """Return marginals of each of the positions first:last and those ahead of it, [last - first, 1 + ahead, Y]."""
        Y, pairs = scores.shape[1], self.order == 2
        length = 1 + ahead + pairs  # a message over pairs leads to the position from the one before it
        rows = np.arange(first, last)[:, None] + np.arange(1 + ahead)
        local = np.zeros((last - first, length, Y))
        local[:, pairs:] = scores[rows]
        transitions = edges.transitions
        if pairs or transitions.ndim == 3:
            own = np.zeros((last - first, length, Y, Y))
            own[:, pairs:] = transitions[rows] if transitions.ndim == 3 else transitions
            transitions = own
        if pairs:
            transitions[:, 1], local[:, 1] = self.values[first:last], 0.0
        else:
            local[:, 0] = self.values[first:last]
        transitions = transitions.reshape(-1, Y, Y) if transitions.ndim == 4 else transitions
        windows = replace(edges, transitions=transitions, start=np.zeros(Y))
        found = chain.marginals(local.reshape(-1, Y), windows, np.arange(last - first + 1) * length)
        return found.node.reshape(-1, length, Y)[:, int(pairs) :]

    @staticmethod
    def to_the_end(before: np.ndarray | None, scores: np.ndarray, edges: chain.Edges) -> np.ndarray:
        """Return marginals of the last positions of a sequence, given all of it: [n, Y]."""
        n, first = len(scores), slice(0, 1)
        if before is None:
            return chain.marginals(scores, edges, np.array([0, n])).node
        return Messages.of(scores[first], edges.rows(first), before)._windows(scores, edges, n - 1, 0, 1)[0]
