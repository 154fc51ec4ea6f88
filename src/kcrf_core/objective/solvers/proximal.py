"""Proximal quasi-Newton steps, for P with an L1 penalty; without one `lbfgs` takes the same steps sooner.

A step goes to the minimum of a model: the gradient and the curvature of limited-memory BFGS for what is smooth about P,
and the penalty as it is, over a `WorkingSet` of parameters. A line search follows (Lee, Sun and Saunders 2014). The
initial curvature is a power of the Hessian's diagonal, taken anew on the way.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from ...system import hand_back
from .. import Objective, Point, Vector
from .bundle import kept_dtype
from .initial_inverse import current_curvature
from .lbfgs import FIRST_RENEWAL, RENEWAL_GROWTH
from .run import Run
from .working_set import WorkingSet

SUFFICIENT_DECREASE, SHORTER, MOST_TRIALS = 1e-4, 0.4, 20

# Parameters that join the working set before one step, at most, and as a part of all: those whose slopes are furthest
# beyond their thresholds. At first most slopes are beyond, and few of the parameters are not zero in the end.
MOST_NEW, FEWEST_NEW, NEW_SHARE = 1 << 16, 1 << 12, 1 / 32
# Curvatures below this part of the largest one are taken for that: columns that no data has.
LEAST_CURVATURE = 1e-10
# P after 160 passes by the power of the curvature, 1/2, 0.65, 3/4 and 1: 506, 488, 483 and 480 (a twentieth of GROBID's
# header); gap after 60 passes: 0.0071, 0.0062, 0.0100 and 0.0308 (2,000 sentences of CoNLL-2000, c1 and c2 0.1).
POWER = 0.65


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    model = QuadraticModel(objective, theta)
    look = 0 if any(term.nested for term in objective.terms) else FIRST_RENEWAL  # of pivots there is no such diagonal
    now = run.evaluate(objective, theta) if now is None else now
    hand_back()  # what was needed to begin
    for taken in count(1):
        if taken == look:
            model.look(objective, theta, run)
            look *= RENEWAL_GROWTH
            hand_back()
        reached = step(objective, theta, now, model, run)
        if reached is None:
            return
        theta, now = reached


def step(
    objective: Objective, theta: Vector, now: Point, model: QuadraticModel, run: Run
) -> tuple[Vector, Point] | None:
    """Take one step and remember it; None where rounding hides all progress even along the initial diagonal."""
    while True:
        start, direction, change = model.step(theta, now)
        if change < 0:
            length = 1.0
            for _ in range(MOST_TRIALS):
                point = objective.vectors.with_values(theta, model.columns, start + length * direction)
                found = run.evaluate(objective, point)
                if found.value <= now.value + SUFFICIENT_DECREASE * length * change:
                    run.steps += 1
                    model.remember(length * direction, found)
                    return point, found
                del point, found  # their memory is that of the next ones
                length *= SHORTER
        if not model.pairs:
            return None
        model.forget_pairs()  # rounding has made the history useless


class QuadraticModel(WorkingSet):
    """A quadratic model of P without its penalty, over the parameters that may leave zero."""

    def __init__(self, objective: Objective, theta: Vector):
        super().__init__(objective.size, kept_dtype(objective), objective.engine.workers)
        self._vectors = objective.vectors
        self._thresholds = self._vectors.zeros() if objective.thresholds is None else objective.thresholds
        curvature = objective.initial_curvature()
        self._lowest = LEAST_CURVATURE * curvature.max(initial=1e-300)
        self._curvature = np.maximum(curvature, self._lowest) ** POWER
        # [w] theta, its gradient and thresholds, as far as they have been looked up
        self._start, self._slope, self._least = (np.empty(0) for _ in range(3))
        nonzero = np.flatnonzero(self._vectors.to_array(theta))
        self.join(nonzero, self._curvature[nonzero])

    def look(self, objective: Objective, theta: Vector, run: Run) -> None:
        """Start from the Hessian's diagonal at these parameters, and keep the pairs."""
        self._curvature = current_curvature(objective, theta, run)  # in the precision of pairs
        np.maximum(self._curvature, self._lowest, out=self._curvature)
        self._curvature **= POWER
        self.rescale(self._curvature[self.columns])

    def step(self, theta: Vector, now: Point) -> tuple[np.ndarray, np.ndarray, float]:
        """Return parameters of the working set, a step of theirs to the minimum of the model, and its change of P."""
        wanted = now.dual.places if now.dual else np.arange(self._vectors.size)
        new = ~self._member[wanted]
        most = min(MOST_NEW, max(FEWEST_NEW, int(NEW_SHARE * self._vectors.size)))
        if now.dual and new.sum() > most:
            excess = (now.dual.sizes - now.dual.thresholds)[new]
            wanted = wanted[new][np.sort(np.argpartition(-excess, most)[:most])]
        self.join(wanted, self._curvature[wanted])
        joined, of_whole = self.columns[len(self._start) :], (theta, now.gradient, self._thresholds)
        found = [self._vectors.values_at(vector, joined) for vector in of_whole]
        self._start, self._slope, self._least = map(np.append, (self._start, self._slope, self._least), found)
        length = self.length
        if not length:  # the first step is about as long as one
            length = max(float(np.sqrt((self._slope * self._slope / self._curvature[self.columns]).sum())), 1e-300)
        reached, change = self.minimise(self._start, self._slope, self._least, length)
        return self._start, reached - self._start, change

    def remember(self, step: np.ndarray, new: Point) -> None:
        """Take up a step to a point; parameters that are zero and want to stay so may leave there."""
        slope = self._vectors.values_at(new.gradient, self.columns)
        self.add(step, slope - self._slope)
        self._start, self._slope = self._start + step, slope
        kept = self.leave((self._start == 0) & (abs(slope) <= self._least))
        if kept is not None:
            self._start, self._slope, self._least = (own[kept] for own in (self._start, slope, self._least))
