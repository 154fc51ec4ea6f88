"""Limited-memory BFGS on the primal weights, as Sha and Pereira (2003) trained linear CRFs.

P is strictly convex, so s.y > 0 for every step and no curvature is ever skipped. What the pairs say about the curvature
is laid over a first guess at the inverse Hessian, the `metric`: here a diagonal, elsewhere blocks (see `block_jacobi`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NoReturn

import numpy as np
from scipy.linalg.blas import daxpy

from ..posterior import Evaluation, Posterior
from .bundle import POINTS
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
    """Steps and the changes of the gradient along them, newest last."""

    def __init__(self, size: int, pairs: list[tuple[np.ndarray, np.ndarray, float]] | None = None):
        self.pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(pairs or [], maxlen=_most_pairs(size))

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        curvature = float(step @ change)
        if curvature > 0:
            self.pairs.append((step, change, 1.0 / curvature))

    def direction(self, gradient: np.ndarray, metric: Metric, rescale: bool = True) -> np.ndarray:
        """Minus the approximate inverse Hessian times the gradient; `rescale` fits the metric to the last pair."""
        direction = -gradient
        shares = []
        for step, change, rho in reversed(self.pairs):
            share = rho * float(step @ direction)
            shares.append(share)
            daxpy(change, direction, a=-share)  # in place, without a temporary
        direction = metric(direction)
        if self.pairs and rescale:
            _, change, rho = self.pairs[-1]
            direction *= 1.0 / (rho * float(change @ metric(change)))
        for (step, change, rho), share in zip(self.pairs, reversed(shares), strict=True):
            daxpy(step, direction, a=share - rho * float(change @ direction))
        return direction


def diagonal(posterior: Posterior) -> Metric:
    """Division by the square root of the curvature at zero.

    Passes to a gap of 1e-3 by the power of that curvature, 0, 1/2 and 1: CoNLL-2000 184 (by Lemma 9 alone), 106 and
    146; Helsinki prosody 106, 37 and 46; OCR with 1,500 pivots 91, 72 and 124. In between, frequent features are
    neither too slow nor so fast that the pairs cannot hold the rest.
    """
    scale = np.sqrt(posterior.curvature_guess())
    return lambda vector: vector / scale


def descend(
    posterior: Posterior, theta: np.ndarray, now: Evaluation | None, run: Run, memory: Memory | None = None
) -> NoReturn:
    """Step after step, until the run raises `Stop` or `Restart`."""
    if now is None:
        now = run.evaluate(posterior, theta)
    metric = diagonal(posterior)
    memory = Memory(posterior.size) if memory is None else memory
    while True:
        found = step(lambda point: run.evaluate(posterior, point), theta, now, memory, metric, run)
        if found is None:
            run.raise_precision(posterior)
        theta, now = found


def step(
    evaluate: Evaluate,
    theta: np.ndarray,
    now: Evaluation,
    memory: Memory,
    metric: Metric,
    run: Run,
    newton: bool = False,  # the metric comes from the Hessian at theta: its length is right as it is
) -> tuple[np.ndarray, Evaluation] | None:
    """One step, remembered; None where rounding hides all progress even along the metric's own direction."""
    while True:
        direction = memory.direction(now.gradient, metric, rescale=not newton)
        slope = float(direction @ now.gradient)
        if slope < 0:
            first = 1.0 if memory.pairs or newton else min(1.0, 1.0 / max(np.sqrt(-slope), 1e-300))
            found = run.search(evaluate, theta, now, direction, first)
            if found is not None:
                memory.add(found[0] - theta, found[1].gradient - now.gradient)
                return found
        if not memory.pairs:
            return None
        memory.pairs.clear()  # rounding has made the history useless
