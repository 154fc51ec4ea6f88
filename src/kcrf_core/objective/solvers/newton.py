"""Truncated Newton: conjugate gradients on exact Hessian-vector products, from the tangent of forward-backward.

The Newton system is solved no further than pays: loosely far from the optimum, ever more exactly near it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .. import Objective, Point, Vector
from .metric import BlockMetric, conjugate_gradients, leading_columns
from .run import Run
from .wolfe import line_search

LOOSEST, TIGHTEST = 0.5, 1e-3


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    if now is None:
        now = run.evaluate(objective, theta)
    columns, vectors = leading_columns(objective, run), objective.vectors
    first_norm = None
    while True:
        metric = BlockMetric(run.blocks(objective, theta, diagonals=True), columns)
        norm = float(np.sqrt(vectors.dot(now.gradient, metric(now.gradient))))
        first_norm = first_norm or max(norm, 1e-300)
        forcing = min(LOOSEST, max(TIGHTEST, np.sqrt(norm / first_norm)))
        downhill, product = vectors.negated(now.gradient), partial(run.product, objective, theta)
        direction = conjugate_gradients(product, downhill, metric, forcing, vectors)
        slope = vectors.dot(direction, now.gradient)
        reached = line_search(partial(run.evaluate, objective), theta, now, direction, slope, vectors)
        if reached is None:
            return
        run.steps += 1
        theta, now = reached
