"""The paper's estimator: Newton steps with the blocks of (30), one block per term, all terms at once.

A node term's block is Phi^T [(diag p - p p^T)(Phi v)] + v / sigma^2 with positions independent and labels coupled: an
operator of two products with the map and no forward-backward, solved by conjugate gradients. The edge term's block is a
small matrix, solved by Cholesky (see `blocks`). The blocks can underestimate the curvature, since they leave out what
positions and terms have to do with each other, so every step is searched along.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..blocks import Blocks
from ..posterior import Evaluation, Posterior
from .conjugate_gradients import conjugate_gradients
from .run import Run

FORCING = 0.05


def descend(posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None:
        now = run.evaluate(posterior, theta)
    scale = posterior.curvature_guess()
    while True:
        every = range(len(posterior.blocks))
        direction = newton_steps(Blocks(posterior, theta), now.gradient, scale, every, run)
        found = run.search(lambda point: run.evaluate(posterior, point), theta, now, direction)
        if found is None:
            run.raise_precision(posterior)
        theta, now = found


def newton_steps(
    blocks: Blocks,
    gradient: np.ndarray,
    scale: np.ndarray,
    which: Iterable[int],
    run: Run,
) -> np.ndarray:
    """Newton steps of the blocks numbered `which`, side by side; the other parameters stay."""
    posterior = blocks.posterior
    direction = np.zeros_like(gradient)
    for number in which:
        part, term = posterior.blocks[number], posterior.terms[number]
        if term.map is not None:
            direction[part] = conjugate_gradients(
                lambda vector, number=number: run.block_product(blocks, number, vector),
                -gradient[part],
                scale[part],
                FORCING,
            )
        elif blocks.small[term.kind].ndim == 1:
            direction[part] = -gradient[part] / blocks.small[term.kind]
        else:
            direction[part] = cho_solve(cho_factor(blocks.small[term.kind]), -gradient[part])
    return direction
