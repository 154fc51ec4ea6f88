"""The line search of the solvers that have a gradient: bracketing with cubic interpolation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import Point, Vector, Vectors

# The weak Wolfe conditions, and how many points are tried.
SUFFICIENT_DECREASE, CURVATURE, MOST_TRIALS = 1e-4, 0.9, 20


def line_search(
    evaluate: Callable[[Vector], Point],
    theta: Vector,
    now: Point,
    direction: Vector,
    slope: float,
    vectors: Vectors,
    first_step: float = 1.0,
) -> tuple[Vector, Point] | None:
    """Step along `direction`, where P has this slope, to a point that meets the weak Wolfe conditions.

    Nearly always the first try is accepted. None where rounding hides all progress.
    """
    step, low, low_value, low_slope = first_step, 0.0, now.value, slope
    high = None
    for _ in range(MOST_TRIALS):
        trial = vectors.stepped(theta, step, direction)
        point = evaluate(trial)
        new_slope = vectors.dot(point.gradient, direction)
        if point.value > now.value + SUFFICIENT_DECREASE * step * slope or not np.isfinite(point.value):
            high = (step, point.value, new_slope)
        elif new_slope < CURVATURE * slope:
            low, low_value, low_slope = step, point.value, new_slope
        else:
            return trial, point
        del trial, point  # their memory is that of the next ones
        if high is None:
            step *= 4.0
        else:
            step = cubic_minimum(low, low_value, low_slope, *high)
            if step - low < 1e-12 * max(high[0], 1.0):
                return None
    return None


def cubic_minimum(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return the minimum of the cubic through two points with their slopes, kept off the ends of the interval."""
    if not (np.isfinite(fb) and np.isfinite(db)):
        return a + 0.1 * (b - a)
    d1 = da + db - 3 * (fa - fb) / (a - b)
    inside = d1 * d1 - da * db
    d2 = np.sqrt(max(inside, 0.0))
    if inside < 0 or db - da + 2 * d2 == 0:
        return 0.5 * (a + b)
    point = b - (b - a) * (db + d2 - d1) / (db - da + 2 * d2)
    return min(max(point, a + 0.1 * (b - a)), a + 0.9 * (b - a))
