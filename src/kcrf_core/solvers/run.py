"""What every solver shares: counting its work, the certificate, and when to stop.

A solver asks its `Run` for every evaluation of P. The run keeps the best point and the best lower bound seen
(Lemma 9 holds at each of them, and for combinations of several: see `bundle`), tells the observer, and ends the solver
by raising `Stop`. The value that is certified always comes from an evaluation in double precision.

Work is counted in passes over the whole problem: P and its gradient, or a product with the Hessian, is one where it
sees all columns of all maps; a pass over some of them, and a factorisation, is its share of the 4 N D C floating-point
operations that a pass takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from ..errors import NumericError
from ..objective import HessianBlocks, Point, Posterior, Vector
from ..system import Vectors
from .bundle import Bundle
from .line_search import line_search

CERTIFIED, PASSES, INTERRUPTED, PRECISION = "certified", "passes", "interrupted", "precision"
# Where P is not convex: the gradient is so small that it would be certified if it were.
STATIONARY = "stationary"
# Certified, but earlier parameters were kept, which are not.
BEST = "best"
# Certified before small weights were dropped, and no longer.
PRUNED = "pruned"

# Part of P that a bound from evaluations in single precision may be wrong by: they differ by a few parts in a million.
SINGLE_MARGIN = 1e-5

# Vectors that long are remembered in single precision while passes are: half the memory to hold and to go through.
LONG = 1 << 15

# Cliques whose label has less than this left to be something else are left out of blocks.
SETTLED = 1e-3


@dataclass(frozen=True)
class SolverResult:
    theta: Vector
    value: float  # P there, in double precision
    lower: float  # the best lower bound on min P; minus infinity where P is not convex
    passes: int  # evaluations of P and its gradient
    products: int  # products with the Hessian or a block of it
    steps: int  # line searches that found a new point
    work: float  # all of it, and factorisations, in passes over the whole problem
    reason: str  # why it stopped: one of the constants above
    gradient_norm: float  # at theta

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
    work: float
    theta: Vector | None = None  # where P is the smallest so far, and None elsewhere


def relative_gap(value: float, lower: float) -> float:
    """(P - lower) / lower, infinite while the bound says nothing."""
    if value <= lower:
        return 0.0
    return (value - lower) / lower if lower > 0 else np.inf


def moved(result: SolverResult, posterior: Posterior, theta: Vector, tolerance: float, reason: str) -> SolverResult:
    """The same at other parameters: with their own P, against the best lower bound of all.

    They count as certified only where it proves that they are; where they were and are no longer, `reason` says why.
    """
    found = posterior.evaluate(theta, np.float64)
    own = found.lower if posterior.convex else -np.inf
    lower = min(max(result.lower, own), found.value)
    certified = relative_gap(found.value, lower) <= tolerance
    return replace(
        result,
        theta=theta,
        value=found.value,
        lower=lower,
        passes=result.passes + 1,
        reason=reason if result.reason in (CERTIFIED, STATIONARY) and not certified else result.reason,
        gradient_norm=float(np.sqrt(posterior.vectors.dot(found.gradient, found.gradient))),
    )


class Stop(Exception):
    """Raised out of an evaluation when the run is over; carries its result."""

    def __init__(self, result: SolverResult):
        self.result = result


class Restart(Exception):
    """Raised out of an evaluation when the precision rises: go on from here, and forget all values before."""

    def __init__(self, theta: Vector, evaluation: Point):
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
        self.passes = self.products = self.steps = 0
        self.work = 0.0
        self._double = False
        self._forget()

    def _forget(self) -> None:
        self._best: tuple[float, Vector, float] | None = None  # the smallest P, where, and what it alone proves
        self._gradient_norm = np.inf  # there
        self._lower = -np.inf  # the largest lower bound, as the evaluations say
        self._proven = -np.inf  # the same less what their precision may hide
        self._bundle = Bundle()

    def watch(self, observe: Callable[[Progress], None]) -> None:
        """Tell of every pass from now on."""
        self._observe = observe

    def go_on(self, share: float) -> None:
        """Make ready for another fit that comes out of the same budget, from where the last one ended.

        `share` is the size of the old problem as a part of the new one, in whose passes work is counted from now on.
        What was proven about the old optimum does not hold for a problem with more columns, where it may be lower.
        """
        self.work *= share
        self._double = False
        self._forget()

    def evaluate(self, posterior: Posterior, theta: Vector) -> Point:
        """One pass, for the solver to go on from; raises `Stop` when there is a reason to end."""
        found = self._pass(posterior, theta)
        if not posterior.convex:
            if np.isfinite(found.value) and relative_gap(found.value, found.lower) <= self.tolerance:
                self._stop(posterior, STATIONARY)
        elif self._gap() <= self.tolerance:
            if self.in_double(posterior):
                self._stop(posterior, CERTIFIED)
            self._confirm(posterior)
        self._check_budget(posterior)
        return found

    def evaluate_part(self, part: Posterior, theta: Vector, posterior: Posterior, widened: Vector) -> Point:
        """A pass over fewer columns of the maps: P is that of `widened`, but the bound holds for these columns only."""
        self.passes += 1
        self.work += part.pass_size / posterior.pass_size
        found = part.evaluate(theta)
        self._keep(found.value, widened, -np.inf)
        self._check_budget(posterior)
        return found

    def search(
        self,
        evaluate: Callable[[Vector], Point],
        theta: Vector,
        now: Point,
        direction: Vector,
        slope: float,
        vectors: Vectors,
        first_step: float = 1.0,
    ) -> tuple[Vector, Point] | None:
        """A step along `direction`, down which P has this slope; None where rounding hides all progress."""
        found = line_search(evaluate, theta, now, direction, slope, first_step, vectors)
        self.steps += found is not None
        return found

    def product(self, posterior: Posterior, theta: Vector, vector: Vector) -> Vector:
        """The Hessian times a vector; it counts as a pass, and may be the last one."""
        self._check_budget(posterior)
        self.products += 1
        self.work += 1
        return posterior.hessian_product(theta, vector, np.float64 if self._double else None)

    def blocks(self, posterior: Posterior, theta: Vector, guess: bool = False) -> HessianBlocks:
        """Blocks of the Hessian at theta, for the scores of half a pass and what they take beyond that."""
        blocks = posterior.hessian_blocks(theta, guess, SETTLED)
        self.work += 0.5
        self.add_operations(posterior, blocks.operations)
        return blocks

    def block_product(self, blocks: HessianBlocks, term: int, vector: Vector) -> Vector:
        """A block of the Hessian times a vector; for the budget a product like any other."""
        posterior = blocks.posterior
        self._check_budget(posterior)
        self.products += 1
        self.work += blocks.share(term) * posterior.terms[term].product_size / posterior.pass_size
        return blocks.product(term, vector)

    def add_operations(self, posterior: Posterior, operations: float) -> None:
        """Floating-point operations outside passes and products, for the books."""
        self.work += operations / (4 * max(posterior.problem.positions, 1) * posterior.pass_size)

    def _check_budget(self, posterior: Posterior) -> None:
        if self.passes + self.products >= self.max_passes:
            self._stop(posterior, PASSES)
        if self._interrupted is not None and self._interrupted():
            self._stop(posterior, INTERRUPTED)

    def raise_precision(self, posterior: Posterior) -> NoReturn:
        """Called when a solver can make no more progress: it restarts in double precision, or ends."""
        if self.in_double(posterior):
            self._stop(posterior, PRECISION)
        best = self._best[1]
        self._double = True
        self._forget()
        raise Restart(best, self._pass(posterior, best))

    def in_double(self, posterior: Posterior) -> bool:
        """Whether passes are in double precision."""
        return self._double or posterior.dtype == np.float64

    def kept_dtype(self, posterior: Posterior) -> type:
        """Of steps and gradients that are remembered."""
        return np.float32 if posterior.size > LONG and not self.in_double(posterior) else np.float64

    def _gap(self) -> float:
        return relative_gap(self._best[0], self._lower)

    def _keep(self, value: float, theta: Vector, lower: float) -> None:
        """A value of P at theta and the bound it proves, for the books and the observer."""
        improved = self._best is None or value < self._best[0]
        if improved:
            self._best = (value, theta, lower)
        if self._observe is not None:
            best = theta if improved else None
            self._observe(Progress(self.passes, value, self._gap(), self._lower, self.products, self.work, best))

    def _pass(self, posterior: Posterior, theta: Vector) -> Point:
        self.passes += 1
        self.work += 1
        found = posterior.evaluate(theta, np.float64 if self._double else None)
        if not np.isfinite(found.value):
            if self._best is None:
                raise NumericError("P is not finite at the starting point: scale the columns or lower sigma2")
            return found
        if posterior.convex:
            margin = 0.0 if self.in_double(posterior) else SINGLE_MARGIN * abs(found.value)
            bound = self._bundle.add(posterior, theta, found, self.kept_dtype(posterior))
            self._proven = max(self._proven, bound - margin)
            self._lower = max(self._lower, found.lower, self._proven)
        if self._best is None or found.value <= self._best[0]:
            self._gradient_norm = float(np.sqrt(posterior.vectors.dot(found.gradient, found.gradient)))
        self._keep(found.value, theta, found.lower)
        return found

    def _confirm(self, posterior: Posterior) -> NoReturn:
        """Certify the best point in double precision; where that fails, the solver restarts from it.

        What was proven with a margin stays so, less what P and its own bound differ by, taken at the best point in both
        precisions; twice, for other points may be off by more.
        """
        single, best, single_lower = self._best
        proven = self._proven
        self._double = True
        self._forget()
        found = self._pass(posterior, best)
        differences = max(abs(found.value - single), abs(found.lower - single_lower))
        self._lower = self._proven = max(self._lower, proven - 2 * differences)
        if self._gap() <= self.tolerance:
            self._stop(posterior, CERTIFIED)
        raise Restart(best, found)

    def _stop(self, posterior: Posterior, reason: str) -> NoReturn:
        if not self.in_double(posterior) or not np.isfinite(self._gradient_norm):
            best = self._best[1]
            self._double = True
            self._forget()
            self._pass(posterior, best)
        value, theta, _ = self._best
        lower = min(self._lower, value)
        raise Stop(
            SolverResult(
                theta, value, lower, self.passes, self.products, self.steps, self.work, reason, self._gradient_norm
            )
        )


def until_stopped(
    descend: Callable[[Posterior, Vector, Point | None, Run], NoReturn],
    posterior: Posterior,
    theta: Vector,
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
