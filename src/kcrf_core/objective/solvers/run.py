"""The run of a solver: it counts work, keeps the certificate, and decides when to stop.

A solver asks its `Run` for every evaluation of P. The run keeps the best point and the best lower bound seen (Lemma 9,
or a combination of several: see `bundle`), reports to the observer, and ends the solver by raising `Stop`. What is
certified is proven first: P and the points of the bound are evaluated once more in double precision, and the rounding
error is subtracted. Where the proof fails by little, the solver goes on for a few passes; else in double precision.

Work is counted in passes over all columns of all maps, of 4 N D C floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Protocol

import numpy as np

from ...chains import Problem
from ...errors import NumericError
from .. import HessianBlocks, Objective, Point, Vector, Vectors
from .bundle import Bound, Bundle, Combination

CERTIFIED, PASSES, INTERRUPTED, PRECISION = "certified", "passes", "interrupted", "precision"
# Where P is not convex: the gradient is so small that it would be certified if it were.
STATIONARY = "stationary"
# Certified before small weights were dropped, and no longer.
PRUNED = "pruned"

# Relative error of a bound from several points in single precision: they differ by a few parts in a million.
SINGLE_MARGIN = 1e-5

# The default tolerance: a share of P, or so many nats per 1,000 positions where that is more. With a weak prior P is
# small, and the last passes exchange a few labels for others that are as good: experiments/solvers has figures.
SHARE, NATS_PER_1000 = 1e-3, 3e-3

# A proof that fails by less than this part of the tolerance is tried again a little later, so often.
NEARLY, MOST_ATTEMPTS = 0.5, 3

# With an L1 penalty and an infinite sigma2 entropies of mixtures are worked out once the gap without them is so many
# times the tolerance, and again whenever it is so much smaller.
WORTH_MIXING, NEARER = 100, 0.9

# Vectors that long are remembered in single precision while passes are: half the memory to hold and to go through.
LONG = 1 << 15

# The weak Wolfe conditions of a line search, and how many points it tries.
SUFFICIENT_DECREASE, CURVATURE, MOST_TRIALS = 1e-4, 0.9, 20

# Cliques whose label is that nearly deterministic are left out of blocks.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class SolverResult:
    """The best parameters of a run, with its certificate and its work."""

    theta: Vector
    value: float  # P there, in double precision
    lower: float  # the best proven lower bound on min P; minus infinity where P is not convex
    passes: int  # evaluations of P and its gradient
    products: int  # products with the Hessian or a block of it
    steps: int  # line searches that found a new point
    work: float  # all of it, and factorisations, in passes over the whole problem
    reason: str  # why it stopped: one of the constants above
    gradient_norm: float  # at theta
    gap: float = field(init=False)  # the certified relative gap

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", relative_gap(self.value, self.lower))


@dataclass(frozen=True)
class Progress:
    """One more pass of a solver, for an observer. Bounds are those that passes seem to give: nothing is proven yet."""

    passes: int
    value: float
    gap: float
    lower: float  # the best lower bound so far
    products: int
    work: float
    theta: Vector | None = None  # where P is the smallest so far, and None elsewhere
    gradient: Vector | None = None  # of P there, without an L1 penalty
    tolerance: float = 0.0  # the gap at which the run is to end


def relative_gap(value: float, lower: float) -> float:
    """Return (P - lower) / lower, infinite while the bound is not positive."""
    if value <= lower:
        return 0.0
    return (value - lower) / lower if lower > 0 else np.inf


@dataclass(frozen=True)
class Tolerance:
    """The gap P - lower at which a run ends: a share of the lower bound, or so many nats where that is more."""

    share: float
    nats: float = 0.0

    @classmethod
    def of(cls, share: float | None, problem: Problem) -> Tolerance:
        """Return a given share alone, or the default, which depends on the number of positions."""
        if share is not None:
            return cls(share)
        return cls(SHARE, NATS_PER_1000 / 1000 * float(problem.position_weights().sum()))

    def relative(self, lower: float) -> float:
        """Return it as a share of a lower bound."""
        return max(self.share, self.nats / lower) if lower > 0 else self.share

    def reached(self, value: float, lower: float) -> bool:
        return relative_gap(value, lower) <= self.relative(lower)


def moved(result: SolverResult, objective: Objective, theta: Vector, tolerance: Tolerance, reason: str) -> SolverResult:
    """Return the result at other parameters: with their own P, against the best lower bound of all.

    They count as certified only where that bound proves it; where it no longer does, the result gets `reason`.
    """
    found = objective.proven(theta)
    own = found.lower if objective.convex else -np.inf
    lower = min(max(result.lower, own), found.value)
    certified = tolerance.reached(found.value, lower)
    return replace(
        result,
        theta=theta,
        value=found.value,
        lower=lower,
        passes=result.passes + 1,
        reason=reason if result.reason in (CERTIFIED, STATIONARY) and not certified else result.reason,
        gradient_norm=objective.gradient_length(theta, found),
    )


class Stop(Exception):
    """Raised out of an evaluation when the run is over; carries its result."""

    def __init__(self, result: SolverResult):
        self.result = result


class Restart(Exception):
    """Raised out of an evaluation when the precision rises: go on from here, and forget all values before."""

    def __init__(self, objective: Objective, theta: Vector, evaluation: Point):
        self.objective, self.theta, self.evaluation = objective, theta, evaluation


@dataclass(frozen=True)
class _Best:
    """The point where P is the smallest so far."""

    value: float
    theta: Vector
    found: Point | None  # None where a pass over a part of the columns found it


class Keeper(Protocol):
    """A place for parameters of a fit under way, from which another process can go on."""

    def due(self) -> bool: ...  # True when it is time to keep some

    def keep(self, theta: Vector, counters: dict[str, Any]) -> None: ...  # in the place of the last ones


COUNTERS = ("passes", "products", "steps", "work")  # attributes of a run that are carried on from fit to fit


class Run:
    """The budget and the books of one minimisation.

    One that `proves` nothing ends on what passes seem to give: enough for fits that only guide a choice.
    """

    def __init__(
        self,
        tolerance: float | Tolerance,
        max_passes: int,
        observe: Callable[[Progress], None] | None = None,
        interrupted: Callable[[], bool] | None = None,
        proves: bool = True,
    ):
        self.tolerance = tolerance if isinstance(tolerance, Tolerance) else Tolerance(tolerance)
        self.max_passes, self.proves = max_passes, proves
        self.observe, self._interrupted = observe, interrupted
        self.keeper: Keeper | None = None  # gets the best parameters of a fit now and then
        self.passes = self.products = self.steps = 0
        self.work = 0.0
        self._begin()

    def _begin(self) -> None:
        self._proven = -np.inf  # the largest lower bound that is proven
        self._attempts, self._strictness = 0, 1.0  # proofs that failed, and the part of the tolerance to aim at
        self._forget()

    def _forget(self) -> None:
        self._best: _Best | None = None
        self._lower = self._proven  # the largest lower bound, as the evaluations say
        self._bound: Bound | None = None  # where a combination of points gave it
        self._bundle = Bundle()
        self._mixed_gap = np.inf  # of the last bound that gold labellings were mixed into, without that

    def counters(self) -> dict[str, Any]:
        """Return what a later fit of the same run depends on."""
        return {name: getattr(self, name) for name in COUNTERS}

    def restore_counters(self, counters: dict[str, Any]) -> None:
        """Go on after a fit, or a part of one, that ended with these counters."""
        for name in COUNTERS:
            setattr(self, name, counters[name])

    def go_on(self, share: float) -> None:
        """Prepare for another fit with the rest of the budget, from where the last one ended.

        `share` is the size of the old problem relative to the new one, in whose passes work is counted from now on.
        What was proven about the old optimum does not hold for a problem with more columns, where it may be lower.
        """
        self.work *= share
        self._begin()

    def evaluate(self, objective: Objective, theta: Vector) -> Point:
        """Evaluate P and its gradient in one pass; raise `Stop` when there is a reason to end."""
        found = self._pass(objective, theta)
        if not objective.convex:
            if np.isfinite(found.value) and self.tolerance.reached(found.value, found.lower):
                self._stop(objective, STATIONARY)
        elif self._gap() <= self._strictness * self._aim():
            self._confirm(objective)
        self._check_budget(objective)
        return found

    def evaluate_part(self, part: Objective, theta: Vector, objective: Objective, widened: Vector) -> Point:
        """Evaluate P on fewer columns of the maps: it is P at `widened`, but the bound holds for these columns only."""
        self.passes += 1
        self.work += part.pass_size / objective.pass_size
        found = part.evaluate(theta)
        self._keep(found.value, widened, None)
        self._check_budget(objective)
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
        """Step along `direction`, where P has this slope, to a point that meets the weak Wolfe conditions.

        Bracketing with cubic interpolation; nearly always the first try is accepted. None where rounding hides all
        progress.
        """
        step, low, low_value, low_slope = first_step, 0.0, now.value, slope
        high = None
        for _ in range(MOST_TRIALS):
            point = vectors.stepped(theta, step, direction)
            found = evaluate(point)
            new_slope = vectors.dot(found.gradient, direction)
            if found.value > now.value + SUFFICIENT_DECREASE * step * slope or not np.isfinite(found.value):
                high = (step, found.value, new_slope)
            elif new_slope < CURVATURE * slope:
                low, low_value, low_slope = step, found.value, new_slope
            else:
                self.steps += 1
                return point, found
            if high is None:
                step *= 4.0
            else:
                step = cubic_minimum(low, low_value, low_slope, *high)
                if step - low < 1e-12 * max(high[0], 1.0):
                    return None
        return None

    def product(self, objective: Objective, theta: Vector, vector: Vector) -> Vector:
        """Multiply the Hessian by a vector; it counts as a pass, and may be the last one."""
        self._check_budget(objective)
        self.products += 1
        self.work += 1
        return objective.hessian_product(theta, vector)

    def blocks(self, objective: Objective, theta: Vector, diagonals: bool = False) -> HessianBlocks:
        """Return blocks of the Hessian at theta: the scores of half a pass, and their own operations."""
        blocks = objective.hessian_blocks(theta, diagonals, NEGLIGIBLE)
        self.work += 0.5
        self.add_operations(objective, blocks.operations)
        return blocks

    def block_product(self, blocks: HessianBlocks, term: int, vector: Vector) -> Vector:
        """Multiply a block of the Hessian by a vector; for the budget a product like any other."""
        objective = blocks.objective
        self._check_budget(objective)
        self.products += 1
        size = objective.terms[term].rows * objective.terms[term].columns
        self.work += blocks.share(term) * size / objective.pass_size
        return blocks.product(term, vector)

    def add_operations(self, objective: Objective, operations: float) -> None:
        """Count floating-point operations outside passes and products as work."""
        self.work += operations / (4 * max(objective.problem.positions, 1) * objective.pass_size)

    def _check_budget(self, objective: Objective) -> None:
        if self.passes + self.products >= self.max_passes:
            self._stop(objective, PASSES)
        interrupted = self._interrupted is not None and self._interrupted()
        if self.keeper is not None and self._best is not None and (interrupted or self.keeper.due()):
            self.keeper.keep(self._best.theta, self.counters())
        if interrupted:
            self._stop(objective, INTERRUPTED)

    def raise_precision(self, objective: Objective) -> NoReturn:
        """Restart in double precision, or end: for a solver that can make no more progress."""
        if objective.dtype == np.float64 or not self.proves:
            self._stop(objective, PRECISION)
        best, double = self._best_so_far.theta, objective.in_double(held=True)
        self._forget()
        raise Restart(double, best, self._pass(double, best))

    def kept_dtype(self, objective: Objective) -> type:
        """Return the precision of steps and gradients that are remembered."""
        return np.float32 if objective.size > LONG and objective.dtype != np.float64 else np.float64

    @property
    def _best_so_far(self) -> _Best:
        assert self._best is not None, "nothing was evaluated"
        return self._best

    def _gap(self) -> float:
        return relative_gap(self._best_so_far.value, self._lower)

    def _aim(self) -> float:
        return self.tolerance.relative(self._lower)

    def _keep(self, value: float, theta: Vector, found: Point | None) -> None:
        """Take up a value of P at theta, and report it."""
        if self._best is None or value < self._best.value:
            self._best = _Best(value, theta, found)
            self._tell(value, theta, found and found.gradient)
        else:
            self._tell(value)

    def _tell(self, value: float, theta: Vector | None = None, gradient: Vector | None = None) -> None:
        if self.observe is not None:
            state = value, self._gap(), self._lower, self.products, self.work
            self.observe(Progress(self.passes, *state, theta, gradient, self._aim()))

    def _pass(self, objective: Objective, theta: Vector) -> Point:
        self.passes += 1
        self.work += 1
        found = objective.evaluate(theta)
        if not np.isfinite(found.value):
            if self._best is None:
                raise NumericError("P is not finite at the starting point: scale the columns or lower sigma2")
            return found
        if objective.convex:
            margin = 0.0 if objective.dtype == np.float64 else SINGLE_MARGIN * abs(found.value)
            bound = None
            if objective.thresholds is None or sparse_bound_due(self.passes):
                bound = self._bundle.add(objective, theta, found, self.kept_dtype(objective))
            bound = self._mixed(objective, bound)
            self._lower = max(self._lower, found.lower)
            if bound is not None and bound.value - margin > self._lower:
                self._lower, self._bound = bound.value - margin, bound
        self._keep(found.value, theta, found)
        return found

    def _mixed(self, objective: Objective, bound: Bound | None) -> Bound | None:
        """Add the entropy of mixtures with gold labellings to a bound, where that is needed and may be enough.

        It takes a pass for each new one of its points: so it is done only as the bound without it gets better.
        """
        if bound is None or not objective.mixes or bound.value <= 0:
            return bound
        gap = relative_gap(min(bound.parts[-1].value, self._best.value if self._best else np.inf), bound.value)
        if gap > min(WORTH_MIXING * self._aim(), NEARER * self._mixed_gap):
            return bound
        self._mixed_gap = gap
        value, looked_at = self._bundle.mixed(objective, bound)
        self.work += looked_at
        return replace(bound, value=value)

    def _confirm(self, objective: Objective) -> None:
        """Stop if the best point is proven to be near enough; else go on, in double precision where it takes that."""
        if not self.proves:
            self._stop(objective, CERTIFIED)
        exact, found, lower = self._prove(objective)
        gap, theta = relative_gap(found.value, lower), self._best_so_far.theta
        if self.tolerance.reached(found.value, lower):
            self._end(found.value, lower, CERTIFIED, exact.gradient_length(theta, found))
        if objective.dtype == np.float64:
            return  # rounding hides what is missing; the solver goes on while it can
        missing = (gap - self._gap()) / self._aim()
        self._attempts += 1
        if missing < NEARLY and self._attempts <= MOST_ATTEMPTS:
            self._strictness = min(1 - 2 * missing, 0.95 * self._strictness)
            return
        self._forget()
        double = objective.in_double(held=True)
        self._bundle.add(double, theta, found)
        self._best = _Best(found.value, theta, found)
        raise Restart(double, theta, found)

    def _prove(self, objective: Objective) -> tuple[Objective, Point, float]:
        """Return P in double precision, its best point there, and the largest lower bound that is proven."""
        exact, best = objective.in_double(), self._best_so_far
        if exact is objective and best.found is not None:
            found, bound = best.found, -np.inf if self._bound is None else self._bound.proven(exact)
        else:
            found, bound = self._evaluated_again(exact, best)
        if objective.convex:
            self._proven = max(self._proven, exact.proven_bound(best.theta, found), bound)
        return exact, found, min(self._proven, found.value)

    def _evaluated_again(self, exact: Objective, best: _Best) -> tuple[Point, float]:
        """Evaluate the best point in double precision, and the bound of the bundle's combination of points."""
        parts = [] if self._bound is None or not exact.convex else self._bound.parts
        others = [part for part in parts if part.value != best.value]
        shares = [math.fsum(part.share for part in parts if part.value == best.value), *(part.share for part in others)]
        thetas = [best.theta, *(part.theta for part in others)]
        combination = Combination(exact)
        kept: Point | None = None
        for theta, share, found in zip(thetas, shares, exact.evaluate_all(thetas), strict=True):
            if share > 0:
                combination.add(theta, found, share)
            kept = found if kept is None else kept
            self.passes += 1
            self.work += 1
            self._tell(found.value)
        assert kept is not None  # there is the best point, at least
        return kept, combination.proven() if parts else -np.inf

    def _stop(self, objective: Objective, reason: str) -> NoReturn:
        """End at the best point, with what can be proven about it."""
        if not self.proves:
            self._end(self._best_so_far.value, -np.inf, reason, np.inf)
        exact, found, lower = self._prove(objective)
        self._end(found.value, lower, reason, exact.gradient_length(self._best_so_far.theta, found))

    def _end(self, value: float, lower: float, reason: str, gradient_norm: float) -> NoReturn:
        work = self.passes, self.products, self.steps, self.work
        raise Stop(SolverResult(self._best_so_far.theta, value, lower, *work, reason, gradient_norm))


def sparse_bound_due(passes: int) -> bool:
    """Return True if a bound with an L1 penalty is worked out after so many passes: each up to 16, each 8th from 64.

    It takes as long as several passes. The passes that this adds to a run are at most an eighth.
    """
    return passes % (1 << max(passes.bit_length() - 4, 0)) == 0


def cubic_minimum(a: float, fa: float, da: float, b: float, fb: float, db: float) -> float:
    """Return the minimum of the cubic through two points with their slopes, kept off the ends of the interval."""
    if not (np.isfinite(fb) and np.isfinite(db)):
        return a + 0.1 * (b - a)
    d1 = da + db - 3 * (fa - fb) / (a - b)
    inside = d1 * d1 - da * db
    d2 = np.sqrt(max(inside, 0.0))
    if inside < 0 or db - da + 2 * d2 == 0:
        return 0.5 * (a + b)
    point = b - (b - a) * (db + d2 - d1) / (db - da + 2 * d2)
    return min(max(point, a + 0.1 * (b - a)), a + 0.9 * (b - a))


def until_stopped(
    descend: Callable[[Objective, Vector, Point | None, Run], NoReturn], objective: Objective, theta: Vector, run: Run
) -> SolverResult:
    """Call `descend`, again from where a rise of precision left it, until the run stops it."""
    now = None
    while True:
        try:
            descend(objective, theta, now, run)
        except Restart as restart:
            objective, theta, now = restart.objective, restart.theta, restart.evaluation
        except Stop as stop:
            return stop.result
