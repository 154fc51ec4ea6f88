"""One term at a time (Section 5.1), the one that promises most next.

With the other terms held, term j can lower P by at most (sigma_j^2 / 2) |grad_j P|^2 (Corollary 10). The term with the
largest such bound gets a Newton step with its block of (30), searched along; then the bounds are taken anew. As in
`block_jacobi`, pairs of earlier steps are laid over it: without them, pitch accent (linear) took 479 steps, not 29.
"""

from __future__ import annotations

from functools import partial
from typing import NoReturn

import numpy as np

from ..objective import Point, Posterior, Vector
from .block_jacobi import BlockNewton
from .lbfgs import Memory, step
from .metric import LeadingColumns
from .run import Run


def descend(posterior: Posterior, theta: Vector, now: Point | None, run: Run) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None and run.resumed is None:
        now = run.evaluate(posterior, theta)
    columns, memory = LeadingColumns(posterior, run), Memory(posterior.vectors)
    if run.resumed is not None:
        theta, now = run.resumed["theta"], run.resumed["now"]
        columns.restore(run.resumed["columns"])
        memory.restore(run.resumed["memory"])
    assert now is not None
    while True:
        run.between_steps(posterior, theta=theta, now=now, columns=columns, memory=memory)
        squares = posterior.vectors.block_dots(now.gradient, now.gradient)
        best = int(np.argmax(posterior.sigma2 / 2 * squares))
        newton = BlockNewton(run.blocks(posterior, theta), columns, run)
        found = step(
            lambda point: run.evaluate(posterior, point),
            theta,
            now,
            memory,
            partial(newton.step, which=[best]),
            posterior.vectors,
            run,
        )
        if found is None:
            run.raise_precision(posterior)
        theta, now = found
