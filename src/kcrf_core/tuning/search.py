"""Successive halving over rungs of data, with a greedy refinement on each: which candidate is best, for a given effort.

A rung is a part of the data; each is some times larger than the one before. Candidates are judged on the first, the
better ones go on to the next. On every rung the best so far, the leader, is changed in one choice at a time, and a change
that is better by what held-out units say becomes the leader. Comparisons are paired: a difference of two
candidates has a standard error over the units that both were judged by. Of those that cannot be told apart from the
best by one standard error the simplest is chosen at the end.

The search knows nothing of corpora and models: an `Arena` judges, a `Meter` says what a judgement cost and what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .space import Candidate

# The part of the better candidates of a rung that goes on to the next, and the fewest that do.
KEPT_SHARE, KEPT_LEAST = 1 / 3, 3
# Candidates that are worse than the best by so many standard errors do not go on.
HOPELESS = 2.0
# A leader is replaced by a dearer candidate only if that is better by this part of a standard error.
DEARER_GAIN = 0.5
# No judgement may cost more than this part of all that may be spent.
LARGEST_SHARE = 1 / 3
# Changes of the leader are tried on the rung before first where one judgement on this rung takes this part of all.
SCREENED_SHARE = 0.02
# Each rung may spend so many times as much as the one before.
SHARE_FACTOR = 2.0
# A judgement on the next rung costs this many times as much for each position: its search for sigma2 begins nearer.
GROWTH = 0.8


@dataclass(frozen=True)
class Outcome:
    """How well a candidate did on a rung."""

    candidate: Candidate
    rung: int
    positions: int  # of the rung
    value: float  # the larger the better
    error: float  # standard error of it
    complexity: float  # of its models, in multiplications for each position
    work: float  # that the judgement took, in multiplications
    seconds: float  # that it took
    found: dict[str, Any] = field(repr=False)  # what the judge says of it beside the figures


class Arena(Protocol):
    """Where candidates are judged."""

    @property
    def sizes(self) -> Sequence[int]:
        """Positions of each rung, ascending."""

    def judge(self, candidate: Candidate, rung: int, limit: float, like: Outcome | None) -> Outcome | None:
        """Judge a candidate at a cost of no more than the limit; None where that was not enough, or cannot be done.

        `like` is a judgement of something similar that the search for prior variances may begin at.
        """

    def difference(self, first: Outcome, second: Outcome) -> tuple[float, float]:
        """By how much the first is better than the second, on the same rung, and the standard error of that."""

    def complexity(self, candidate: Candidate) -> float:
        """What its models cost, in multiplications for each position."""


class Meter(Protocol):
    """What has been spent, in its own unit."""

    total: float

    @property
    def spent(self) -> float: ...

    def add(self, outcome: Outcome) -> None:
        """Take note of a judgement."""

    def cost(self, outcome: Outcome) -> float:
        """What a judgement cost."""


class Listener:
    """Hears how a search goes; this one ignores it."""

    def rung(self, number: int, positions: int, candidates: int) -> None:
        """A rung begins, with so many candidates."""

    def outer(self, fold: int, folds: int) -> None:
        """The search without an outer fold begins."""

    def judging(self, candidate: Candidate, rung: int) -> None:
        """A judgement begins."""

    def judged(self, outcome: Outcome, search: Search) -> None:
        """A judgement is there."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Search:
    """One search: all outcomes so far, and what to try next."""

    def __init__(
        self,
        neighbours: Callable[[Candidate], Iterable[Candidate]],
        arena: Arena,
        meter: Meter,
        listener: Listener,
        stopped: Callable[[], bool] = lambda: False,
    ):
        self._neighbours, self._arena, self._meter = neighbours, arena, meter
        self._listener, self._stopped = listener, stopped
        self._outcomes: list[dict[Candidate, Outcome]] = [{} for _ in arena.sizes]
        self.history: list[Outcome] = []  # all outcomes, as they came
        self._failed: set[tuple[Candidate, int]] = set()
        self._leader: Outcome | None = None

    @property
    def leader(self) -> Outcome | None:
        """The best so far, on the highest rung that one was judged on."""
        return self._leader

    def on(self, rung: int) -> list[Outcome]:
        """Outcomes on a rung, the best first."""
        return sorted(self._outcomes[rung].values(), key=lambda outcome: -outcome.value)

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes, those of higher rungs first, and the better first among them."""
        return [outcome for rung in reversed(range(len(self._outcomes))) for outcome in self.on(rung)]

    def run(self, seeds: Sequence[Candidate]) -> Outcome | None:
        """Search from these candidates, the most promising first; the one to take, or None where none was judged."""
        shares = [SHARE_FACTOR**rung for rung in range(len(self._outcomes))]
        going = list(dict.fromkeys(seeds))
        for rung, positions in enumerate(self._arena.sizes):
            limit = self._meter.total * sum(shares[: rung + 1]) / sum(shares)
            if self._over(self._meter.total) or (rung and not self._climbs(rung)):
                break
            self._listener.rung(rung, positions, len(going))
            for candidate in going:
                before = self._outcomes[rung - 1].get(candidate) if rung else self._leader
                # The first is judged whatever it costs: there is nothing else to fall back on.
                outcome = self._judge(candidate, rung, limit if self._outcomes[rung] else self._meter.total, before)
                if outcome is not None and (self._leader.rung < rung or outcome.value > self._leader.value):
                    self._leader = outcome
            if self._leader is None or self._leader.rung < rung:
                break
            self._refine(rung, limit)
            going = self._survivors(rung)
        return self.choice()

    def choice(self) -> Outcome | None:
        """The simplest of those that cannot be told apart from the leader by one standard error."""
        best = self._leader
        if best is None:
            return None
        level = [
            outcome
            for outcome in self._outcomes[best.rung].values()
            if outcome.complexity <= best.complexity and self._told_apart(best, outcome) <= 1.0
        ]
        return min([best, *level], key=lambda outcome: (outcome.complexity, -outcome.value))

    def _told_apart(self, better: Outcome, worse: Outcome) -> float:
        """By how many standard errors one is better than the other."""
        if better is worse:
            return 0.0
        difference, error = self._arena.difference(better, worse)
        return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0

    def _over(self, limit: float) -> bool:
        return self._stopped() or self._meter.spent >= limit

    def _climbs(self, rung: int) -> bool:
        """Whether the leader and one more can be judged on this rung with what is left."""
        return 2 * self._expected(self._leader.candidate, rung) <= self._meter.total - self._meter.spent

    def _expected(self, candidate: Candidate, rung: int) -> float:
        """What a judgement will cost, by one of the same candidate on a lower rung, or else by the leader's."""
        sizes = self._arena.sizes
        for lower in reversed(range(rung)):
            known = self._outcomes[lower].get(candidate)
            if known is not None:
                return self._meter.cost(known) * sizes[rung] / sizes[lower] * GROWTH
        like = self._outcomes[rung].get(self._leader.candidate) if self._leader else None
        if like is None:
            like = self._leader
        if like is None:
            return 0.0
        ratio = self._arena.complexity(candidate) / max(like.complexity, 1.0)
        return self._meter.cost(like) * sizes[rung] / sizes[like.rung] * max(ratio, 0.2)

    def _judge(self, candidate: Candidate, rung: int, limit: float, like: Outcome | None) -> Outcome | None:
        """The outcome of a candidate on a rung, judged now if that has not been done and if it is affordable."""
        known = self._outcomes[rung].get(candidate)
        if known is not None:
            return known
        if (candidate, rung) in self._failed or self._over(limit):
            return None
        left = self._meter.total - self._meter.spent
        most = min(LARGEST_SHARE * self._meter.total, left)
        if self._expected(candidate, rung) > min(most, 1.5 * (limit - self._meter.spent)):
            return None
        self._listener.judging(candidate, rung)
        outcome = self._arena.judge(candidate, rung, most, like)
        if outcome is None:
            self._failed.add((candidate, rung))
            return None
        self._outcomes[rung][candidate] = outcome
        self.history.append(outcome)
        self._meter.add(outcome)
        if self._leader is None:
            self._leader = outcome
        self._listener.judged(outcome, self)
        return outcome

    def _refine(self, rung: int, limit: float) -> None:
        """Change the leader in one choice at a time, as long as that helps and the limit is not reached."""
        tried: set[Candidate] = set()
        while not self._over(limit):
            begun_with = self._leader
            fresh = [one for one in self._neighbours(begun_with.candidate) if one not in tried]
            if not fresh:
                return
            for candidate in fresh:
                # The leader may have moved on by another choice: the same change is then tried on top of that.
                tried.add(candidate)
                if self._over(limit):
                    return
                self._challenge(candidate, rung, limit)
                if self._leader is not begun_with:
                    break

    def _challenge(self, candidate: Candidate, rung: int, limit: float) -> None:
        """Judge a change of the leader, on the rung before first where that saves much; the better one leads."""
        leader = self._leader
        if rung and self._meter.cost(leader) > SCREENED_SHARE * self._meter.total:
            below = self._outcomes[rung - 1].get(leader.candidate)
            below = below or self._judge(leader.candidate, rung - 1, limit, leader)
            screened = self._judge(candidate, rung - 1, limit, below)
            if below is None or screened is None or screened.value < below.value:
                return
        outcome = self._judge(candidate, rung, limit, leader)
        if outcome is None or outcome.rung != leader.rung:
            return
        needed = DEARER_GAIN if outcome.complexity > leader.complexity else 0.0
        if outcome.value > leader.value and self._told_apart(outcome, leader) > needed:
            self._leader = outcome

    def _survivors(self, rung: int) -> list[Candidate]:
        """The candidates that go on to the next rung, the best first."""
        ranked = self.on(rung)
        ranked.remove(self._leader)
        count = max(KEPT_LEAST, math.ceil(KEPT_SHARE * (len(ranked) + 1)))
        hopeful = [one for one in ranked if self._told_apart(self._leader, one) <= HOPELESS]
        return [outcome.candidate for outcome in [self._leader, *hopeful][:count]]
