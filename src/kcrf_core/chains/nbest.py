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

from . import _best
from .chain import Edges


@dataclass(frozen=True)
class Labellings:
    """The best labellings of one sequence, the best first."""

    labels: np.ndarray  # [K, T] int32
    scores: np.ndarray  # [K] unnormalised log scores


def best_labellings(scores: np.ndarray, edges: Edges, offsets: np.ndarray, number: int) -> list[Labellings]:
    """Return `number` labellings for each sequence, or as many as are possible."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    layout, Y = edges.states(), scores.shape[1]
    potentials = edges.potentials(layout)
    found = []
    for first, last in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
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
