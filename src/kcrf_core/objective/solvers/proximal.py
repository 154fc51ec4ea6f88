"""Proximal quasi-Newton steps, for P with an L1 penalty; without one `lbfgs` takes the same steps sooner.

A step goes to the minimum of a model: the gradient and the curvature B of limited-memory BFGS for what is smooth about
P, and the penalty as it is. With steps S, changes Y of the gradient and an initial diagonal b

    B = diag(b) - W M W^T,    W = [b S, Y],    M^-1 = [S^T b S, L; L^T, -D]

where L is what is below the diagonal of S^T Y, and D the diagonal (Byrd, Nocedal and Schnabel 1994). b is a power of
the Hessian's diagonal, taken anew on the way. Coordinate descent finds the minimum (`objective._proximal`), for
parameters that are not zero or want to leave it; a line search follows (Lee, Sun and Saunders 2014). 2,000 sentences of
CoNLL-2000, c1 0.1, c2 0.01: after 120 passes it is 0.2 % above the optimum, and OWL-QN 1.5 %.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from ...system import hand_back
from .. import Objective, Point, Vector
from .bundle import kept_dtype
from .initial_inverse import POWER, current_curvature
from .lbfgs import FEWEST_PAIRS, FIRST_RENEWAL, RENEWAL_GROWTH, RememberedPairs, most_sparse_pairs
from .run import Run

# Of the pairs of a step and a change of the gradient the last ones are used that make a matrix product of so many
# operations: few at first, when most parameters are free, more once few are.
# With 10 of them 2,000 sentences of CoNLL-2000 take 200 passes to a gap of 1e-3, with up to 40 of them 158.
MODEL_OPERATIONS = 1 << 28

# Sweeps of coordinate descent over the model, at most, and when to stop: as a part of what the first one gained. With 6
# sweeps P is five times as far from the optimum after as many passes, with 60 it is no nearer.
MOST_SWEEPS, ENOUGH = 20, 0.01

SUFFICIENT_DECREASE, SHORTER, MOST_TRIALS = 1e-4, 0.4, 20

# Curvatures below this part of the largest one are taken for that: columns that no data has.
LEAST_CURVATURE = 1e-10


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    model = CurvatureModel(objective)
    look = 0 if any(term.nested for term in objective.terms) else FIRST_RENEWAL  # of pivots there is no such diagonal
    now = run.evaluate(objective, theta) if now is None else now
    hand_back()  # what was needed to begin
    for taken in count(1):
        if taken == look:
            model.look(objective, theta, run)
            look *= RENEWAL_GROWTH
        reached = step(objective, theta, now, model, run)
        if reached is None:
            return
        theta, now = reached


def step(
    objective: Objective, theta: Vector, now: Point, model: CurvatureModel, run: Run
) -> tuple[Vector, Point] | None:
    """Take one step and remember it; None where rounding hides all progress even along the initial diagonal."""
    while True:
        direction, change = model.step(theta, now)
        if change < 0:
            length = 1.0
            for _ in range(MOST_TRIALS):
                point = objective.vectors.stepped(theta, length, direction)
                found = run.evaluate(objective, point)
                if found.value <= now.value + SUFFICIENT_DECREASE * length * change:
                    run.steps += 1
                    model.add(theta, point, now, found)
                    return point, found
                length *= SHORTER
        if not len(model):
            return None
        model.clear()  # rounding has made the history useless


class CurvatureModel(RememberedPairs):
    """Curvature of P without its penalty, by the last steps."""

    def __init__(self, objective: Objective):
        super().__init__(objective.vectors, most_sparse_pairs(objective.size), kept_dtype(objective))
        self._thresholds = self._vectors.zeros() if objective.thresholds is None else objective.thresholds
        curvature = objective.initial_curvature()
        self._least = LEAST_CURVATURE * curvature.max(initial=1e-300)
        self._take(np.maximum(curvature, self._least) ** POWER)
        self._crossed = np.zeros((self._most, self._most))  # [i, j] s_i.y_j
        self._squared = np.zeros((self._most, self._most))  # [i, j] s_i.(curvature s_j)
        self._length = 0.0  # what the curvature is multiplied with; zero: nothing is known yet

    def _take(self, curvature: np.ndarray) -> None:
        """Take a power of the Hessian's diagonal for the initial one."""
        self._curvature = curvature
        self._scale, self._inverse = map(self._vectors.from_array, (curvature, 1 / curvature))

    def look(self, objective: Objective, theta: Vector, run: Run) -> None:
        """Start from the Hessian's diagonal at these parameters, and keep the pairs."""
        self._take(np.maximum(current_curvature(objective, theta, run), self._least) ** POWER)
        for slot in self._order:
            self._put_squares(slot, self._rows)
        if self._order:
            self._put_length(self._order[-1])

    def _put_squares(self, slot: int, rows: int) -> None:
        """Store products of a step with all others, scaled by the initial diagonal."""
        scaled = self._vectors.product(self._pairs.step(slot), self._scale)
        self._squared[slot, :rows] = self._squared[:rows, slot] = self._pairs.along(scaled, rows)

    def _put_length(self, newest: int) -> None:
        changed = self._pairs.change(newest)
        bent = self._vectors.dot(changed, self._vectors.product(changed, self._inverse))
        self._length = bent / self._crossed[newest, newest]

    def clear(self) -> None:
        super().clear()
        self._length = 0.0

    def step(self, theta: Vector, now: Point) -> tuple[Vector, float]:
        """Return a step to the minimum of the model, and its change of P: <g, d> and the change of the penalty."""
        length = self._length
        if not length:  # the first step is about as long as one
            square = self._vectors.dot(now.gradient, self._vectors.product(now.gradient, self._inverse))
            length = max(float(np.sqrt(square)), 1e-300)
        scale = self._vectors.from_array(length * self._curvature)
        free = self._vectors.free_count(theta, now.gradient, self._thresholds)
        used = max(FEWEST_PAIRS, int(np.sqrt(MODEL_OPERATIONS / max(free, 1)) / 2))
        order = self._order[-used:]
        return self._pairs.minimise_model(
            theta, now.gradient, self._thresholds, scale, self._middle(length, order), order, MOST_SWEEPS, ENOUGH
        )

    def _middle(self, length: float, order: list[int]) -> np.ndarray:
        """Return M [2 k, 2 k] of the pairs in these slots."""
        crossed, squared = (products[np.ix_(order, order)] for products in (self._crossed, self._squared))
        lower = np.tril(crossed, -1)
        whole = np.block([[length * squared, lower], [lower.T, -np.diag(np.diag(crossed))]])
        return np.linalg.inv(whole) if order else whole

    def add(self, before: Vector, after: Vector, old: Point, new: Point) -> None:
        """Take up a step between two points."""
        put = self._put(before, after, old.gradient, new.gradient)
        if put is None:
            return
        slot, rows = put[0], len(put[1])
        self._crossed[:rows, slot] = put[1][:, 0]
        self._crossed[slot, :rows] = self._pairs.changes_along(self._pairs.step(slot), rows)
        self._put_squares(slot, rows)
        self._put_length(slot)
