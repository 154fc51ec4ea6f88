"""The tolerance of a fit, the reasons why it stops, and its result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...chains import Problem
from .. import Objective, Vector

CERTIFIED, PASSES, INTERRUPTED, PRECISION = "certified", "passes", "interrupted", "precision"
# Where P is not convex: the gradient is so small that it would be certified if it were.
STATIONARY = "stationary"
# Certified before small weights were dropped, and no longer.
PRUNED = "pruned"

# The default tolerance: a share of P, or so many nats per 1,000 positions where that is more. With a weak prior P is
# small, and the last passes exchange a few labels for others that are as good: experiments/solvers has figures.
SHARE, NATS_PER_1000 = 1e-3, 3e-3


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


def moved(result: SolverResult, objective: Objective, theta: Vector, tolerance: Tolerance, reason: str) -> SolverResult:
    """Return the result at other parameters: with their own P, against the best lower bound of all.

    They count as certified only where that bound proves it; where it no longer does, the result gets `reason`.
    """
    point = objective.proven(theta)
    lower = min(max(result.lower, point.lower if objective.convex else -np.inf), point.value)
    certified = tolerance.reached(point.value, lower)
    return replace(
        result,
        theta=theta,
        value=point.value,
        lower=lower,
        passes=result.passes + 1,
        reason=reason if result.reason in (CERTIFIED, STATIONARY) and not certified else result.reason,
        gradient_norm=objective.gradient_length(theta, point),
    )
