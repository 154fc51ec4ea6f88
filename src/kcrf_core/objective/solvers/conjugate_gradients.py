"""Preconditioned conjugate gradients, stopped as soon as the answer is good enough for a step."""

from __future__ import annotations

from collections.abc import Callable

from .. import Vector, Vectors

MOST_STEPS = 200


def conjugate_gradients(
    product: Callable[[Vector], Vector],
    right: Vector,
    precondition: Callable[[Vector], Vector],
    forcing: float,
    vectors: Vectors,
) -> Vector:
    """x with |A x - right| <= forcing |right| in the norm of the preconditioner, for a positive definite A.

    From zero every iterate x has x.right > 0: as a step for right = -gradient it goes downhill. Where A curves the
    wrong way along a direction, it ends with what it has, or with that direction if it has nothing.
    """
    solution = vectors.zeros()
    residual = vectors.copy(right)
    scaled = precondition(residual)
    search = vectors.copy(scaled)
    size = vectors.dot(residual, scaled)
    enough = forcing**2 * size
    for _ in range(MOST_STEPS):
        if size <= enough:
            break
        image = product(search)
        curvature = vectors.dot(search, image)
        if curvature <= 0:
            return search if vectors.is_zero(solution) else solution
        step = size / curvature
        vectors.add_scaled(solution, step, search)
        vectors.add_scaled(residual, -step, image)
        scaled = precondition(residual)
        before, size = size, vectors.dot(residual, scaled)
        search = vectors.stepped(scaled, size / before, search)
    return solution
