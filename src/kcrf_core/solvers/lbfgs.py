"""Limited-memory BFGS on the primal weights, as Sha and Pereira (2003) trained linear CRFs.

P is strictly convex, so s.y > 0 for every step and no curvature is ever skipped.
"""

from __future__ import annotations

from collections import deque
from typing import NoReturn

import numpy as np
from scipy.linalg.blas import daxpy

from ..posterior import Evaluation, Posterior
from .line_search import line_search
from .run import Run

HISTORY = 12


def descend(posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None:
        now = run.evaluate(posterior, theta)
    scale = posterior.curvature_guess()
    pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=HISTORY)
    while True:
        direction = _two_loops(now.gradient, pairs, scale)
        slope = float(direction @ now.gradient)
        if slope >= 0:  # rounding has made the history useless
            pairs.clear()
            direction = -now.gradient / scale
            slope = float(direction @ now.gradient)
        first_step = 1.0 if pairs else min(1.0, 1.0 / max(np.sqrt(-slope), 1e-300))
        found = line_search(lambda point: run.evaluate(posterior, point), theta, now, direction, slope, first_step)
        if found is None:
            if not pairs:
                run.raise_precision(posterior)
            pairs.clear()
            continue
        point, then = found
        step, change = point - theta, then.gradient - now.gradient
        curvature = float(step @ change)
        if curvature > 0:
            pairs.append((step, change, 1.0 / curvature))
        theta, now = point, then


def _two_loops(gradient: np.ndarray, pairs: deque, scale: np.ndarray) -> np.ndarray:
    """Minus the approximate inverse Hessian times the gradient; `scale` is a guess at its diagonal."""
    direction = -gradient
    shares = []
    for step, change, rho in reversed(pairs):
        share = rho * float(step @ direction)
        shares.append(share)
        daxpy(change, direction, a=-share)  # in place, without a temporary
    direction /= scale
    if pairs:
        step, change, rho = pairs[-1]
        direction *= 1.0 / (rho * float(change @ (change / scale)))
    for (step, change, rho), share in zip(pairs, reversed(shares), strict=True):
        daxpy(step, direction, a=share - rho * float(change @ direction))
    return direction
