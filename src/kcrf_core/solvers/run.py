"""What every solver shares: counting passes, the certificate, and when to stop.

A solver asks its `Run` for every evaluation of P. The run keeps the best point and the best lower bound seen
(Lemma 9 holds at each of them), tells the observer, and ends the solver by raising `Stop`. The last word on
a certificate is always an evaluation in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ..blocks import Blocks
from ..errors import NumericError
from ..posterior import Evaluation, Posterior

CERTIFIED, PASSES, INTERRUPTED, PRECISION = "certified", "passes", "interrupted", "precision"
# Certified, but earlier parameters were kept, which are not.
BEST = "best"


@dataclass(frozen=True)
class SolverResult:
    theta: np.ndarray
    value: float  # P there, in double precision
    lower: float  # the best lower bound on min P
    passes: int  # evaluations of P and its gradient over all data
    products: int  # products with the Hessian or a block of it
    reason: str  # why it stopped: one of the constants above

    @property
    def gap(self) -> float:
        return relative_gap(self.value, self.lower)


@dataclass(frozen=True)
class Progress:
    """Where a solver stands, for an observer."""

    passes: int
    value: float
    gap: float
    lower: float  # the best lower bound so far
    products: int
    theta: np.ndarray | None = None  # where P is the smallest so far, and None elsewhere


def relative_gap(value: float, lower: float) -> float:
    """(P - lower) / lower, infinite while the bound says nothing."""
    if value <= lower:
        return 0.0
    return (value - lower) / lower if lower > 0 else np.inf


class Stop(Exception):
    """Raised out of an evaluation when the run is over; carries its result."""

    def __init__(self, result: SolverResult):
        self.result = result


class Restart(Exception):
    """Raised out of an evaluation when the precision rises: go on from here, and forget all values before."""

    def __init__(self, theta: np.ndarray, evaluation: Evaluation):
        self.theta, self.evaluation = theta, evaluation


class Run:
    """The budget and the books of one minimisation."""

    def __init__(
        self,
        tolerance: float,
        max_passes: int,
        observe: Callable[[Progress], None] | None = None,
        interrupted: Callable[[], bool] | None = None,
    ):
        self.tolerance, self.max_passes = tolerance, max_passes
        self._observe, self._interrupted = observe, interrupted
        self.passes = self.products = 0
        self._double = False
        self._forget()

    def _forget(self) -> None:
        self._best: tuple[float, np.ndarray] | None = None  # the smallest P, and where
        self._lower: tuple[float, np.ndarray] | None = None  # the largest lower bound, and where

    def evaluate(self, posterior: Posterior, theta: np.ndarray) -> Evaluation:
        """One pass, for the solver to go on from; raises `Stop` when there is a reason to end."""
        found = self._pass(posterior, theta)
        if self._gap() <= self.tolerance:
            if self._in_double(posterior):
                self._stop(posterior, CERTIFIED)
            self._confirm(posterior)
        self._check_budget(posterior)
        return found

    def product(self, posterior: Posterior, theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """The Hessian times a vector; it counts as a pass, and may be the last one."""
        self._check_budget(posterior)
        self.products += 1
        return posterior.hessian_product(theta, vector, np.float64 if self._double else None)

    def block_product(self, blocks: Blocks, term: int, vector: np.ndarray) -> np.ndarray:
        """A block of the Hessian times a vector; counted like a product with the whole of it."""
        self._check_budget(blocks.posterior)
        self.products += 1
        return blocks.product(term, vector)

    def _check_budget(self, posterior: Posterior) -> None:
        if self.passes + self.products >= self.max_passes:
            self._stop(posterior, PASSES)
        if self._interrupted is not None and self._interrupted():
            self._stop(posterior, INTERRUPTED)

    def raise_precision(self, posterior: Posterior) -> NoReturn:
        """Called when a solver can make no more progress: it restarts in double precision, or ends."""
        if self._in_double(posterior):
            self._stop(posterior, PRECISION)
        best = self._best[1]
        self._double = True
        self._forget()
        raise Restart(best, self._pass(posterior, best))

    def _in_double(self, posterior: Posterior) -> bool:
        return self._double or posterior.dtype == np.float64

    def _gap(self) -> float:
        return relative_gap(self._best[0], self._lower[0])

    def _pass(self, posterior: Posterior, theta: np.ndarray) -> Evaluation:
        self.passes += 1
        found = posterior.evaluate(theta, np.float64 if self._double else None)
        if not np.isfinite(found.value):
            if self._best is None:
                raise NumericError("P is not finite at the starting point: scale the columns or lower sigma2")
            return found
        improved = self._best is None or found.value < self._best[0]
        if improved:
            self._best = (found.value, theta)
        if self._lower is None or found.lower > self._lower[0]:
            self._lower = (found.lower, theta)
        if self._observe is not None:
            best = theta if improved else None
            self._observe(Progress(self.passes, found.value, self._gap(), self._lower[0], self.products, best))
        return found

    def _confirm(self, posterior: Posterior) -> NoReturn:
        """Certify the best point in double precision; where that fails, the solver restarts from it."""
        best, lowest = self._best[1], self._lower[1]
        self._double = True
        self._forget()
        found = self._pass(posterior, best)
        if self._gap() > self.tolerance and lowest is not best:
            self._pass(posterior, lowest)
        if self._gap() <= self.tolerance:
            self._stop(posterior, CERTIFIED)
        raise Restart(best, found)

    def _stop(self, posterior: Posterior, reason: str) -> NoReturn:
        if not self._in_double(posterior):
            best = self._best[1]
            self._double = True
            self._forget()
            self._pass(posterior, best)
        value, theta = self._best
        raise Stop(SolverResult(theta, value, min(self._lower[0], value), self.passes, self.products, reason))


def until_stopped(
    descend: Callable[[Posterior, np.ndarray, Evaluation | None, Run], NoReturn],
    posterior: Posterior,
    theta: np.ndarray,
    run: Run,
) -> SolverResult:
    """Call `descend`, again from where a rise of precision left it, until the run stops it."""
    now = None
    while True:
        try:
            descend(posterior, theta, now, run)
        except Restart as restart:
            theta, now = restart.theta, restart.evaluation
        except Stop as stop:
            return stop.result
