"""Successive halving over rungs of data, with a greedy refinement on each: which candidate is best, for a given effort.

A rung is a part of the data; each is some times larger than the one before. Candidates are judged on the first, the
better ones go on to the next. On every rung the best so far, the leader, is changed in one choice at a time, and a
change that is better by what held-out units say becomes the leader. Comparisons are paired: a difference of two
candidates has a standard error over the units that both were judged by. Of those that cannot be told apart from the
best by one standard error the simplest is chosen at the end. The best of many is the best by chance, too: what data
gets without a search stays unless the best is better by more than the best of so many would be that are no better.

The search knows nothing of corpora and models: an `Arena` judges, a `Meter` says what that cost and what is left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Protocol

from ..scoring import Yardstick
from .space import Candidate

# The part of the better candidates of a rung that goes on to the next, and the fewest that do.
KEPT_SHARE, KEPT_LEAST = 1 / 3, 3
# Candidates that are worse than the best by so many standard errors do not go on.
HOPELESS = 2.0
# The usual one goes on unless it is worse by so many: that of a few hundred by chance alone.
CLEARLY = 3.0
# A leader is replaced by a dearer candidate only if that is better by this part of a standard error.
DEARER_GAIN = 0.5
# No judgement may cost more than this part of all that may be spent.
LARGEST_SHARE = 1 / 3
# Changes of the leader are tried on the rung before first where one judgement on this rung takes this part of all.
SCREENED_SHARE = 0.02
# Each rung may spend so many times as much as the one before.
SHARE_FACTOR = 2.0


@dataclass(frozen=True)
class Outcome:
    """How well a candidate did on a rung."""

    candidate: Candidate
    rung: int
    positions: int  # of the rung
    value: float  # the larger the better
    error: float  # standard error of it
    complexity: float  # of its models: what a position costs in a pass
    settings: int  # of prior variances that were tried
    work: float  # that the judgement took, in the same unit
    seconds: float  # that it took
    found: dict[str, Any] = field(repr=False)  # what the judge says of it beside the figures
    repeated: bool = False  # another candidate has the same configuration on this rung, and its outcome is told again


class Arena(Protocol):
    """Where candidates are judged."""

    @property
    def sizes(self) -> Sequence[int]:
        """Positions of each rung, ascending."""

    @property
    def fitted(self) -> Sequence[float]:
        """Work of a pass over the folds of each rung, in proportion: positions that are fitted on, by their labels."""

    @property
    def ceiling(self) -> float:
        """The value that nothing can be better than."""

    def judge(
        self, candidate: Candidate, rung: int, limit: float, like: Outcome | None, thorough: bool
    ) -> Outcome | None:
        """Judge a candidate at a cost of no more than the limit; None where that was not enough, or cannot be done.

        Prior variances of terms are those of `like`, where it has such terms; others are searched for. If `thorough`,
        all are searched for, and the search begins there.
        """

    def difference(self, first: Outcome, second: Outcome) -> tuple[float, float]:
        """By how much the first is better than the second, on the same rung, and the standard error of that."""

    def complexity(self, candidate: Candidate) -> float:
        """What a position costs in a pass over the data with its models."""

    def settings(self, candidate: Candidate, like: Outcome | None, thorough: bool) -> int:
        """How many settings of prior variances a judgement will look at, about."""


class Meter:
    """Effort that a search may take and has taken: work, the same on every machine, or seconds if it is `timed`."""

    def __init__(self, total: float, timed: bool = False):
        self.total, self._timed = total, timed
        self._work, self._began = 0.0, time.perf_counter()

    @property
    def spent(self) -> float:
        return time.perf_counter() - self._began if self._timed else self._work

    def add(self, outcome: Outcome) -> None:
        """Count a judgement."""
        self._work += outcome.work

    def cost(self, outcome: Outcome) -> float:
        """Return the effort that a judgement took."""
        return outcome.seconds if self._timed else outcome.work


class Listener:
    """Hears how a search goes; this one ignores it."""

    def rung(self, number: int, positions: int, candidates: int) -> None:
        """A rung begins, with so many candidates."""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        """A search begins; `title` says what candidates are called."""

    def outer(self, fold: int, folds: int) -> None:
        """The search without an outer fold begins."""

    def judging(self, candidate: Candidate, rung: int) -> None:
        """A judgement begins."""

    def judged(self, outcome: Outcome) -> None:
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
        self._failed: set[tuple[Candidate, int, bool]] = set()
        self._settled: set[tuple[Candidate, int]] = set()  # whose prior variances were all searched for
        self._leader: Outcome | None = None
        self._usual: Candidate | None = None  # what the data gets without a search

    @property
    def sizes(self) -> Sequence[int]:
        """Positions of the rungs."""
        return self._arena.sizes

    @property
    def share_spent(self) -> float:
        """The part of what may be spent that is."""
        return min(self._meter.spent / self._meter.total, 1.0)

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
        """Search from these candidates, the usual one first; the one to take, or None where none was judged."""
        shares = [SHARE_FACTOR**rung for rung in range(len(self._outcomes))]
        going = list(dict.fromkeys(seeds))
        self._usual = going[0] if going else None
        for rung, positions in enumerate(self._arena.sizes):
            limit = self._meter.total * math.fsum(shares[: rung + 1]) / math.fsum(shares)
            if self._over(self._meter.total):
                break
            if rung and not self._climbs(rung):
                self._refine(rung - 1, self._meter.total)
                self._settle(self._meter.total)
                break
            self._listener.rung(rung, positions, len(going))
            for candidate in going:
                before = self._outcomes[rung - 1].get(candidate) if rung else self._leader
                most = limit if self._outcomes[rung] else self._meter.total
                outcome = self._judge(candidate, rung, most, before, thorough=self._leader is None)
                if outcome is not None and (self._leading.rung < rung or outcome.value > self._leading.value):
                    self._leader = outcome
            if self._leader is None or self._leader.rung < rung:
                break
            self._leader = self._cheapest(self._leader, DEARER_GAIN)
            self._settle(limit)
            self._refine(rung, limit)
            self._settle(limit)
            going = self._survivors(rung)
        return self.choice()

    def choice(self) -> Outcome | None:
        """The simplest of those that cannot be told apart from the best by one standard error.

        What data gets without a search is one that many data sets speak for: it stays where it is among them, even if
        a simpler one is, too.
        """
        if self.best is None:
            return None
        usual = self._usual_on(self.best.rung)
        if usual is None or self._told_apart(self.best, usual) > max(1.0, self._by_chance()):
            return self._cheapest(self.best, 1.0)
        return usual

    @property
    def best(self) -> Outcome | None:
        """The best on the highest rung, whatever it costs."""
        return None if self._leader is None else self.on(self._leader.rung)[0]

    def _by_chance(self) -> float:
        """By how many standard errors the best of all candidates that were judged is better if all are alike.

        The mean of the largest of so many normal numbers, by Blom's approximation.
        """
        many = len({outcome.candidate for outcome in self.history})
        return NormalDist().inv_cdf((many - 0.375) / (many + 0.25))

    def _cheapest(self, best: Outcome, apart: float) -> Outcome:
        """The simplest of those that are worse than the best by no more than so many standard errors."""
        level = [
            outcome
            for outcome in self._outcomes[best.rung].values()
            if outcome.complexity <= best.complexity and self._told_apart(best, outcome) <= apart
        ]
        return min([best, *level], key=lambda outcome: (outcome.complexity, -outcome.value))

    def _told_apart(self, better: Outcome, worse: Outcome) -> float:
        """By how many standard errors one is better than the other."""
        if better is worse:
            return 0.0
        difference, error = self._arena.difference(better, worse)
        return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0

    def _over(self, limit: float) -> bool:
        perfect = self._leader is not None and self._leader.value >= self._arena.ceiling
        return perfect or self._stopped() or self._meter.spent >= limit

    @property
    def _leading(self) -> Outcome:
        """The leader, once there is one."""
        assert self._leader is not None
        return self._leader

    def _usual_on(self, rung: int) -> Outcome | None:
        """What the candidate that needs no search got on a rung, if it was judged there."""
        return None if self._usual is None else self._outcomes[rung].get(self._usual)

    def _climbs(self, rung: int) -> bool:
        """Whether the leader and one more can be judged on this rung with what is left."""
        leader = self._leading
        return 2 * self._expected(leader.candidate, rung, leader, False) <= self._meter.total - self._meter.spent

    def _expected(self, candidate: Candidate, rung: int, like: Outcome | None, thorough: bool) -> float:
        """What a judgement will cost, by what one of the same candidate on another rung did, or the leader's."""
        arena = self._arena
        same = (outcomes[candidate] for outcomes in reversed(self._outcomes) if candidate in outcomes)
        known = next(same, self._leader)
        if known is None:
            return 0.0
        ratio = arena.complexity(candidate) / max(known.complexity, 1.0)
        settings = arena.settings(candidate, like, thorough) / known.settings
        return self._meter.cost(known) * arena.fitted[rung] / arena.fitted[known.rung] * max(ratio, 0.2) * settings

    def _judge(
        self, candidate: Candidate, rung: int, limit: float, like: Outcome | None, thorough: bool = False
    ) -> Outcome | None:
        """The outcome of a candidate on a rung, judged now if that has not been done and if it is affordable."""
        known = self._outcomes[rung].get(candidate)
        if (known is not None and not thorough) or (candidate, rung, thorough) in self._failed:
            return known
        if self._over(limit):
            return None
        left = self._meter.total - self._meter.spent
        most = min(LARGEST_SHARE * self._meter.total, left)
        if self._expected(candidate, rung, like, thorough) > min(most, 1.5 * (limit - self._meter.spent)):
            return None
        if thorough:
            self._settled.add((candidate, rung))
        self._listener.judging(candidate, rung)
        outcome = self._arena.judge(candidate, rung, most, like, thorough)
        if outcome is None:
            self._failed.add((candidate, rung, thorough))
            return None
        if known is None or outcome.value > known.value:
            self._outcomes[rung][candidate] = outcome
        self.history.append(outcome)
        if not outcome.repeated:
            self._meter.add(outcome)
        if self._leader is None:
            self._leader = outcome
        self._listener.judged(outcome)
        return outcome

    def _settle(self, limit: float) -> None:
        """Search for all prior variances of the leader and of the next best, which may still be those of others."""
        leader = self._leading
        rung = leader.rung
        level = [one for one in self.on(rung) if self._told_apart(leader, one) <= 1.0 and one is not leader]
        for outcome in [leader, *level[:1]]:
            if (outcome.candidate, rung) in self._settled:
                continue
            found = self._judge(outcome.candidate, rung, limit, outcome, thorough=True)
            if found is not None and found.value > self._leading.value:
                self._leader = found

    def _refine(self, rung: int, limit: float) -> None:
        """Change the leader in one choice at a time, as long as that helps and the limit is not reached."""
        tried: set[Candidate] = set()
        while not self._over(limit):
            begun_with = self._leading
            fresh = [one for one in self._neighbours(begun_with.candidate) if one not in tried]
            if not fresh:
                return
            for candidate in fresh:
                tried.add(candidate)
                if self._over(limit):
                    return
                self._challenge(candidate, rung, limit)
                if self._leader is not begun_with:
                    break

    def _challenge(self, candidate: Candidate, rung: int, limit: float) -> None:
        """Judge a change of the leader, on the rung before first where that saves much; the better one leads."""
        leader = self._leading
        expected = self._expected(candidate, rung, leader, False)
        if (
            rung
            and self._arena.fitted[rung - 1] < self._arena.fitted[rung] / 2
            and (expected > SCREENED_SHARE * self._meter.total)
        ):
            below = self._outcomes[rung - 1].get(leader.candidate)
            below = below or self._judge(leader.candidate, rung - 1, limit, leader)
            screened = None if below is None else self._judge(candidate, rung - 1, limit, below)
            if below is None or screened is None or screened.value < below.value:
                return
        outcome = self._judge(candidate, rung, limit, leader)
        if outcome is None:
            return
        needed = DEARER_GAIN if outcome.complexity > leader.complexity else 0.0
        if outcome.value > leader.value and self._told_apart(outcome, leader) > needed:
            self._leader = outcome

    def _survivors(self, rung: int) -> list[Candidate]:
        """The candidates that go on to the next rung, the best first."""
        leader = self._leading
        ranked = [outcome for outcome in self.on(rung) if outcome.candidate != leader.candidate]
        count = max(KEPT_LEAST, math.ceil(KEPT_SHARE * (len(ranked) + 1)))
        hopeful = [one for one in ranked if self._told_apart(leader, one) <= HOPELESS]
        going = [outcome.candidate for outcome in [leader, *hopeful][:count]]
        usual = self._usual_on(rung)
        if usual is not None and usual.candidate not in going and self._told_apart(leader, usual) <= CLEARLY:
            going.append(usual.candidate)  # what the last word is about
        return going
