"""Successive halving over rungs of data, with a greedy refinement on each: the best candidate for a given effort.

Candidates are judged on the first rung (a subset of the data), the better ones and the default one also on the next,
larger one. On each rung the best candidate, the leader, is changed in one choice at a time. Comparisons are paired:
differences have a standard error over the units that both were judged by. The best of many is better by chance, too,
and a candidate whose training takes longer must be clearly better: see `Search.choice`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import NormalDist, median

from ..scoring import Yardstick
from .arena import LARGEST_SHARE, CorpusArena, Outcome
from .space import Candidate

# Share of the candidates of a rung that go on to the next one, and their least number.
KEPT_SHARE, KEPT_LEAST = 1 / 3, 3
# Candidates that are worse than the best by so many standard errors do not go on.
HOPELESS = 2.0
# A candidate whose training takes so many times as long as that of another must be better at this level of
# significance, divided by the number of candidates (Bonferroni); less is asked if it takes less.
MUCH_LONGER, SIGNIFICANCE = 10.0, 0.05
# At most this share of the total is kept for training the chosen candidate.
TRAINING_SHARE = 0.5
# A slower candidate replaces the leader only if it is better by this part of a standard error.
DEARER_GAIN = 0.5
# Changes of the leader are tried on the rung before first if a judgement takes this share of all work.
SCREENED_SHARE = 0.02
# The first candidate gets a search for the prior variance of each term if that takes at most this share.
FIRST_SHARE = 0.1
# Each rung may take so many times the work of the one before, of what is left; the first one at least this share.
SHARE_FACTOR, SEED_SHARE = 2.0, 0.5


class Listener:
    """Receiver of the events of a search; this one ignores them."""

    def rung(self, number: int, positions: int, candidates: int) -> None:
        """Begin a rung with so many candidates."""

    def begin(self, search: Search, title: Callable[[Candidate], str], yardstick: Yardstick) -> None:
        """Begin a search; `title` names candidates."""

    def judging(self, candidate: Candidate, rung: int) -> None:
        """Begin a judgement."""

    def judged(self, outcome: Outcome) -> None:
        """Receive a judgement."""

    def left_out(self, candidates: Sequence[Candidate], rung: int) -> None:
        """Receive the candidates for whose judgement on a rung too little work or time is left."""

    def note(self, text: str) -> None:
        """Receive a remark for the user."""


class Search:
    """A search from some candidates, the default one first: all outcomes so far, and the candidate to try next.

    It may spend `total`: work, which is the same on every machine, or seconds of the `clock` since `began`. Training
    the chosen candidate on all data counts, too.
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
        clock: Callable[[], float] = time.perf_counter,
        first: int = 1,  # seeds that are judged in this order, whatever they cost
    ):
        self._seeds, self._neighbours, self._arena, self.total = list(dict.fromkeys(seeds)), neighbours, arena, total
        self._listener, self._stopped, self._began, self._work = listener, stopped, began, 0.0
        self._setting, self._clock, self._first, self.sizes = setting, clock, first, arena.sizes
        self._outcomes: list[dict[Candidate, Outcome]] = [{} for _ in arena.sizes]
        self.history: list[Outcome] = []  # all outcomes, as they came
        self._failed: set[tuple[Candidate, int, bool]] = set()
        self._searched: set[tuple[Candidate, int]] = set()  # whose prior variances were all searched for
        self.leader: Outcome | None = None  # the best so far, on the highest rung that one was judged on
        self.short_of_work = False  # True once a candidate was left out of a rung

    @property
    def spent(self) -> float:
        """Work or seconds that the search has taken."""
        return self._work if self._began is None else self._clock() - self._began

    def unit(self, kind: str) -> float:
        """Return the cost of a unit of work: 1, or the seconds that it took for candidates of a kind, or of any.

        They are the median over the largest rung that there are judgements on: on small ones, much time is not spent
        in passes.
        """
        if self._began is None:
            return 1.0
        known = [one for one in self.history if not one.repeated and min(one.work, one.fit_seconds) > 0]
        alike = [one for one in known if one.kind == kind] or known
        last = max((one.rung for one in alike), default=0)
        return median([one.fit_seconds / one.work for one in alike if one.rung == last] or [1e-9])

    def training(self, candidate: Candidate) -> float:
        """Estimate the cost of training a candidate on all data, by its own judgements or by those of the leader."""
        known, ratio = self._latest(candidate), 1.0
        if known is None:
            if self.leader is None:
                return 0.0
            known = replace(self.leader, kind=self._arena.kind(candidate))
            ratio = self._arena.complexity(candidate) / max(self._arena.complexity(known.candidate), 1.0)
        return known.training * ratio * self.unit(known.kind)

    @property
    def available(self) -> float:
        """The total without the training of the leader."""
        most = TRAINING_SHARE * self.total
        return self.total - (0.0 if self.leader is None else min(self.training(self.leader.candidate), most))

    @property
    def share_spent(self) -> float:
        """Share of the total that the search has taken."""
        return min(self.spent / self.total, 1.0)

    def _latest(self, candidate: Candidate) -> Outcome | None:
        """Return the outcome of a candidate on the highest rung that it was judged on."""
        return next((outcomes[candidate] for outcomes in reversed(self._outcomes) if candidate in outcomes), None)

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
        default = self._seeds[0]
        leading = self._seeds[: self._first]
        going = [*leading, *self._cheapest_first(self._seeds[self._first :])]
        for rung, positions in enumerate(self.sizes):
            share = shares[rung] / math.fsum(shares[rung:])
            limit = self.spent + (self.available - self.spent) * (share if rung else max(share, SEED_SHARE))
            if self._over(self.total):
                break
            leader = self.leader
            # The leader and the default, or another candidate, must be affordable on the next rung.
            if leader is not None:
                both = [self._expected(one, rung, self._latest(one), False) for one in (leader.candidate, default)]
                if math.fsum(both) > self.available - self.spent or max(both) > LARGEST_SHARE * self.total:
                    self._refine(rung - 1, self.total)
                    self._search_priors(self.total)
                    break
            # On a rung, others are compared with these, which are judged first.
            compared = leading if leader is None else self._with_default(leader)
            self._listener.rung(rung, positions, len(going))
            waiting = []
            for candidate in going:
                before = self._outcomes[rung - 1].get(candidate) if rung else self.leader
                most = self.total if candidate in compared or not self._outcomes[rung] else limit
                first = self._setting * self._arena.settings(candidate, None, True) <= FIRST_SHARE * self.total
                outcome = self._judge(candidate, rung, most, before, thorough=self.leader is None and first)
                if outcome is None:
                    waiting.append(candidate)
                    if leader is not None and candidate in compared:
                        break  # the choice is made on the rung below
                elif leader is None or leader.candidate in self._outcomes[rung]:
                    self.leader = self.on(rung)[0]
            if waiting and self.leader is not None:
                self._listener.left_out(waiting, rung)
            self.short_of_work = self.short_of_work or bool(waiting)
            if self.leader is None or self.leader.rung < rung:
                break
            self.leader = self._cheapest(self.leader, DEARER_GAIN)
            self._search_priors(limit)
            self._refine(rung, limit)
            self._search_priors(limit)
            going = self._survivors(rung)
        return self.choice()

    def _with_default(self, leader: Outcome) -> list[Candidate]:
        """Return the default, unless it could not be judged so far, and the leader."""
        known = [self._seeds[0]] if self._latest(self._seeds[0]) is not None else []
        return list(dict.fromkeys([*known, leader.candidate]))

    @property
    def compared(self) -> bool:
        """True if candidates were compared, or none was left out for lack of work or time."""
        return not self.short_of_work or any(len(level) > 1 for level in self._outcomes)

    @property
    def usual(self) -> Outcome | None:
        """The outcome of the default candidate on the rung of the best one."""
        return None if self.best is None else self._outcomes[self.best.rung].get(self._seeds[0])

    def choice(self) -> Outcome | None:
        """Return the outcome to choose on the highest rung: the default one unless another is clearly better.

        A candidate replaces the default one if it is better by more than the best of as many equal ones would be by
        chance. Among these, one whose training takes longer must be the more clearly better, the longer it takes.
        Training must be possible in the rest of the time.
        """
        best, usual = self.best, self.usual
        if best is None:
            return None
        level = list(self._outcomes[best.rung].values())
        # The expected maximum of so many standard normal numbers, by Blom's approximation: the lead of the best
        # candidate, in standard errors, if all are equally good.
        by_chance = max(NormalDist().inv_cdf((len(level) - 0.375) / (len(level) + 0.25)), 1.0)
        left = self.total - self.spent
        better = [
            one
            for one in level
            if (one is self.leader or self.training(one.candidate) <= left)
            and (usual is None or (one is not usual and self._replaces(one, usual, by_chance)))
        ]
        if not better:
            return usual or min(level, key=lambda one: one.training)
        chosen, *longer = sorted(better, key=lambda one: (one.training, -one.value))
        for one in longer:
            if self._replaces(one, chosen, 0.0):
                chosen = one
        return chosen

    def _replaces(self, one: Outcome, other: Outcome, least: float) -> bool:
        """Return True if one is better than the other by enough standard errors for the time that its training takes.

        These are `least` if it takes as long as the other.
        """
        many = len(self._outcomes[one.rung])
        clear = max(NormalDist().inv_cdf(1 - SIGNIFICANCE / many), least)
        longer = math.log(max(one.training / max(other.training, 1e-300), 1.0), MUCH_LONGER)
        return self._standard_errors(one, other) > least + min(longer, 1.0) * (clear - least)

    def _cheapest(self, best: Outcome, apart: float) -> Outcome:
        """Return the candidate with the shortest training that is worse than the best by at most so many errors."""
        level = [
            outcome
            for outcome in self._outcomes[best.rung].values()
            if outcome.training <= best.training and self._standard_errors(best, outcome) <= apart
        ]
        return min([best, *level], key=lambda outcome: (outcome.training, -outcome.value))

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
        return perfect or self._stopped() or self.spent >= min(limit, self.available)

    @property
    def _leading(self) -> Outcome:
        """The leader, once there is one."""
        assert self.leader is not None
        return self.leader

    def _expected(self, candidate: Candidate, rung: int, like: Outcome | None, thorough: bool) -> float:
        """Estimate the work of a judgement from one of the same candidate on another rung, or from the leader's."""
        arena = self._arena
        known = self._latest(candidate) or self.leader
        if known is None:
            return 0.0
        ratio = arena.complexity(candidate, rung) / max(arena.complexity(known.candidate, known.rung), 1.0)
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
        most = min(LARGEST_SHARE * self.total, self.available - self.spent)
        expected = self._expected(candidate, rung, like, thorough)
        # An estimate may be wrong, and the clock ends a judgement that takes too long: a given one is always begun.
        begun = self._began is not None and not rung and candidate in self._seeds[: self._first]
        if not begun and expected > min(most, 1.5 * (limit - self.spent)):
            return None
        # Leader and default are compared on the largest rung there is time for, even if there is none to train them.
        compared = (self._seeds[0], None if self.leader is None else self.leader.candidate)
        untrained = expected + self.training(candidate) > self.total - self.spent
        if not begun and candidate not in compared and untrained:
            return None  # it could not be trained
        if thorough:
            self._searched.add((candidate, rung))
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

    def _search_priors(self, limit: float) -> None:
        """Search for prior variances, which may be those of others, of the leader, the next best and the default."""
        leader = self._leading
        rung = leader.rung
        level = [one for one in self.on(rung) if self._standard_errors(leader, one) <= 1.0 and one is not leader]
        usual = self._outcomes[rung].get(self._seeds[0])
        close = [usual] if usual is not None and self._standard_errors(leader, usual) <= HOPELESS else []
        for outcome in (leader, *level[:1], *close):
            if (outcome.candidate, rung) in self._searched:
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
        smaller = rung > 0 and self._arena.fitted[rung - 1] < self._arena.fitted[rung] / 2
        if smaller and self._expected(candidate, rung, leader, False) > SCREENED_SHARE * self.total:
            below = self._outcomes[rung - 1].get(leader.candidate)
            below = below or self._judge(leader.candidate, rung - 1, limit, leader)
            screened = None if below is None else self._judge(candidate, rung - 1, limit, below)
            if below is None or screened is None or screened.value < below.value:
                return
        outcome = self._judge(candidate, rung, limit, leader)
        if outcome is None:
            return
        needed = DEARER_GAIN if outcome.training > leader.training else 0.0
        if outcome.value > leader.value and self._standard_errors(outcome, leader) > needed:
            self.leader = outcome

    def _survivors(self, rung: int) -> list[Candidate]:
        """Return the candidates that go on to the next rung, the best first."""
        leader = self._leading
        ranked = [outcome for outcome in self.on(rung) if outcome.candidate != leader.candidate]
        count = max(KEPT_LEAST, math.ceil(KEPT_SHARE * (len(ranked) + 1)))
        hopeful = [one for one in ranked if self._standard_errors(leader, one) <= HOPELESS]
        going = [outcome.candidate for outcome in [leader, *hopeful][:count]]
        # The default first, which all others are compared with, and the leader, so that the best is never lost.
        return list(dict.fromkeys([self._seeds[0], leader.candidate, *going]))
