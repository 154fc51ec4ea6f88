"""Proximal quasi-Newton steps, for P with an L1 penalty; without one `lbfgs` takes the same steps sooner.

A step goes to the minimum of a model: the gradient and the curvature of limited-memory BFGS for what is smooth about P,
and the penalty as it is, over a `WorkingSet` of parameters. A line search follows (Lee, Sun and Saunders 2014). The
initial curvature is a power of the Hessian's diagonal, taken anew on the way.

Once the working set is a small part of all parameters most passes do without the others: going through long vectors
costs as much as the rest of a pass, and threads gain little there. Passes with all parameters give the bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from ...errors import NumericError
from ...system import hand_back
from .. import HostVectors, Objective, Point, Vector
from .bundle import NonzeroParameters, kept_dtype
from .initial_inverse import current_curvature
from .lbfgs import FIRST_RENEWAL, RENEWAL_GROWTH
from .run import Run
from .sampled_model import SampledModel, affordable, sampled_matrix, slope_along
from .stopping import relative_gap
from .working_set import WorkingSet

SUFFICIENT_DECREASE, SHORTER, MOST_TRIALS = 1e-4, 0.4, 20

# Parameters that join the working set before one step, at most, and as a part of all: those whose slopes are furthest
# beyond their thresholds. At first most slopes are beyond, and few of the parameters are not zero in the end.
MOST_NEW, FEWEST_NEW, NEW_SHARE = 1 << 16, 1 << 12, 1 / 32
# Curvatures below this part of the largest one are taken for that: columns that no data has.
LEAST_CURVATURE = 1e-10
# P after 160 passes by the power of the curvature, 1/2, 0.65, 3/4 and 1: 506, 488, 483 and 480 (a twentieth of GROBID's
# header); gap after 60 passes: 0.0071, 0.0062, 0.0100 and 0.0308 (2,000 sentences of CoNLL-2000, c1 and c2 0.1).
POWER = 0.65
# So many steps are taken with the working set alone, at most, where that is no more than this part of all parameters;
# fewer where the gap of its own parameters is now so much smaller: that of all may be, too. Passes to a gap of 0.1
# with 40 and 20 steps: 898 and 947 (a fifth of GROBID's header, c1 0.5).
STEPS_ALONE, SMALL, SMALLER = 40, 1 / 16, 0.8
# Steps by a sampled Hessian go on until the gap of members is this part of what it was, or of the one to be reached;
# then, or after so many, there is another sample. Where their gap is below so many times that one, passes over all
# parameters follow each: bounds of several points are nearer. Seconds for these steps of header on 16 threads: 93 with
# 40 steps and 8 labellings a parameter, 69 with 12 and 20, 62 with 12 and 16, and 200 times in place of 20.
NEARER, ENOUGH, STEPS_BY_SAMPLES, CLOSE = 0.1, 0.75, 12, 200
# Rounding to single precision changes P by up to this part of it. Where that hides what a step gains, it is taken if P
# rises at its end by no more than this part of the slope by which it fell at first. Passes to a gap of 0.001 without
# this and with it: 2,289 and 1,426 (30 documents of header).
HIDDEN, STEEPEST = 1e-6, 0.8


def descend(objective: Objective, theta: Vector, now: Point | None, run: Run) -> None:
    """Take steps until the run stops them, or rounding hides all progress."""
    model = QuadraticModel(objective, theta)
    began = run.steps
    look = np.inf if any(term.nested for term in objective.terms) else FIRST_RENEWAL  # of pivots there is no diagonal
    samples = objective.convex  # True until steps by samples gain nothing
    now = run.evaluate(objective, theta) if now is None else now
    hand_back()  # what was needed to begin
    while True:
        taken = run.steps - began + 1
        if taken >= look:
            model.look(objective, theta, run)
            look *= RENEWAL_GROWTH
            hand_back()
        reached = step(objective, theta, now, model, run)
        if reached is None:
            return
        theta, now = reached
        small = taken >= FIRST_RENEWAL and len(model) <= SMALL * objective.size
        if small and now.dual is not None and isinstance(objective.vectors, HostVectors):
            reached_by_samples = theta
            if samples and affordable(objective, len(model), objective.nonzero(theta), run.passes):
                reached_by_samples, samples = sampled_steps(objective, theta, now, run), False
            if reached_by_samples is theta:
                theta = steps_alone(objective, theta, now, model, run)
            else:
                theta = reached_by_samples
                model = QuadraticModel(objective, theta)
                model.look(objective, theta, run)
            now = run.evaluate(objective, theta)


class MembersAlone:
    """P of the members of a working set alone, at a point."""

    def __init__(self, objective: Objective, theta: Vector, now: Point, members: np.ndarray, run: Run):
        assert now.dual is not None
        self._whole, self._theta, self._run = objective, theta, run
        self.part, self.places = objective.with_parameters(np.sort(members))
        self.theta, gradient = (objective.vectors.values_at(vector, self.places) for vector in (theta, now.gradient))
        slopes = gradient - self.theta / self.part.variances_at(np.arange(self.part.size))
        self.now = replace(now, gradient=gradient, dual=self.part.sparse_dual(now.dual.constant, slopes))
        self.columns = np.searchsorted(self.places, members)

    def _evaluate(self, point: Vector) -> Point:
        kept = NonzeroParameters(self._whole.vectors, self.places, point)
        return self._run.evaluate_part(self.part, point, 1.0, kept)

    def step(self, model: QuadraticModel | SampledModel) -> float | None:
        """Take a step; return the relative gap, of members alone, or None where rounding hides all progress."""
        reached = step(self.part, self.theta, self.now, model, self._run, self._evaluate)
        if reached is None:
            return None
        self.theta, self.now = reached
        return relative_gap(self.now.value, self.now.lower)

    def whole(self) -> Vector:
        """Return all parameters, where these are now."""
        return self._whole.vectors.with_values(self._theta, self.places, self.theta)


def steps_alone(objective: Objective, theta: Vector, now: Point, model: QuadraticModel, run: Run) -> Vector:
    """Take steps with the parameters of the working set alone; return where they lead."""
    alone = MembersAlone(objective, theta, now, model.columns, run)
    curvature = model.move(alone.part, alone.columns, model.curvature[alone.places])
    for _ in range(STEPS_ALONE):
        gap = alone.step(model)
        if gap is None:
            break
        if gap < SMALLER * model.gap:
            model.gap = gap
            break
    model.move(objective, alone.places[model.columns], curvature)
    return alone.whole()


def sampled_steps(objective: Objective, theta: Vector, now: Point | None, run: Run) -> Vector:
    """Take steps by a sampled Hessian with those parameters alone that are not zero or want to leave it.

    They end when the run stops them or they gain nothing; where none does `theta` itself is returned.
    """
    before: tuple[SampledModel, np.ndarray] | None = None  # and which parameters it has
    while True:
        now = run.evaluate(objective, theta) if now is None else now
        assert now.dual is not None
        members = np.union1d(np.flatnonzero(objective.vectors.to_array(theta)), now.dual.places)
        alone = MembersAlone(objective, theta, now, members, run)
        matrix = sampled_matrix(alone.part, alone.theta, alone.columns)
        if matrix is None:
            return theta
        model = SampledModel(alone.part, alone.columns, matrix)
        if before is not None:
            _, *common = np.intersect1d(before[1], members, assume_unique=True, return_indices=True)
            with suppress(NumericError):  # rounding: the new one alone
                model.go_on(before[0], *common)
        began, now = alone.now, None
        aim = max(ENOUGH * run.aim(), NEARER * relative_gap(began.value, began.lower))
        for _ in range(STEPS_BY_SAMPLES):
            try:
                gap, now = alone.step(model), None
            except NumericError:  # rounding has made the matrix useless
                gap = None
            if gap is None or gap <= aim:
                break
            if gap <= CLOSE * run.aim():
                now = run.evaluate(objective, alone.whole())
        if not alone.now.value < began.value:
            return theta
        theta = alone.whole()
        before = None if gap is None else (model, alone.places[model.columns])


def step(
    objective: Objective,
    theta: Vector,
    now: Point,
    model: QuadraticModel | SampledModel,
    run: Run,
    evaluate: Callable[[Vector], Point] | None = None,
) -> tuple[Vector, Point] | None:
    """Take one step and remember it; None where rounding hides all progress even along the initial diagonal.

    Where `evaluate` is not given it is the run's.
    """
    evaluate = evaluate or partial(run.evaluate, objective)
    hidden = 0.0 if objective.dtype == np.float64 else HIDDEN * now.value
    while True:
        start, direction, change = model.step(theta, now)
        if change < 0:
            length = 1.0
            for _ in range(MOST_TRIALS):
                point = objective.vectors.with_values(theta, model.columns, start + length * direction)
                found = evaluate(point)
                lower = found.value <= now.value + SUFFICIENT_DECREASE * length * change
                if not lower and found.value <= now.value + hidden:
                    lower = model.slope(length * direction, found) <= -STEEPEST * length * change
                if lower:
                    run.steps += 1
                    model.remember(length * direction, found)
                    return point, found
                del point, found  # their memory is that of the next ones
                length *= SHORTER
        if isinstance(model, SampledModel) or not model.pairs:
            return None
        model.forget_pairs()  # rounding has made the history useless


class QuadraticModel(WorkingSet):
    """A quadratic model of P without its penalty, over the parameters that may leave zero."""

    def __init__(self, objective: Objective, theta: Vector):
        super().__init__(objective.size, kept_dtype(objective), objective.engine.workers)
        self._look_up_in(objective)
        self.gap = np.inf  # the smallest one of steps with members alone, by single points
        curvature = objective.initial_curvature()
        self._lowest = LEAST_CURVATURE * curvature.max(initial=1e-300)
        self.curvature = np.maximum(curvature, self._lowest) ** POWER
        # [w] theta, its gradient and thresholds, as far as they have been looked up
        self._start, self._slope, self._least = (np.empty(0) for _ in range(3))
        nonzero = np.flatnonzero(self._vectors.to_array(theta))
        self.join(nonzero, self.curvature[nonzero])

    def _look_up_in(self, objective: Objective) -> None:
        self._vectors = objective.vectors
        self._thresholds = self._vectors.zeros() if objective.thresholds is None else objective.thresholds

    def move(self, objective: Objective, columns: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Go on with P of other parameters, where members have these places; return the curvature of those before."""
        self._look_up_in(objective)
        self.columns, self._member = columns, np.zeros(objective.size, dtype=bool)
        self._member[columns] = True
        before, self.curvature = self.curvature, curvature
        return before

    def look(self, objective: Objective, theta: Vector, run: Run) -> None:
        """Start from the Hessian's diagonal at these parameters, and keep the pairs."""
        self.curvature = current_curvature(objective, theta, run)  # in the precision of pairs
        np.maximum(self.curvature, self._lowest, out=self.curvature)
        self.curvature **= POWER
        self.rescale(self.curvature[self.columns])

    def step(self, theta: Vector, now: Point) -> tuple[np.ndarray, np.ndarray, float]:
        """Return parameters of the working set, a step of theirs to the minimum of the model, and its change of P."""
        wanted = now.dual.places if now.dual else np.arange(self._vectors.size)
        new = ~self._member[wanted]
        most = min(MOST_NEW, max(FEWEST_NEW, int(NEW_SHARE * self._vectors.size)))
        if now.dual and new.sum() > most:
            excess = (now.dual.sizes - now.dual.thresholds)[new]
            wanted = wanted[new][np.sort(np.argpartition(-excess, most)[:most])]
        self.join(wanted, self.curvature[wanted])
        joined, of_whole = self.columns[len(self._start) :], (theta, now.gradient, self._thresholds)
        found = [self._vectors.values_at(vector, joined) for vector in of_whole]
        self._start, self._slope, self._least = map(np.append, (self._start, self._slope, self._least), found)
        length = self.length
        if not length:  # the first step is about as long as one
            length = max(float(np.sqrt((self._slope * self._slope / self.curvature[self.columns]).sum())), 1e-300)
        reached, change = self.minimise(self._start, self._slope, self._least, length)
        return self._start, reached - self._start, change

    def slope(self, step: np.ndarray, new: Point) -> float:
        """Return the slope of P along a step at the point it leads to."""
        return slope_along(self._start, step, self._vectors.values_at(new.gradient, self.columns), self._least)

    def remember(self, step: np.ndarray, new: Point) -> None:
        """Take up a step to a point; parameters that are zero and want to stay so may leave there."""
        slope = self._vectors.values_at(new.gradient, self.columns)
        self.add(step, slope - self._slope)
        self._start, self._slope = self._start + step, slope
        kept = self.leave((self._start == 0) & (abs(slope) <= self._least))
        if kept is not None:
            self._start, self._slope, self._least = (own[kept] for own in (self._start, slope, self._least))
