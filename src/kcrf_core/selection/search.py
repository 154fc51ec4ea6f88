"""Successive halving over rungs of data, with a greedy refinement on each: the best candidate for a given effort.

Candidates are judged on the first rung (a subset of the data), the better ones also on the next, larger one. On each
rung the best candidate, the leader, is changed in one choice at a time. Comparisons are paired: differences have a
standard error over the units that both were judged by. The best of many is better by chance, too: see `Search.choice`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

from ..scoring import Yardstick
from .arena import LARGEST_SHARE, CorpusArena, Outcome
from .space import Candidate

# Share of the candidates of a rung that go on to the next one, and their least number.
KEPT_SHARE, KEPT_LEAST = 1 / 3, 3
# Candidates that are worse than the best by so many standard errors do not go on.
HOPELESS = 2.0
# The default candidate goes on unless it is worse by so many: the lead of the best of a few hundred equal ones.
CLEARLY = 3.0
# A slower candidate replaces the leader only if it is better by this part of a standard error.
DEARER_GAIN = 0.5
# Changes of the leader are tried on the rung before first if a judgement takes this share of all work.
SCREENED_SHARE = 0.02
# The first candidate gets a search for the prior variance of each term if that takes at most this share.
FIRST_SHARE = 0.1
# Each rung may take so many times the work of the one before.
SHARE_FACTOR = 2.0


class Listener:
    """Receiver of the events of a search; this one ignores them."""

    def rung(self, number: int, positions: int, candidates: int) -> None:
        """Begin a rung with so many candidates."""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        """Begin a search; `title` names candidates."""

    def outer(self, fold: int, folds: int) -> None:
        """Begin the search without an outer fold."""

    def judging(self, candidate: Candidate, rung: int) -> None:
        """Begin a judgement."""

    def judged(self, outcome: Outcome) -> None:
        """Receive a judgement."""

    def note(self, text: str) -> None:
        """Receive a remark for the user."""


class Search:
    """A search from some candidates, the default one first: all outcomes so far, and the candidate to try next.

    It may spend `total`: work, which is the same on every machine, or seconds since `began` (of `time.perf_counter`).
    """

    def __init__(
        self,
        seeds: Sequence[Candidate],
        neighbours: Callable[[Candidate], Iterable[Candidate]],
        arena: CorpusArena,
        total: float,
        listener: Listener,
        stopped: Callable[[], bool] = lambda: False,
        began: float | None = None,
        setting: float = 0.0,  # estimate of the cost of one setting of prior variances of the first seed
    ):
        self._seeds, self._neighbours, self._arena, self.total = list(dict.fromkeys(seeds)), neighbours, arena, total
        self._listener, self._stopped, self._began, self._work = listener, stopped, began, 0.0
        self._setting, self.sizes = setting, arena.sizes
        self._outcomes: list[dict[Candidate, Outcome]] = [{} for _ in arena.sizes]
        self.history: list[Outcome] = []  # all outcomes, as they came
        self._failed: set[tuple[Candidate, int, bool]] = set()
        self._settled: set[tuple[Candidate, int]] = set()  # whose prior variances were all searched for
        self.leader: Outcome | None = None  # the best so far, on the highest rung that one was judged on

    @property
    def spent(self) -> float:
        """Work or seconds that the search has taken."""
        return self._work if self._began is None else time.perf_counter() - self._began

    @property
    def share_spent(self) -> float:
        """Share of the total that is spent."""
        return min(self.spent / self.total, 1.0)

    def on(self, rung: int) -> list[Outcome]:
        """Return the outcomes on a rung, the best first."""
        return sorted(self._outcomes[rung].values(), key=lambda outcome: -outcome.value)

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes, those of higher rungs first, and the better first among them."""
        return [outcome for rung in reversed(range(len(self._outcomes))) for outcome in self.on(rung)]

    @property
    def best(self) -> Outcome | None:
        """The best on the highest rung, regardless of training time."""
        return None if self.leader is None else self.on(self.leader.rung)[0]

    def run(self) -> Outcome | None:
        """Search, and return the outcome to choose, or None if no candidate was judged."""
        shares = [SHARE_FACTOR**rung for rung in range(len(self._outcomes))]
        going = [*self._seeds[:1], *self._cheapest_first(self._seeds[1:])]
        for rung, positions in enumerate(self.sizes):
            limit = self.total * math.fsum(shares[: rung + 1]) / math.fsum(shares)
            if self._over(self.total):
                break
            leader = self.leader
            # The remaining work must be enough for the leader and another candidate on the next rung.
            if (
                leader is not None
                and 2 * self._expected(leader.candidate, rung, leader, False) > self.total - self.spent
            ):
                self._refine(rung - 1, self.total)
                self._settle(self.total)
                break
            self._listener.rung(rung, positions, len(going))
            for candidate in going:
                before = self._outcomes[rung - 1].get(candidate) if rung else self.leader
                most = limit if self._outcomes[rung] else self.total
                first = self._setting * self._arena.settings(candidate, None, True) <= FIRST_SHARE * self.total
                outcome = self._judge(candidate, rung, most, before, thorough=self.leader is None and first)
                if outcome is not None and (self._leading.rung < rung or outcome.value > self._leading.value):
                    self.leader = outcome
            if self.leader is None or self.leader.rung < rung:
                break
            self.leader = self._cheapest(self.leader, DEARER_GAIN)
            self._settle(limit)
            self._refine(rung, limit)
            self._settle(limit)
            going = self._survivors(rung)
        return self.choice()

    def choice(self) -> Outcome | None:
        """Return the simplest outcome that is within one standard error of the best.

        Many data sets support the default candidate: it is chosen if it is among these, even if a simpler one is, too.
        """
        if self.best is None:
            return None
        usual = self._outcomes[self.best.rung].get(self._seeds[0])
        # The expected maximum of so many standard normal numbers, by Blom's approximation: the lead of the best
        # candidate, in standard errors, if all are equally good.
        many = len({outcome.candidate for outcome in self.history})
        by_chance = NormalDist().inv_cdf((many - 0.375) / (many + 0.25))
        if usual is None or self._standard_errors(self.best, usual) > max(1.0, by_chance):
            return self._cheapest(self.best, 1.0)
        return usual

    def _cheapest(self, best: Outcome, apart: float) -> Outcome:
        """Return the simplest candidate that is worse than the best by at most so many standard errors."""
        level = [
            outcome
            for outcome in self._outcomes[best.rung].values()
            if outcome.complexity <= best.complexity and self._standard_errors(best, outcome) <= apart
        ]
        return min([best, *level], key=lambda outcome: (outcome.complexity, -outcome.value))

    def _cheapest_first(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Sort candidates by the time of a pass in powers of two; those that mostly pay come first among equals."""
        return sorted(candidates, key=lambda one: round(min(math.log2(max(self._arena.complexity(one), 1.0)), 99)))

    def _standard_errors(self, better: Outcome, worse: Outcome) -> float:
        """Return by how many standard errors one is better than the other."""
        if better is worse:
            return 0.0
        difference, error = self._arena.difference(better, worse)
        return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0

    def _over(self, limit: float) -> bool:
        perfect = self.leader is not None and self.leader.value >= self._arena.ceiling
        return perfect or self._stopped() or self.spent >= limit

    @property
    def _leading(self) -> Outcome:
        """The leader, once there is one."""
        assert self.leader is not None
        return self.leader

    def _expected(self, candidate: Candidate, rung: int, like: Outcome | None, thorough: bool) -> float:
        """Estimate the work of a judgement from one of the same candidate on another rung, or from the leader's."""
        arena = self._arena
        same = (outcomes[candidate] for outcomes in reversed(self._outcomes) if candidate in outcomes)
        known = next(same, self.leader)
        if known is None:
            return 0.0
        ratio = arena.complexity(candidate) / max(known.complexity, 1.0)
        settings = arena.settings(candidate, like, thorough) / known.settings
        cost = known.work if self._began is None else known.seconds
        return cost * arena.fitted[rung] / arena.fitted[known.rung] * max(ratio, 0.2) * settings

    def _judge(
        self, candidate: Candidate, rung: int, limit: float, like: Outcome | None, thorough: bool = False
    ) -> Outcome | None:
        """Return the outcome of a candidate on a rung, judged now unless it is known or not affordable."""
        known = self._outcomes[rung].get(candidate)
        if (known is not None and not thorough) or (candidate, rung, thorough) in self._failed:
            return known
        if self._over(limit):
            return None
        left = self.total - self.spent
        most = min(LARGEST_SHARE * self.total, left)
        if self._expected(candidate, rung, like, thorough) > min(most, 1.5 * (limit - self.spent)):
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
            self._work += outcome.work
        if self.leader is None:
            self.leader = outcome
        self._listener.judged(outcome)
        return outcome

    def _settle(self, limit: float) -> None:
        """Search for the prior variances of the leader and of the next best, which may still be those of others."""
        leader = self._leading
        rung = leader.rung
        level = [one for one in self.on(rung) if self._standard_errors(leader, one) <= 1.0 and one is not leader]
        for outcome in [leader, *level[:1]]:
            if (outcome.candidate, rung) in self._settled:
                continue
            found = self._judge(outcome.candidate, rung, limit, outcome, thorough=True)
            if found is not None and found.value > self._leading.value:
                self.leader = found

    def _refine(self, rung: int, limit: float) -> None:
        """Change the leader in one choice at a time, as long as that helps and the limit is not reached."""
        tried: set[Candidate] = set()
        while not self._over(limit):
            begun_with = self._leading
            fresh = self._cheapest_first(one for one in self._neighbours(begun_with.candidate) if one not in tried)
            if not fresh:
                return
            for candidate in fresh:
                tried.add(candidate)
                if self._over(limit):
                    return
                self._challenge(candidate, rung, limit)
                if self.leader is not begun_with:
                    break

    def _challenge(self, candidate: Candidate, rung: int, limit: float) -> None:
        """Judge a change of the leader, first on the rung before if that saves much; the better one leads."""
        leader = self._leading
        expected = self._expected(candidate, rung, leader, False)
        smaller = rung > 0 and self._arena.fitted[rung - 1] < self._arena.fitted[rung] / 2
        if smaller and expected > SCREENED_SHARE * self.total:
            below = self._outcomes[rung - 1].get(leader.candidate)
            below = below or self._judge(leader.candidate, rung - 1, limit, leader)
            screened = None if below is None else self._judge(candidate, rung - 1, limit, below)
            if below is None or screened is None or screened.value < below.value:
                return
        outcome = self._judge(candidate, rung, limit, leader)
        if outcome is None:
            return
        needed = DEARER_GAIN if outcome.complexity > leader.complexity else 0.0
        if outcome.value > leader.value and self._standard_errors(outcome, leader) > needed:
            self.leader = outcome

    def _survivors(self, rung: int) -> list[Candidate]:
        """Return the candidates that go on to the next rung, the best first."""
        leader = self._leading
        ranked = [outcome for outcome in self.on(rung) if outcome.candidate != leader.candidate]
        count = max(KEPT_LEAST, math.ceil(KEPT_SHARE * (len(ranked) + 1)))
        hopeful = [one for one in ranked if self._standard_errors(leader, one) <= HOPELESS]
        going = [outcome.candidate for outcome in [leader, *hopeful][:count]]
        usual = self._outcomes[rung].get(self._seeds[0])
        if usual is not None and usual.candidate not in going and self._standard_errors(leader, usual) <= CLEARLY:
            going.append(usual.candidate)  # for the comparison in `choice`
        return going
