"""Limited-memory BFGS on the primal weights, as Sha and Pereira (2003) trained linear CRFs.

P is strictly convex, so s.y > 0 for every step and no curvature is ever skipped. A step is accepted by the
weak Wolfe conditions, found by bracketing with cubic interpolation; nearly always the first try is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ..posterior import Evaluation, Posterior
from .run import Restart, Run, SolverResult, Stop

HISTORY = 12
SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
MOST_TRIALS = 20


def minimise(posterior: Posterior, theta: np.ndarray, run: Run) -> SolverResult:
    """From `theta` to a certified optimum, or to whatever else makes the run stop."""
    try:
        now = None
        while True:
            try:
                _descend(posterior, theta, now, run)
            except Restart as restart:
                theta, now = restart.theta, restart.evaluation
    except Stop as stop:
        return stop.result


def _descend(posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run) -> NoReturn:
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
        found = _line_search(lambda point: run.evaluate(posterior, point), theta, now, direction, slope, first_step)
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
        direction -= share * change
    direction /= scale
    if pairs:
        step, change, rho = pairs[-1]
        direction *= 1.0 / (rho * float(change @ (change / scale)))
    for (step, change, rho), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - rho * float(change @ direction)) * step
    return direction


def _line_search(
    evaluate: Callable[[np.ndarray], Evaluation],
    theta: np.ndarray,
    start: Evaluation,
    direction: np.ndarray,
    slope: float,
    step: float,
) -> tuple[np.ndarray, Evaluation] | None:
    """A point along `direction` that meets the weak Wolfe conditions; None where rounding hides all progress."""
    low, low_value, low_slope = 0.0, start.value, slope
    high = None
    for _ in range(MOST_TRIALS):
        point = theta + step * direction
        found = evaluate(point)
        new_slope = float(found.gradient @ direction)
        if found.value > start.value + SUFFICIENT_DECREASE * step * slope or not np.isfinite(found.value):
            high = (step, found.value, new_slope)
        elif new_slope < CURVATURE * slope:
            low, low_value, low_slope = step, found.value, new_slope
        else:
            return point, found
        if high is None:
            step *= 4.0
        else:
            step = _between(low, low_value, low_slope, *high)
            if step - low < 1e-12 * max(high[0], 1.0):
                return None
    return None


def _between(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Minimum of the cubic through two points with their slopes, kept off the ends of the interval."""
    middle = 0.5 * (a + b)
    if not (np.isfinite(fb) and np.isfinite(db)):
        return a + 0.1 * (b - a)
    d1 = da + db - 3 * (fa - fb) / (a - b)
    inside = d1 * d1 - da * db
    if inside < 0:
        return middle
    d2 = np.sqrt(inside)
    if db - da + 2 * d2 == 0:
        return middle
    point = b - (b - a) * (db + d2 - d1) / (db - da + 2 * d2)
    return min(max(point, a + 0.1 * (b - a)), a + 0.9 * (b - a))
