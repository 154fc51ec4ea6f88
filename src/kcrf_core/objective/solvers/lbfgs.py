"""Limited-memory BFGS on the primal weights, as Sha and Pereira (2003) trained linear CRFs.

What the pairs say about the curvature is laid over an initial inverse Hessian, the `metric`: here a diagonal, elsewhere
blocks (see `block_jacobi`). The two loops over the pairs run on inner products: s_i.y_j of old steps and new changes
are kept, s_i.g and y_i.r are taken anew, so every pair is read three times a step.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from ...system import hand_back
from .. import Objective, Point, Vector, Vectors
from .bundle import kept_dtype
from .initial_inverse import Diagonal, InitialInverse, Unsized
from .run import Run
from .wolfe import line_search

# Pairs kept: 60 need 14 % fewer passes than 12 on OCR, but two million parameters would take two gigabytes. On text 12
# need no fewer passes than 10 (108, 147 and 161 on three tasks; 111, 147 and 155 with 12), 8 up to a tenth more, and 23
# with observed features 5 % fewer, in the same time and more than twice the memory. Bytes are those of all pairs.
FEWEST_PAIRS, MOST_PAIRS, PAIR_BYTES, MANY = 10, 60, 1 << 25, 1 << 18

# An initial inverse Hessian that depends on the point is renewed after so many steps, then after so many times as many.
# Passes to a gap of 1e-3 with the diagonal at zero and with that at a point: an eighth of CoNLL-2000 at a sigma^2 of 1,
# 100 and 1,000 61, 116, 146 and 54, 101, 119; a quarter of wnut17 at 100 and 1,000 139, 413 and 80, 136; with an L1
# penalty, 2,000 sentences of CoNLL-2000, c1 0.1, c2 0.01, 158 and 126.
FIRST_RENEWAL, RENEWAL_GROWTH = 30, 2

Metric = Callable[[Vector], Vector]  # an approximate inverse Hessian, times a vector
Evaluate = Callable[[Vector], Point]


def most_pairs(size: int, dtype: np.dtype | type) -> int:
    """Return how many pairs of vectors of this length are kept."""
    most = PAIR_BYTES // (2 * np.dtype(dtype).itemsize * max(size, 1))
    return FEWEST_PAIRS if size > MANY else min(max(most, FEWEST_PAIRS), MOST_PAIRS)


class Memory:
    """The last steps s and the changes y of the gradient along them, by slot, with products that are kept of them."""

    def __init__(self, vectors: Vectors, dtype: np.dtype | type = np.float64):
        self._vectors, self._most = vectors, most_pairs(vectors.size, dtype)
        self._pairs = vectors.pairs(self._most, dtype)
        self._order: list[int] = []  # slots of the pairs, the oldest first
        self._products = np.zeros((self._most, self._most))  # [i, j] s_i.y_j, for s_i no newer than y_j
        # The gradient that the newest pair ended at, and its products with all steps.
        self._known: tuple[Vector, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        self._order.clear()

    @property
    def _rows(self) -> int:
        """Number of slots up to the last one that is taken."""
        return max(self._order, default=-1) + 1

    def add(self, before: Vector, after: Vector, gradient: Vector, new_gradient: Vector) -> None:
        """Take up a step between two points, in the place of the oldest where all slots are taken.

        It is left out where rounding hides that P curves upwards along it.
        """
        full = len(self._order) == self._most
        slot = self._order.pop(0) if full else next(free for free in range(self._most) if free not in self._order)
        products = self._pairs.put(slot, before, after, gradient, new_gradient, max([slot, *self._order]) + 1)
        if not products[slot, 0] > 0:
            return self._pairs.forget(slot)
        self._order.append(slot)
        self._products[: len(products), slot] = products[:, 0]
        self._known = (new_gradient, products[:, 1])

    def direction(self, gradient: Vector, metric: Metric) -> tuple[Vector, float]:
        """Return minus the approximate inverse Hessian times the gradient, and its product with the gradient."""
        order, products, pairs = self._order, self._products, self._pairs
        rows = self._rows
        newest = order[-1] if order else None
        if self._known is not None and self._known[0] is gradient:
            along = self._known[1]
        else:
            along = pairs.along(gradient, rows)
        shares = np.zeros(rows)  # of y in the vector that meets the metric
        for i in reversed(order):
            shares[i] = -(along[i] + shares @ products[i, :rows]) / products[i, i]
            # Products of s_i with older changes are not kept: their shares are still zero here.
        length = 1.0
        if isinstance(metric, Diagonal):
            direction, found, curvature = pairs.reduced_and_scaled(gradient, shares, metric.inverse, newest)
        else:
            direction = metric(pairs.reduced(gradient, shares))
            found = pairs.changes_along(direction, rows)
            if order and isinstance(metric, Unsized):
                change = pairs.change(newest)
                curvature = self._vectors.dot(change, metric(change))
        if order and isinstance(metric, Unsized):
            length = products[newest, newest] / curvature
        weights = np.zeros(rows)  # of s in the direction
        for i in order:
            weights[i] = shares[i] - (length * found[i] + weights @ products[:rows, i]) / products[i, i]
        return direction, pairs.finish(direction, length, weights, gradient)

    def widened(self, vectors: Vectors, dtype: np.dtype | type) -> Memory:
        """Return the pairs for longer vectors, whose first columns these are."""
        out, nothing = Memory(vectors, dtype), vectors.zeros()
        for slot in self._order:
            step, change = (
                vectors.widened(vector, self._vectors) for vector in (self._pairs.step(slot), self._pairs.change(slot))
            )
            out.add(nothing, step, nothing, change)
        return out


def memory_for(objective: Objective) -> Memory:
    return Memory(objective.vectors, kept_dtype(objective))


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run, memory: Memory | None = None) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    memory = memory_for(objective) if memory is None else memory
    now = run.evaluate(objective, theta) if now is None else now
    initial, renewal = InitialInverse(objective, run), FIRST_RENEWAL
    metric = initial.at(theta)
    hand_back()  # what was needed to begin
    for steps in count():
        if initial.moves and steps == renewal:
            del metric  # another takes its memory
            metric, renewal = initial.at(theta), steps * RENEWAL_GROWTH
            hand_back()
        reached = step(partial(run.evaluate, objective), theta, now, memory, metric, objective.vectors, run)
        if reached is None:
            return
        theta, now = reached


def step(
    evaluate: Evaluate,
    theta: Vector,
    now: Point,
    memory: Memory,
    metric: Metric,  # Unsized, or one from the Hessian at theta, whose length is right as it is
    vectors: Vectors,
    run: Run,
) -> tuple[Vector, Point] | None:
    """Take one step and remember it; None where rounding hides all progress even along the metric's own direction."""
    while True:
        direction, slope = memory.direction(now.gradient, metric)
        if slope < 0:
            sized = len(memory) or not isinstance(metric, Unsized)
            first = 1.0 if sized else min(1.0, 1.0 / max(np.sqrt(-slope), 1e-300))
            reached = line_search(evaluate, theta, now, direction, slope, vectors, first)
            if reached is not None:
                run.steps += 1
                memory.add(theta, reached[0], now.gradient, reached[1].gradient)
                return reached
        if not len(memory):
            return None
        memory.clear()  # rounding has made the history useless
