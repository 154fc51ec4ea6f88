"""Weights and pivots that change next to nothing, dropped after training.

With a budget eps, a term loses those weights whose influence |w| max_t |x_t| is no more than a threshold, the largest
that was found for which

    sum over dropped weights of |x_tf w_fy| <= eps        at every training position t, for every label y

so that no score of a training position changes by more than eps, whichever way the changes go. Pivots go as a whole,
the one with the least max_y |alpha_y| sqrt(k(b, b)) first, while the sum over those dropped of |k(x_t, b) alpha_y| is
no more than eps. Several terms share eps evenly. Transitions stay as they are.

What is left is another point of the same P: its value is taken there, against the same lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..kernels import Inputs
from ..system import Workers, ranges

ROWS_PER_TASK = 2048
HALVINGS = 10  # of the range, on a logarithmic scale, in which the threshold is searched


@dataclass(frozen=True)
class PruneReport:
    """Sizes and figures of a model before and after pruning."""

    prune: float  # eps
    weights: int  # numbers before, and after
    weights_left: int
    bytes_saved: int  # of the file
    objective: float  # P before
    certified_gap: float | None
    accuracy_on: str  # dev or training
    accuracy: float  # before, and after
    accuracy_left: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def needless_limit(
    change: Callable[[float], Callable[[Inputs], np.ndarray]],  # of scores [n, C], if parts of no more influence go
    inputs: Inputs,
    budget: float,
    most_parts: int,
    workers: Workers,
) -> float:
    """Nearly the largest influence up to which all weights may go; an input has no more than `most_parts` of them."""
    chunks = ranges(len(inputs), ROWS_PER_TASK)

    def fits(limit: float) -> bool:
        changed = change(limit)

        def worst(rows: slice) -> float:
            return float(changed(inputs.take(rows)).max(initial=0.0))

        return all(most <= budget for most in workers.map(worst, chunks))

    low, high = budget / max(most_parts, 1), budget  # the first is known to fit, and none above the second does
    if high <= 0 or fits(high):
        return high
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def needless_first(
    values: Callable[[Inputs], np.ndarray],  # [n, M] of parts, by size
    shares: np.ndarray,  # [M, C] weights of parts, by size
    inputs: Inputs,
    budget: float,
    workers: Workers,
) -> int:
    """Return how many of the first parts may go."""

    def fitting(rows: slice) -> int:
        K = values(inputs.take(rows))
        few, many = 0, len(shares)
        while few < many:
            middle = (few + many + 1) // 2
            if (K[:, :middle] @ shares[:middle]).max(initial=0.0) <= budget:
                few = middle
            else:
                many = middle - 1
        return few

    return min([len(shares), *workers.map(fitting, ranges(len(inputs), ROWS_PER_TASK))])
