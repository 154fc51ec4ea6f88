"""The run of a solver: it counts work and ends the solver.

A solver asks its `Run` for every evaluation of P, and returns when it can make no more progress. The run takes points
up in a `FitCertificate`, reports to the observer, and raises `Stop` when the best point is near enough to the optimum
or the budget is spent. Nothing is certified before it is proven. Where the proof fails by little, the solver goes on
for a few passes; else it begins again in double precision (`until_stopped`).

Work is counted in passes over all columns of all maps, of 4 N D C floating-point operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..._lazy import cached_property
from ...errors import NumericError
from .. import HessianBlocks, Objective, Point, Vector
from .bundle import NonzeroParameters, whole
from .certificate import FitCertificate, Proof
from .stopping import CERTIFIED, INTERRUPTED, PASSES, PRECISION, STATIONARY, SolverResult, Tolerance, relative_gap

# A proof that fails by less than this part of the tolerance is tried again a little later, so often, once the gap is
# smaller by what was missing times this margin.
NEARLY, MOST_ATTEMPTS, MARGIN = 0.5, 3, 1.25

# Cliques whose label is that nearly deterministic are left out of blocks.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Progress:
    """One more pass of a solver, for an observer. Bounds are those that passes seem to give: nothing is proven yet."""

    passes: int
    value: float
    gap: float
    lower: float  # the best lower bound so far
    products: int
    work: float
    kept: Vector | NonzeroParameters | None = None  # parameters where P is the smallest so far, and None elsewhere
    gradient: Vector | None = None  # of P there, for the parameters of the pass, without an L1 penalty
    tolerance: float = 0.0  # the gap at which the run is to end
    proof: bool = False  # an earlier point, evaluated again in double precision

    @cached_property
    def theta(self) -> Vector | None:
        return whole(self.kept)


class Stop(Exception):
    """Raised out of an evaluation when the solver is to end, for a reason; PRECISION: single is not enough."""

    def __init__(self, reason: str, proof: Proof | None = None):
        self.reason, self.proof = reason, proof


class Keeper(Protocol):
    """A place for parameters of a fit under way, from which another process can go on."""

    def due(self) -> bool: ...  # True when it is time to keep some

    def keep(self, theta: Vector, counters: dict[str, Any]) -> None: ...  # in the place of the last ones


COUNTERS = ("passes", "products", "steps", "work")  # attributes of a run that are carried on from fit to fit


class Run:
    """The budget and the work of one minimisation.

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
        self._certificate = FitCertificate()
        self._attempts, self._strictness = 0, 1.0  # proofs that failed, and the part of the tolerance to aim at

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
        point = self._pass(objective, theta)
        if not objective.convex:
            if np.isfinite(point.value) and self.tolerance.reached(point.value, point.lower):
                raise Stop(STATIONARY)
        elif self._certificate.gap() <= self._strictness * self.aim():
            self._confirm(objective)
        self._check_budget()
        return point

    def evaluate_part(self, part: Objective, theta: Vector, share: float, widened: Vector | NonzeroParameters) -> Point:
        """Evaluate P of some parameters, in a share of a pass.

        It is P at `widened`, with all of them, but the bound holds for these alone.
        """
        self.passes += 1
        self.work += share
        point = part.evaluate(theta)
        self._keep(point.value, widened, None, point.gradient)
        self._check_budget()
        return point

    def product(self, objective: Objective, theta: Vector, vector: Vector) -> Vector:
        """Multiply the Hessian by a vector; it counts as a pass, and may be the last one."""
        self._check_budget()
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
        self._check_budget()
        self.products += 1
        size = objective.terms[term].rows * objective.terms[term].columns
        self.work += blocks.share(term) * size / objective.pass_size
        return blocks.product(term, vector)

    def add_operations(self, objective: Objective, operations: float) -> None:
        """Count floating-point operations outside passes and products as work."""
        self.work += operations / (4 * max(objective.problem.positions, 1) * objective.pass_size)

    def restart(self, objective: Objective, proof: Proof | None) -> tuple[Vector, Point]:
        """Return the best parameters and P there in a higher precision, and forget all values before."""
        theta = self._certificate.best.theta
        self._certificate = FitCertificate(self._certificate.proven)
        if proof is None:
            return theta, self._pass(objective, theta)
        self._certificate.begin_at(objective, theta, proof.point)
        return theta, proof.point

    def result(self, objective: Objective, reason: str, proof: Proof | None) -> SolverResult:
        """Return the best point, with what can be proven about it."""
        if proof is None and self.proves:
            proof = self._certificate.prove(objective, self._evaluate_all)
        best, work = self._certificate.best, (self.passes, self.products, self.steps, self.work)
        theta = objective.vectors.cast(best.theta, np.float64)
        if proof is None:
            return SolverResult(theta, best.value, -np.inf, *work, reason, np.inf)
        return SolverResult(theta, proof.point.value, proof.lower, *work, reason, proof.gradient_norm)

    def _check_budget(self) -> None:
        if self.passes + self.products >= self.max_passes:
            raise Stop(PASSES)
        interrupted = self._interrupted is not None and self._interrupted()
        if self.keeper is not None and self._certificate.begun and (interrupted or self.keeper.due()):
            self.keeper.keep(self._certificate.best.theta, self.counters())
        if interrupted:
            raise Stop(INTERRUPTED)

    def _confirm(self, objective: Objective) -> None:
        """Stop if the best point is proven to be near enough, or if it takes double precision to go on."""
        if not self.proves:
            raise Stop(CERTIFIED)
        proof = self._certificate.prove(objective, self._evaluate_all)
        if self.tolerance.reached(proof.point.value, proof.lower):
            raise Stop(CERTIFIED, proof)
        if objective.dtype == np.float64:
            return  # rounding hides what is missing; the solver goes on while it can
        missing = (relative_gap(proof.point.value, proof.lower) - self._certificate.gap()) / self.aim()
        self._attempts += 1
        if missing >= NEARLY or self._attempts > MOST_ATTEMPTS:
            raise Stop(PRECISION, proof)
        self._strictness = min(1 - MARGIN * missing, 0.95 * self._strictness)

    def aim(self) -> float:
        """Return the relative gap that is enough."""
        return self.tolerance.relative(self._certificate.lower)

    def _pass(self, objective: Objective, theta: Vector) -> Point:
        self.passes += 1
        self.work += 1
        point = objective.evaluate(theta)
        if not np.isfinite(point.value):
            if not self._certificate.begun:
                raise NumericError("P is not finite at the starting point: scale the columns or lower sigma2")
            return point
        if objective.convex:
            self.work += self._certificate.add_bounds(objective, theta, point, self.tolerance)
        self._keep(point.value, theta, point, point.gradient)
        return point

    def _evaluate_all(self, objective: Objective, thetas: Sequence[Vector]) -> Iterator[Point]:
        """Evaluate several points, going through the data once."""
        for point in objective.evaluate_all(thetas):
            self.passes += 1
            self.work += 1
            self._report(point.value, proof=True)
            yield point

    def _keep(self, value: float, theta: Vector | NonzeroParameters, point: Point | None, gradient: Vector) -> None:
        """Take up a value of P at theta, and report it."""
        if self._certificate.keep(value, theta, point):
            self._report(value, theta, gradient)
        else:
            self._report(value)

    def _report(
        self,
        value: float,
        theta: Vector | NonzeroParameters | None = None,
        gradient: Vector | None = None,
        proof: bool = False,
    ) -> None:
        if self.observe is not None:
            state = value, self._certificate.gap(), self._certificate.lower, self.products, self.work
            self.observe(Progress(self.passes, *state, theta, gradient, self.aim(), proof))


def until_stopped(
    descend: Callable[[Objective, Vector, Point | None, Run], None], objective: Objective, theta: Vector, run: Run
) -> SolverResult:
    """Call `descend` until the run stops it; where that takes double precision, again from the best point."""
    now = None
    while True:
        try:
            descend(objective, theta, now, run)
            reason, proof = PRECISION, None  # it can make no more progress
        except Stop as stop:
            reason, proof = stop.reason, stop.proof
        if reason != PRECISION or objective.dtype == np.float64 or not run.proves:
            return run.result(objective, reason, proof)
        objective = objective.in_double(held=True)
        theta, now = run.restart(objective, proof)
