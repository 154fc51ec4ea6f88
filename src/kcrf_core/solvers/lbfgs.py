"""Limited-memory BFGS on the primal weights, as Sha and Pereira (2003) trained linear CRFs.

P is strictly convex, so s.y > 0 for every step and no curvature is ever skipped. What the pairs say about the curvature
is laid over a first guess at the inverse Hessian, the `metric`: here a diagonal, elsewhere blocks (see `block_jacobi`).

The two loops over the pairs run on inner products, which are all that they need: s_i.y_j of old steps and new changes
are kept, s_i.g and y_i.r are taken anew. So every pair is read three times a step, slice by slice on all threads, and
nothing is written but the direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ..objective import Evaluation, Posterior
from ..system import Slices, hand_back
from .bundle import POINTS
from .first_guess import Diagonal, Unsized, scaling
from .run import Run

# Pairs kept: 60 need 14 % fewer passes than 12 on OCR, but two million parameters would take two gigabytes.
FEWEST_PAIRS, MOST_PAIRS, PAIR_VALUES = 12, 60, 1 << 23

Metric = Callable[[np.ndarray], np.ndarray]  # a guess at the inverse Hessian, times a vector
Evaluate = Callable[[np.ndarray], Evaluation]


def _most_pairs(size: int) -> int:
    return min(max(PAIR_VALUES // max(size, 1), FEWEST_PAIRS), MOST_PAIRS)


def vectors_held(size: int) -> int:
    """How many vectors like theta a fit holds at once: pairs, linearisations, and about ten others."""
    return 2 * _most_pairs(size) + POINTS + 10


class Memory:
    """Steps s and the changes y of the gradient along them."""

    def __init__(self, slices: Slices, dtype: np.dtype | type = np.float64, most: int | None = None):
        self._slices = slices
        self._most = most or _most_pairs(slices.size)
        self._steps = np.empty((self._most, slices.size), dtype=dtype)
        self._changes = np.empty((self._most, slices.size), dtype=dtype)
        self._order: list[int] = []  # rows of the two, the oldest first
        self._products = np.zeros((self._most, self._most))  # [i, j] s_i.y_j, for s_i no newer than y_j
        # The gradient that the newest pair ended at, and its products with all steps.
        self._known: tuple[np.ndarray, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        self._order.clear()

    def add(self, before: np.ndarray, after: np.ndarray, gradient: np.ndarray, new_gradient: np.ndarray) -> None:
        """Take up a step between two points, with the gradients there."""
        slot = self._order.pop(0) if len(self._order) == self._most else self._free()
        rows = max([slot, *self._order]) + 1

        def work(part: slice) -> np.ndarray:
            self._steps[slot, part] = after[part] - before[part]
            self._changes[slot, part] = new_gradient[part] - gradient[part]
            right = np.stack([self._changes[slot, part], new_gradient[part].astype(self._steps.dtype, copy=False)])
            return self._steps[:rows, part] @ right.T  # [rows, 2]

        products = self._slices.total(work)
        if products[slot, 0] > 0:
            self._order.append(slot)
            self._products[:rows, slot] = products[:, 0]
            self._known = (new_gradient, products[:, 1])
        else:
            self._steps[slot] = self._changes[slot] = 0.0  # rows out of use are multiplied with zero

    def _free(self) -> int:
        return next(slot for slot in range(self._most) if slot not in self._order)

    def direction(self, gradient: np.ndarray, metric: Metric) -> tuple[np.ndarray, float]:
        """Minus the approximate inverse Hessian times the gradient, and its product with the gradient."""
        order, products, slices = self._order, self._products, self._slices
        rows = max(order, default=-1) + 1
        steps, changes = self._steps[:rows], self._changes[:rows]
        dtype = self._steps.dtype
        if self._known is not None and self._known[0] is gradient:
            along = self._known[1]
        else:
            along = slices.total(lambda part: steps[:, part] @ gradient[part].astype(dtype, copy=False))
        shares = np.zeros(rows)  # of y in the vector that meets the metric
        for i in reversed(order):
            shares[i] = -(along[i] + shares @ products[i, :rows]) / products[i, i]
            # Products of s_i with older changes are not kept: their shares are still zero here.
        length, turned = 1.0, slices.empty(dtype)
        kept = shares.astype(dtype)

        def reduced(part: slice) -> np.ndarray:
            """Minus the gradient less its shares of changes."""
            out = kept @ changes[:, part]
            out += gradient[part].astype(dtype, copy=False)
            return np.negative(out, out=out)

        if isinstance(metric, Diagonal):

            def turn(part: slice) -> np.ndarray:
                inverse = metric.inverse[part]
                np.multiply(reduced(part), inverse, out=turned[part])
                if not order:
                    return np.zeros(1)
                newest = changes[order[-1], part]
                return np.append(changes[:, part] @ turned[part], newest @ (newest * inverse))

            found = slices.total(turn)
            if order:
                length = products[order[-1], order[-1]] / found[-1]
        else:
            vector = slices.empty(dtype)

            def reduce(part: slice) -> None:
                vector[part] = reduced(part)

            slices.run(reduce)
            turned = metric(vector)
            found = slices.total(lambda part: changes[:, part] @ turned[part])
            if order and isinstance(metric, Unsized):
                newest = changes[order[-1]]
                length = products[order[-1], order[-1]] / slices.dot(newest, metric(newest))
        weights = np.zeros(rows)  # of s in the direction
        for i in order:
            weights[i] = shares[i] - (length * found[i] + weights @ products[:rows, i]) / products[i, i]
        weights = weights.astype(dtype)

        def finish(part: slice) -> float:
            turned[part] *= length
            turned[part] += weights @ steps[:, part]
            return float(turned[part] @ gradient[part])

        slope = float(slices.total(finish))
        return turned, slope

    def widened(self, widen: Callable[[np.ndarray], np.ndarray], slices: Slices, dtype: np.dtype | type) -> Memory:
        """The same pairs for longer vectors."""
        out = Memory(slices, dtype)
        nothing = np.zeros(slices.size)
        for slot in self._order:
            out.add(nothing, widen(self._steps[slot]), nothing, widen(self._changes[slot]))
        return out


def memory_for(posterior: Posterior, run: Run) -> Memory:
    return Memory(posterior.slices, run.kept_dtype(posterior))


def descend(
    posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run, memory: Memory | None = None
) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None:
        now = run.evaluate(posterior, theta)
    metric = scaling(posterior, run)
    memory = memory_for(posterior, run) if memory is None else memory
    hand_back()  # what was needed to begin
    while True:
        found = step(lambda point: run.evaluate(posterior, point), theta, now, memory, metric, posterior.slices, run)
        if found is None:
            run.raise_precision(posterior)
        theta, now = found


def step(
    evaluate: Evaluate,
    theta: np.ndarray,
    now: Evaluation,
    memory: Memory,
    metric: Metric,  # Unsized, or one from the Hessian at theta, whose length is right as it is
    slices: Slices,
    run: Run,
) -> tuple[np.ndarray, Evaluation] | None:
    """One step, remembered; None where rounding hides all progress even along the metric's own direction."""
    while True:
        direction, slope = memory.direction(now.gradient, metric)
        if slope < 0:
            sized = len(memory) or not isinstance(metric, Unsized)
            first = 1.0 if sized else min(1.0, 1.0 / max(np.sqrt(-slope), 1e-300))
            found = run.search(evaluate, theta, now, direction, slope, slices, first)
            if found is not None:
                memory.add(theta, found[0], now.gradient, found[1].gradient)
                return found
        if not len(memory):
            return None
        memory.clear()  # rounding has made the history useless
