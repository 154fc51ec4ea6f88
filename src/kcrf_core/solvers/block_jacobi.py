"""The paper's estimator: Newton steps with the blocks of (30), one block per term, all terms at once.

A node term's block is Phi^T [(diag p - p p^T)(Phi v)] + v / sigma^2 with positions independent and labels coupled: an
operator of two products with the map and no forward-backward, solved by conjugate gradients. The edge term's block is a
small matrix, solved by Cholesky. The blocks can underestimate the curvature, since they leave out what positions and
terms have to do with each other, so every step is searched along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..posterior import Blocks, Evaluation, Posterior
from .conjugate_gradients import conjugate_gradients
from .line_search import line_search
from .run import Run

FORCING = 0.05


def descend(posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None:
        now = run.evaluate(posterior, theta)
    scale = posterior.curvature_guess()
    while True:
        every = range(len(posterior.blocks))
        direction = newton_steps(posterior, posterior.blocks_at(theta), now.gradient, scale, every, run)
        slope = float(direction @ now.gradient)
        found = line_search(lambda point: run.evaluate(posterior, point), theta, now, direction, slope, 1.0)
        if found is None:
            run.raise_precision(posterior)
        theta, now = found


def newton_steps(
    posterior: Posterior,
    blocks: Blocks,
    gradient: np.ndarray,
    scale: np.ndarray,
    which: Iterable[int],
    run: Run,
) -> np.ndarray:
    """Newton steps of the blocks numbered `which`, side by side; the other parameters stay."""
    direction = np.zeros_like(gradient)
    for number in which:
        part = posterior.blocks[number]
        if number < len(posterior.maps):
            direction[part] = conjugate_gradients(
                lambda vector, term=number: run.block_product(posterior, blocks, term, vector),
                -gradient[part],
                scale[part],
                FORCING,
            )
        else:
            direction[part] = cho_solve(cho_factor(blocks.edge), -gradient[part])
    return direction
