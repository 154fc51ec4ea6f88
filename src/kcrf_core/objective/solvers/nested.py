"""The default: L-BFGS that begins on the first columns of the maps; with an L1 penalty `proximal`.

The first m columns of a reduced map are the map of the first m pivots. So the first steps are taken on some of the
columns, where a pass costs their share, and their pairs are carried over with zeros for the others. OCR, poly-3, 1,500
pivots, gap of 1e-3, work in passes: 74 for `lbfgs`, 63 for this; pitch accent, poly-2, gap of 1e-4: 36 and 21.
"""

from __future__ import annotations

from .. import Objective, Point, Vector
from . import lbfgs, proximal
from .bundle import kept_dtype
from .initial_inverse import InitialInverse
from .run import Run

PART, PART_STEPS = 5, 25  # begin on a fifth of the columns
FEWEST_COLUMNS = 40  # where a fifth is less, passes cost next to nothing anyway


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    if objective.thresholds is not None:
        return proximal.descend(objective, theta, now, run)
    memory = None
    if now is None and objective.vectors.is_zero(theta):
        theta, memory = _begin_on_part(objective, run)
    lbfgs.descend(objective, theta, now, run, memory)


def _begin_on_part(objective: Objective, run: Run) -> tuple[Vector, lbfgs.Memory]:
    """Return a point and the pairs that led to it, from a few steps on the first columns of every reduced map."""
    vectors, part = objective.vectors, narrowed(objective)
    if part is None:
        return vectors.zeros(), lbfgs.memory_for(objective)

    def evaluate(point: Vector) -> Point:
        return run.evaluate_part(
            part, point, part.pass_size / objective.pass_size, vectors.widened(point, part.vectors)
        )

    theta, memory = part.vectors.zeros(), lbfgs.memory_for(part)
    now, metric = evaluate(theta), InitialInverse(part, run, objective).at(theta)
    for _ in range(PART_STEPS):
        reached = lbfgs.step(evaluate, theta, now, memory, metric, part.vectors, run)
        if reached is None:
            break
        theta, now = reached
    return vectors.widened(theta, part.vectors), memory.widened(vectors, kept_dtype(objective))


def narrowed(objective: Objective) -> Objective | None:
    """Return P on the first columns of every reduced map; None where they are too few to bother."""
    # Weights are kept row by row: those of the first columns come first in their block.
    sizes = {
        j: term.rows // PART
        for j, term in enumerate(objective.terms)
        if term.nested and term.rows >= PART * FEWEST_COLUMNS
    }
    return Objective(objective.engine.narrowed(sizes), objective.sigma2) if sizes else None
