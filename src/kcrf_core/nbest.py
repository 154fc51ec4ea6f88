"""The K best labellings of a sequence, exactly.

All labellings but the best differ from it in a last place, d: they agree with it behind d and not at d. So the best of
those with each d and each other label at d are candidates for the second rank, and when one of them is taken, those
that agree with it behind a place before its own d are candidates for the next (Lawler's partition): every labelling
belongs to one candidate, hence none comes twice. With the best scores of all beginnings from one forward pass, all
candidates of a labelling are one array: time T Y^2 (second order: T Y^3) and T Y for each labelling.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np

from .chain import Edges


@dataclass(frozen=True)
class Labellings:
    """The best labellings of one sequence, the best first."""

    labels: np.ndarray  # [K, T] int32
    scores: np.ndarray  # [K] unnormalised log scores


def best_labellings(scores: np.ndarray, edges: Edges, offsets: np.ndarray, number: int) -> list[Labellings]:
    """For each sequence `number` labellings, or as many as are possible."""
    stacked = edges.stacked()
    found = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = stacked if len(stacked) == 1 else stacked[first:last]
        part = np.asarray(scores[first:last], dtype=np.float64)
        if edges.triples is None or last - first < 2:
            chain: _Chain = _FirstOrder(part, own, edges)
        else:
            chain = _SecondOrder(part, own, edges)
        found.append(_search(chain, last - first, number))
    return found


class _Chain(Protocol):
    """What the search needs to know of one sequence."""

    def endings(self) -> tuple[np.ndarray, np.ndarray]:
        """Last labels [n, 1 or 2], in the order in which equals are preferred, and the best scores [n] with them."""

    def complete(self, labels: list[int]) -> list[int]:
        """The best beginning before the given labels, and these."""

    def deviations(self, labels: np.ndarray, before: int) -> np.ndarray:
        """Best scores [before, Y] of what agrees with a labelling [T] behind a place and has another label there."""


def _search(chain: _Chain, T: int, number: int) -> Labellings:
    order = count()  # of equals, the first to be found
    endings, totals = chain.endings()
    heap: list[tuple[float, int, int, list[int]]] = []  # minus the score, its number, labels in force from a place on
    for e in _largest(totals, number):
        heap.append((-float(totals[e]), next(order), T - endings.shape[1], endings[e].tolist()))
    heapq.heapify(heap)
    found, scores = [], []
    while heap and len(found) < number:
        minus, _, place, behind = heapq.heappop(heap)
        labels = chain.complete(behind)
        found.append(labels)
        scores.append(-minus)
        if place == 0 or len(found) == number:
            continue
        # What follows is no better than this one: rounding must not say so.
        others = np.minimum(chain.deviations(np.array(labels), place), -minus)
        others[np.arange(place), labels[:place]] = -np.inf
        Y = others.shape[1]
        flat = others.ravel()
        for e in _largest(flat, number - len(found)):
            t, label = divmod(e, Y)
            heapq.heappush(heap, (-float(flat[e]), next(order), t, [label, *labels[t + 1 :]]))
    return Labellings(np.array(found, dtype=np.int32).reshape(len(found), T), np.array(scores))


def _largest(values: np.ndarray, number: int) -> list[int]:
    """Where the largest of some values stand, at most `number` and none that is impossible; of equals, the first."""
    chosen = np.arange(len(values))
    if len(values) > number:
        # All that equal the last one to be taken stay in the race.
        chosen = np.flatnonzero(values >= np.partition(values, len(values) - number)[len(values) - number])
    chosen = chosen[np.argsort(-values[chosen], kind="stable")][:number]
    return chosen[values[chosen] > -np.inf].tolist()


class _FirstOrder:
    def __init__(self, scores: np.ndarray, stacked: np.ndarray, edges: Edges):
        T, Y = scores.shape
        self._scores, self._end = scores, edges.end
        self._edges = np.broadcast_to(stacked, (T, Y, Y))
        self._forward = np.empty((T, Y))  # the best score of a beginning that ends in each label
        back = np.zeros((T, Y), dtype=np.intp)
        self._forward[0] = edges.start + scores[0]
        labels = np.arange(Y)
        for t in range(1, T):
            totals = self._forward[t - 1][:, None] + self._edges[t]
            back[t] = totals.argmax(axis=0)
            self._forward[t] = totals[back[t], labels] + scores[t]
        self._back = back.tolist()  # single entries of lists are read faster

    def endings(self) -> tuple[np.ndarray, np.ndarray]:
        totals = self._forward[-1] + self._end
        return np.arange(len(totals))[:, None], totals

    def complete(self, labels: list[int]) -> list[int]:
        place, label, before = len(self._scores) - len(labels), labels[0], []
        for t in range(place, 0, -1):
            label = self._back[t][label]
            before.append(label)
        return before[::-1] + labels

    def deviations(self, labels: np.ndarray, before: int) -> np.ndarray:
        T = len(labels)
        after = np.arange(1, T)
        steps = self._edges[after, labels[:-1], labels[1:]] + self._scores[after, labels[1:]]
        # [T] of all that comes after each place
        behind = np.concatenate([[0.0], np.cumsum(steps[::-1])])[::-1] + self._end[labels[-1]]
        t = np.arange(before)
        own = self._scores[t + 1, labels[t + 1]] + behind[t + 1]
        return self._forward[:before] + self._edges[t + 1, :, labels[t + 1]] + own[:, None]


class _SecondOrder:
    """States are pairs of labels; there are at least two positions."""

    def __init__(self, scores: np.ndarray, stacked: np.ndarray, edges: Edges):
        T, Y = scores.shape
        self._scores, self._end, self._triples = scores, edges.end, edges.triples
        self._edges = np.broadcast_to(stacked, (T, Y, Y))
        self._forward = np.empty((T, Y, Y))  # the best score of a beginning that ends in each pair; row 0 is not used
        back = np.zeros((T, Y, Y), dtype=np.intp)
        self._forward[1] = (edges.start + scores[0])[:, None] + (self._edges[1] + scores[1])
        for t in range(2, T):
            totals = self._forward[t - 1][:, :, None] + self._triples
            back[t] = totals.argmax(axis=0)
            best = np.take_along_axis(totals, back[t][None], axis=0)[0]
            self._forward[t] = best + (self._edges[t] + scores[t])
        self._back = back

    def endings(self) -> tuple[np.ndarray, np.ndarray]:
        Y = self._scores.shape[1]
        # Of equals Viterbi takes the smaller last label, then the smaller one before it.
        totals = (self._forward[-1] + self._end).T.ravel()
        last, before = np.divmod(np.arange(Y * Y), Y)
        return np.stack([before, last], axis=1), totals

    def complete(self, labels: list[int]) -> list[int]:
        place, before = len(self._scores) - len(labels), []
        label, after = labels[0], labels[1]
        for t in range(place, 0, -1):
            label, after = int(self._back[t + 1, label, after]), label
            before.append(label)
        return before[::-1] + labels

    def deviations(self, labels: np.ndarray, before: int) -> np.ndarray:
        T = len(labels)
        after = np.arange(2, T)
        steps = (
            self._edges[after, labels[1:-1], labels[2:]]
            + self._scores[after, labels[2:]]
            + self._triples[labels[:-2], labels[1:-1], labels[2:]]
        )
        # [T - 1] of all that comes after the pair that begins at each place
        behind = np.concatenate([[0.0], np.cumsum(steps[::-1])])[::-1] + self._end[labels[-1]]
        t = np.arange(before)  # the place itself; then the pair (t + 1, t + 2) stays, and before is at most T - 2
        here, one, two = t + 1, labels[t + 1], labels[t + 2]
        own = self._edges[t + 2, one, two] + self._scores[t + 2, two] + behind[here]
        return self._forward[here, :, one] + self._triples[:, one, two].T + own[:, None]
