"""The certificate of a fit: its best point, and the largest lower bound on min P.

Passes give bounds, but for rounding: Lemma 9, or a combination of several points (`bundle`). For a proof, P and the
points of the bound are evaluated once more in double precision, and the rounding error is subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from .. import Objective, Point, Vector
from .bundle import Bound, Bundle, BundlePart, Combination, NonzeroParameters, whole
from .stopping import Tolerance, relative_gap

# With an L1 penalty and an infinite sigma2 entropies of mixtures are worked out once the gap without them is so many
# times the tolerance, and again whenever it is so much smaller.
WORTH_MIXING, NEARER = 100, 0.9

EvaluateAll: TypeAlias = Callable[[Objective, Sequence[Vector]], Iterator[Point]]


@dataclass(frozen=True)
class BestPoint:
    """The parameters where P is the smallest so far."""

    value: float
    kept: Vector | NonzeroParameters
    point: Point | None  # None where a pass over a part of the parameters found them

    @property
    def theta(self) -> Vector:
        return whole(self.kept)


@dataclass(frozen=True)
class Proof:
    """P in double precision at the best parameters, and the largest lower bound that is proven."""

    point: Point
    lower: float
    gradient_norm: float


class FitCertificate:
    """The best point and the best lower bound of a fit so far."""

    def __init__(self, proven: float = -np.inf):
        self.proven = proven  # the largest lower bound that is proven
        self.lower = proven  # the largest lower bound, as the evaluations say
        self._best: BestPoint | None = None
        self._bound: Bound | None = None  # where a combination of points gave it
        self._bundle = Bundle()
        self._mixed_gap = np.inf  # of the last bound that gold labellings were mixed into, without that

    @property
    def begun(self) -> bool:
        return self._best is not None

    @property
    def best(self) -> BestPoint:
        assert self._best is not None, "nothing was evaluated"
        return self._best

    def gap(self) -> float:
        """Return the relative gap of the best point, as the evaluations say."""
        return relative_gap(self.best.value, self.lower)

    def keep(self, value: float, theta: Vector | NonzeroParameters, point: Point | None) -> bool:
        """Take up a value of P at theta; return True if it is the smallest so far."""
        if self._best is None or value < self._best.value:
            self._best = BestPoint(value, theta, point)
            return True
        return False

    def begin_at(self, objective: Objective, theta: Vector, point: Point) -> None:
        """Begin with a point that was evaluated for a proof."""
        self._bundle.add(objective, theta, point)
        self.keep(point.value, theta, point)

    def add_bounds(self, objective: Objective, theta: Vector, point: Point, tolerance: Tolerance) -> int:
        """Take up the bounds of a pass; return how many more passes that took.

        The entropy of mixtures with gold labellings takes one: it is added where some sigma^2 is infinite and it may be
        enough, and only as the bound without it gets better.
        """
        bound, passes = self._bundle.add(objective, theta, point), 0
        if bound is not None and bound.dual is not None and not np.isfinite(objective.sigma2).all():
            gap = relative_gap(min(point.value, self._best.value if self._best else np.inf), bound.value)
            if gap <= min(WORTH_MIXING * tolerance.relative(self.lower), NEARER * self._mixed_gap):
                self._mixed_gap, passes = gap, 1
                bound = replace(bound, value=bound.dual.bound(mixture=objective.mixture([theta], [1.0])))
        self.lower = max(self.lower, point.lower)
        if bound is not None and bound.value >= self.lower:
            self.lower, self._bound = bound.value, bound
        return passes

    def prove(self, objective: Objective, evaluate_all: EvaluateAll) -> Proof:
        """Evaluate the best point in double precision, and prove a lower bound."""
        exact, theta = objective.in_double(), objective.vectors.cast(self.best.theta, np.float64)
        self._best = best = replace(self.best, kept=theta)
        if exact is objective and best.point is not None:
            point, bound = best.point, -np.inf if self._bound is None else self._bound.proven(exact)
        else:
            point, bound = self._evaluated_again(exact, evaluate_all)
        if objective.convex:
            self.proven = max(self.proven, exact.proven_bound(best.theta, point), bound)
        return Proof(point, min(self.proven, point.value), exact.gradient_length(best.theta, point))

    def _evaluated_again(self, exact: Objective, evaluate_all: EvaluateAll) -> tuple[Point, float]:
        """Evaluate the best point in double precision, and a bound by the points of the bundle's combination.

        With an L1 penalty their shares are chosen anew: the bound is sensitive to which slopes are just beyond c.
        """
        best = self.best
        parts = [] if self._bound is None or not exact.convex else self._bound.parts
        share = math.fsum(part.share for part in parts if part.value == best.value)
        needed = [BundlePart(best.kept, share, best.value), *(part for part in parts if part.value != best.value)]
        combination, bound = Combination(exact), None
        bundle = Bundle(self._bound.dual.places) if parts and self._bound and self._bound.dual else None
        points: list[Point] = []
        nested = any(term.nested for term in exact.terms)  # then there is one pass for all
        for some in [needed] if nested else [[part] for part in needed]:
            thetas = [part.theta for part in some]
            for part, theta, point in zip(some, thetas, evaluate_all(exact, thetas), strict=True):
                if bundle is not None:
                    bound = bundle.add(exact, theta, point)
                elif part.share > 0:
                    combination.add(theta, point, part.share)
                points = points or [point]  # the first alone: gradients are long
            del thetas, theta, point
        return points[0], combination.proven() if bound is None else bound.proven(exact)
