"""A step along a descent direction that meets the weak Wolfe conditions.

Bracketing with cubic interpolation; nearly always the first try is accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import Point, Vector, Vectors

SUFFICIENT_DECREASE, CURVATURE = 1e-4, 0.9
MOST_TRIALS = 20


def line_search(
    evaluate: Callable[[Vector], Point],
    theta: Vector,
    start: Point,
    direction: Vector,
    slope: float,
    step: float,
    vectors: Vectors,
) -> tuple[Vector, Point] | None:
    """A point along `direction` that meets the weak Wolfe conditions; None where rounding hides all progress."""
    low, low_value, low_slope = 0.0, start.value, slope
    high = None
    for _ in range(MOST_TRIALS):
        point = vectors.stepped(theta, step, direction)
        found = evaluate(point)
        new_slope = vectors.dot(found.gradient, direction)
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
