"""Growth of a basis during training: fit, add the pivots that may lower P most (see `maps.GrowingBasis`), fit again.

Columns that were there stay as they are, so each fit goes on from the last one. Growth ends where the gain outside the
pivots, first estimated and then bounded over all pairs of positions, is no more than a share of P, or without room.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..chains import Clique
from ..features import FitContext, FittedPivots
from ..objective import Vector, certificates
from ..objective.solvers import INTERRUPTED, PASSES, GrowthRound, Run, SolverResult, Stage, moved
from ..system import counted
from .task import Minimiser, Solution, TrainingTask

BASIS_TOLERANCE = 0.01  # share of P

LOOSE = 0.1  # gap of fits that only choose pivots
# New pivots as a share of those there: all but where fewer seem to be enough.
LARGEST_PART, SMALLEST_PART, RESERVE, LEAST_POWER = 1.0, 0.125, 1.1, 0.5

ENOUGH, SIZE, RESIDUAL = "tolerance", "size", "residual"


@dataclass(frozen=True)
class Growth:
    """Rounds in which a basis grew, and the reason why growth ended."""

    stop: str  # one of the constants above, or why training stopped before: passes, interrupted
    tolerance: float  # share of P
    rounds: tuple[GrowthRound, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"stop": self.stop, "basis_tolerance": self.tolerance, "rounds": [asdict(each) for each in self.rounds]}


class Growing:
    """A fit whose terms get more pivots on the way: the task and the parameters so far."""

    def __init__(
        self,
        task: TrainingTask,
        sigma2: Mapping[str, float],
        theta: Vector,
        context: FitContext,
        minimiser: Minimiser,
        run: Run,  # for all fits together; its tolerance is that of the last one
    ):
        self._task, self._sigma2, self._theta, self._context = task, sigma2, theta, context
        self._objective = task.objective(sigma2)
        self._minimiser, self._observer = minimiser, minimiser.observer
        self._run, self._last_tolerance = run, run.tolerance
        terms = [(j, term) for j, term in enumerate(task.terms) if term.growing is not None]
        self._growing = {j: term for j, term in terms if isinstance(term, FittedPivots)}
        self._bases = {j: term.growing for j, term in terms if term.growing is not None}  # which grow in place
        self._seen: dict[int, list[tuple[int, float]]] = {j: [] for j in self._growing}  # pivots and estimates
        # Bound over estimate, of the last time that there was a bound.
        self._ratios = dict.fromkeys(self._growing, 1.0)
        # One limit for the sum over terms: the finest that was asked for.
        given = [term.config.map.basis_tolerance for term in self._growing.values()]
        self._tolerance = min(BASIS_TOLERANCE if each is None else each for each in given)
        self._rounds: list[GrowthRound] = []

    def until_enough(self) -> tuple[Solution, Growth]:
        """Fit, add pivots, and fit again, until no more are wanted; the last fit is as tight as training asks for."""
        tight = False
        while True:
            tight = tight or not any(basis.has_room() for basis in self._bases.values())
            result, errors, estimates = self._fit(tight)
            if result.reason in (PASSES, INTERRUPTED):
                if not tight:
                    result = moved(result, self._objective, result.theta, self._last_tolerance, result.reason)
                return self._ended(result, result.reason)
            limit = self._tolerance * result.value
            expected = {j: self._ratios[j] * estimate for j, estimate in estimates.items()}
            if tight and math.fsum(expected.values()) <= limit:
                expected = self._bounds()
                if math.fsum(expected.values()) <= limit:
                    return self._ended(result, ENOUGH)
                self._ratios = {j: expected[j] / estimates[j] if estimates[j] > 0 else 1.0 for j in self._growing}
            share = None
            if math.fsum(expected.values()) > limit:
                share = self._add_pivots(self._wanted(expected, limit), errors)
            if share is None and tight:
                full = any(len(basis) >= basis.size for basis in self._bases.values())
                return self._ended(result, SIZE if full else RESIDUAL)
            tight = share is None
            self._run.go_on(share or 1.0)

    def _wanted(self, expected: dict[int, float], limit: float) -> dict[int, int]:
        """Return how many pivots to add to each term that is above its share of the limit; there is at least one.

        The gain outside falls like a power of the number of pivots, which the last two fits tell.
        """
        own, wanted = limit / len(expected), {}
        for j, value in expected.items():
            excess = value / own if own > 0 else math.inf
            if excess <= 1:
                continue
            size, now = self._seen[j][-1]
            earlier = [seen for seen in self._seen[j] if seen[0] < size]
            share = LARGEST_PART
            if earlier and 0 < now < earlier[-1][1]:
                power = math.log(earlier[-1][1] / now) / math.log(size / earlier[-1][0])
                if power > LEAST_POWER:
                    share = min(RESERVE * excess ** (1 / power) - 1, LARGEST_PART)
            wanted[j] = int(max(share, SMALLEST_PART) * size)
        return wanted

    def _fit(self, tight: bool) -> tuple[SolverResult, dict[Clique, np.ndarray], dict[int, float]]:
        """Fit; return the result, the errors at positions, and estimates of each growing term's gain outside."""
        pivots = {term.config.name: term.rows for term in self._growing.values()}
        self._observer.tell(Stage(f"training on {counted(sum(pivots.values()), 'pivot')}"))
        last = self._last_tolerance
        self._run.tolerance = last if tight else replace(last, share=max(last.share, LOOSE))
        self._run.proves = tight
        result = self._minimiser.solve(self._objective, self._theta, self._run)
        self._theta = result.theta
        types = dict.fromkeys(self._objective.terms[j].clique for j in self._growing)
        errors = {clique: self._objective.errors(self._theta, clique) for clique in types}
        estimates = {}
        for j, term in self._growing.items():
            sigma2 = self._objective.sigma2[j]
            assert term.map is not None  # bases grow on data in memory
            estimates[j] = certificates.estimate(errors[term.config.clique], term.map, sigma2, self._task.workers)
            self._seen[j].append((len(self._bases[j]), estimates[j]))
        gap = result.gap if np.isfinite(result.gap) else None
        state = GrowthRound(pivots, result.value, gap, math.fsum(estimates.values()), None, result.passes)
        self._rounds.append(state)
        self._observer.tell(state)
        return result, errors, estimates

    def _bounds(self) -> dict[int, float]:
        """Return the most that each growing term may gain outside its pivots, were this fit the optimum inside."""
        self._observer.tell(Stage("gain outside the pivots"))
        found, objective = {}, self._objective.in_double()
        for j, term in self._growing.items():
            basis, sigma2 = self._bases[j], self._objective.sigma2[j]
            m, workers = objective.errors(self._theta, term.config.clique), self._task.workers
            assert term.map is not None
            found[j] = certificates.bound(m, term.map, basis.inputs, basis.kernel, sigma2, workers)
        here = objective.proven(self._theta)
        self._rounds[-1] = replace(self._rounds[-1], bound=math.fsum(found.values()) + here.value - here.lower)
        self._observer.tell(self._rounds[-1])
        return found

    def _add_pivots(self, wanted: dict[int, int], errors: dict[Clique, np.ndarray]) -> float | None:
        """Add pivots to some terms; return the ratio of the old size of P to the new one, None where none came."""
        task = self._task
        self._observer.tell(Stage("more pivots"))
        terms, added = list(task.terms), 0
        for j, count in wanted.items():
            basis = self._bases[j]
            if basis.has_room() and (new := basis.add(errors[self._objective.terms[j].clique], count)):
                self._growing[j] = terms[j] = self._growing[j].grown(self._context)
                added += new
        if not added:
            return None
        self._task = replace(task, terms=tuple(terms))
        before, self._objective = self._objective, self._task.objective(self._sigma2)
        self._theta = self._objective.vectors.widened(self._theta, before.vectors)
        return before.pass_size / self._objective.pass_size

    def _ended(self, result: SolverResult, why: str) -> tuple[Solution, Growth]:
        growth = Growth(why, self._tolerance, tuple(self._rounds))
        return Solution(self._task, self._objective, result), growth
