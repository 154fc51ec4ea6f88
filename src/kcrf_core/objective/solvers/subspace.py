"""One term at a time (Section 5.1), the one that promises most next.

With the other terms held, term j can lower P by at most (sigma_j^2 / 2) |grad_j P|^2 (Corollary 10). The term with the
largest such bound gets a Newton step with its block of (30), searched along; then the bounds are taken anew. As in
`block_jacobi`, pairs of earlier steps are laid over it: without them, pitch accent (linear) took 479 steps, not 29.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from .. import Objective, Point, Vector
from .block_jacobi import descend_by_blocks
from .run import Run


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> NoReturn:
    """Take steps until the run raises `Stop` or `Restart`."""

    def most_promising(now: Point) -> list[int]:
        squares = objective.vectors.block_dots(now.gradient, now.gradient)
        return [int(np.argmax(objective.sigma2 / 2 * squares))]

    descend_by_blocks(objective, theta, now, run, most_promising)
