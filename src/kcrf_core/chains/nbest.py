"""The K best labellings of a sequence, exactly.

All labellings but the best differ from it in a last place, d: they agree with it behind d and not at d. So the best of
those with each d and each other label at d are candidates for the second rank, and when one of them is taken, those
that agree with it behind a place before its own d are candidates for the next (Lawler's partition): every labelling
belongs to one candidate, hence none comes twice. With the best scores of all beginnings from one forward pass, all
candidates of a labelling cost T Y: time T Y^2 (second order: T Y^3) in all, and T Y for each labelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _nbest
from .chain import Edges


@dataclass(frozen=True)
class Labellings:
    """The best labellings of one sequence, the best first."""

    labels: np.ndarray  # [K, T] int32
    scores: np.ndarray  # [K] unnormalised log scores


def best_labellings(scores: np.ndarray, edges: Edges, offsets: np.ndarray, number: int) -> list[Labellings]:
    """For each sequence `number` labellings, or as many as are possible."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    stacked, Y = edges.stacked(), scores.shape[1]
    start, end = (np.ascontiguousarray(part, dtype=np.float64) for part in (edges.start, edges.end))
    found = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        T = last - first
        own = stacked if len(stacked) == 1 else stacked[first:last]
        most = min(number, Y ** min(T, 64))  # a longer sequence has more than anyone can ask for
        labels, totals = np.empty((most, T), dtype=np.int32), np.empty(most)
        entries = np.empty((most, 4), dtype=np.int64)
        if edges.triples is None or T == 1:
            work = np.empty(T * Y), np.empty(T * Y, dtype=np.int32)
            count = _nbest.first_order(scores[first:last], own, start, end, labels, totals, entries, *work)
        else:
            triples = np.ascontiguousarray(edges.triples, dtype=np.float64)
            work = np.empty(T * Y * Y), np.empty(T * Y * Y, dtype=np.int32)
            count = _nbest.second_order(scores[first:last], own, start, end, triples, labels, totals, entries, *work)
        found.append(Labellings(labels[:count], totals[:count]))
    return found
