"""Preconditioned conjugate gradients, stopped as soon as the answer is good enough for a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

MOST_STEPS = 200


def conjugate_gradients(
    product: Callable[[np.ndarray], np.ndarray],
    right: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    forcing: float,
) -> np.ndarray:
    """x with |A x - right| <= forcing |right| in the norm of the preconditioner, for a positive definite A.

    From zero every iterate x has x.right > 0: as a step for right = -gradient it goes downhill. Where A curves the
    wrong way along a direction, it ends with what it has, or with that direction if it has nothing.
    """
    solution = np.zeros_like(right)
    residual = right.copy()
    scaled = precondition(residual)
    search = scaled.copy()
    size = float(residual @ scaled)
    enough = forcing**2 * size
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = product(search)
        curvature = float(search @ image)
        if curvature <= 0:
            return solution if solution.any() else search
        step = size / curvature
        solution += step * search
        residual -= step * image
        scaled = precondition(residual)
        before, size = size, float(residual @ scaled)
        search = scaled + (size / before) * search
    return solution
