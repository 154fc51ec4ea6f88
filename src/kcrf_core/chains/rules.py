"""Rules that hold for whole sequences: how many runs of a label there may be, which must occur, allowed transitions.

Transitions are only checked here; for others, potentials have minus infinity where they are not allowed.

Counters of runs are an automaton, whose states are all counts. The best labelling that obeys is found by best-first
search (`_rules.pyx`), which needs few of the states. Probabilities sum over all of them: with w = exp of potentials and
c' the counts c with one more run where (y, y') begins one,

    beta_{t-1}(y, c) = sum_{y'} w_t(y, y') beta_t(y', c').

States of a second-order chain are pairs: messages are [J, M, I] for the label j, counts m and the label i before j. In
a chain of first order J is 1 and I are its labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..scoring import Transitions
from . import _rules, chain
from ._rules import Counters
from .chain import Edges, Labellings

EXACT, LIMITED, IMPOSSIBLE, NONE_FOUND = _rules.EXACT, _rules.LIMITED, _rules.IMPOSSIBLE, _rules.NONE_FOUND
MOST_STATES = 1 << 16  # counts that are summed over


@dataclass(frozen=True)
class RunRules:
    """Numbers of runs that sequences may have: counters, each of some labels, and their limits."""

    group: np.ndarray  # [Y] int32, the counter of each label, or -1
    apart: np.ndarray  # [Y, Y] bool, pairs of neighbouring labels between which runs end and begin
    most: np.ndarray  # [G] int32, the most runs; -1: any number
    required: np.ndarray  # [G] bool, counters that must not be zero
    transitions: Transitions | None = None  # those that are allowed; None: all

    def __reduce__(self) -> tuple[object, ...]:  # without what follows from these
        return RunRules, (self.group, self.apart, self.most, self.required, self.transitions)

    @property
    def counting(self) -> bool:
        """True if runs of any label are counted."""
        return bool((self.group >= 0).any())

    @cached_property
    def _caps(self) -> np.ndarray:
        """Largest counts [G]; unbounded ones only tell whether there is a run."""
        return np.where(self.most < 0, 1, self.most).astype(np.int32)

    @property
    def states(self) -> int:
        """Number of states of the automaton."""
        return int(np.prod(self._caps.astype(object) + 1))

    @cached_property
    def counters(self) -> Counters:
        """The rules as compiled code has them."""
        bits = [int(cap).bit_length() or 1 for cap in self._caps]
        word, shift, at = [], [], 0
        for width in bits:
            at += -at % 64 if at % 64 + width > 64 else 0
            word.append(at // 64)
            shift.append(at % 64)
            at += width
        at_word, at_bit = (np.array(values, dtype=np.int32) for values in (word, shift))
        fields = np.array([(1 << width) - 1 for width in bits], dtype=np.uint64)
        ends = np.ascontiguousarray(self.apart & (self.group >= 0)[:, None]).view(np.uint8)
        bounded, required = (np.ascontiguousarray(flags).view(np.uint8) for flags in (self.most >= 0, self.required))
        arrays = self.group, ends, at_word, at_bit, fields, self._caps, bounded, required
        steps = self.transitions or Transitions.every(len(self.group))
        allowed = (np.ascontiguousarray(part).view(np.uint8) for part in (steps.pairs, steps.first, steps.last))
        return Counters(*arrays, at // 64 + 1, *allowed)

    def obeyed(self, labels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Return sequences whose labels [n] obey, [S] bool."""
        out = np.ones(len(offsets) - 1, dtype=np.uint8)
        if len(labels):
            labels = chain._checked_labels(labels, len(labels), len(self.group))
            _rules.obeyed(self.counters, labels, chain._checked_offsets(offsets, len(labels)), out)
        return out.view(bool)

    def best_labellings(
        self,
        scores: np.ndarray,
        edges: Edges,
        offsets: np.ndarray,
        wanted: np.ndarray,
        number: int,
        limit: int,
    ) -> tuple[list[Labellings], np.ndarray]:
        """Return the best labellings that obey of the sequences `wanted` [s], none of them empty, and a status each."""
        n, Y, offsets = chain._checked(scores, edges, offsets)
        layout, s = edges.states(), len(wanted)
        longest = int(np.diff(offsets).max(initial=0))
        room = np.empty(longest * max(Y, 0 if layout is None else len(layout.first)) + Y)
        paths, totals = np.empty((number, n), dtype=np.int32), np.empty((s, number))
        found, status = np.empty(s, dtype=np.int64), np.empty(s, dtype=np.uint8)
        potentials, wanted = edges.potentials(layout), np.ascontiguousarray(wanted, dtype=np.int64)
        whole = np.ascontiguousarray(scores, dtype=np.float64)
        _rules.search(
            potentials, self.counters, whole, offsets, wanted, number, limit, paths, totals, found, status, room
        )
        lists = [
            Labellings(paths[:count, offsets[k] : offsets[k + 1]], totals[r, :count])
            for r, (k, count) in enumerate(zip(wanted.tolist(), found.tolist(), strict=True))
        ]
        return lists, status

    def marginals(self, scores: np.ndarray, edges: Edges) -> np.ndarray:
        """Return p(y_t | x, rules) of one sequence, [T, Y]."""
        steps = _Steps.of(scores, edges)
        beta = list(_backward(self, steps))[::-1]
        out = np.zeros(scores.shape)
        for t, alpha in enumerate(_forward(self, steps, beta)):
            out[t + steps.skipped] = alpha.sum(axis=(1, 2) if steps.second else (0, 1))
            if steps.second and t == 0:
                out[0] = alpha.sum(axis=(0, 1))
        return out / out.sum(axis=1, keepdims=True)

    @cached_property
    def _after(self) -> np.ndarray:
        """Return counts after one more run of each label, [M, Y], -1 where that is forbidden."""
        numbers, strides = np.arange(self.states), np.append(1, np.cumprod(self._caps + 1))
        out = np.repeat(numbers[:, None], len(self.group), axis=1)
        for g, cap in enumerate(self._caps.tolist()):
            full = (numbers // strides[g]) % (cap + 1) == cap
            after = np.where(full, -1 if self.most[g] >= 0 else numbers, numbers + strides[g])
            out[:, self.group == g] = after[:, None]
        return out

    @cached_property
    def _ending(self) -> np.ndarray:
        """Return 0 for counts that a sequence may end with, else minus infinity, [M]."""
        numbers, good = np.arange(self.states), np.ones(self.states, dtype=bool)
        strides = np.append(1, np.cumprod(self._caps + 1))
        for g in np.flatnonzero(self.required):
            good &= (numbers // strides[g]) % (self._caps[g] + 1) > 0
        return np.where(good, 0.0, -np.inf)

    @property
    def _begins(self) -> np.ndarray:
        """Return pairs of labels with which a counted run begins, [Y, Y] bool."""
        return self.apart & (self.group >= 0)


@dataclass(frozen=True)
class _Steps:
    """Log potentials of one sequence, between states."""

    second: bool
    start: np.ndarray  # [J, I] of the first states
    end: np.ndarray  # [J, I] of the last ones
    tables: list[np.ndarray]  # [J, I, K] of each step from a state to the next label
    skipped: int  # positions that the first state has before its last label

    @classmethod
    def of(cls, scores: np.ndarray, edges: Edges) -> _Steps:
        stacked, T = edges.stacked(), len(scores)
        into = [stacked[t % len(stacked)] + scores[t] for t in range(T)]  # [Y, Y] each
        first = edges.start + scores[0]
        if edges.triples is None or T == 1:
            return cls(False, first[None], edges.end[None], [table[None] for table in into[1:]], 0)
        triples = edges.triples.transpose(1, 0, 2)  # [j, i, k]
        end = np.repeat(edges.end[:, None], len(edges.end), axis=1)
        return cls(True, (first[:, None] + into[1]).T, end, [triples + own[:, None] for own in into[2:]], 1)


def _following(beta: np.ndarray, second: bool) -> np.ndarray:
    """Return messages of the next position by the label before it: [J, M, K]."""
    return beta.transpose(2, 1, 0) if second else beta


def _split(rules: RunRules, table: np.ndarray, second: bool) -> list[np.ndarray]:
    """Return log potentials of steps that begin no counted run, and of those that do."""
    begins = rules._begins[:, None] if second else rules._begins[None]
    return [np.where(begins == one, table, -np.inf) for one in (False, True)]


def _backward(rules: RunRules, steps: _Steps) -> Iterator[np.ndarray]:
    """Yield messages [J, M, I] from the last position to the first."""
    beta = steps.end[:, None] + rules._ending[:, None]
    yield beta
    after, labels = rules._after, np.arange(len(rules.group))
    for table in reversed(steps.tables):
        behind = _following(beta, steps.second)
        counted = np.where(after >= 0, behind[:, after, labels], -np.inf)
        stay, begin = _split(rules, table, steps.second)
        beta = np.logaddexp(_log_product(behind, stay), _log_product(counted, begin))
        yield beta


def _log_product(behind: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return log sum_k exp(behind[j, m, k] + table[j, i, k]); rows are scaled, so that only tiny terms are lost."""
    top, shift = behind.max(axis=2, keepdims=True), table.max()
    top, shift = np.where(np.isfinite(top), top, 0.0), shift if np.isfinite(shift) else 0.0
    with np.errstate(divide="ignore", under="ignore"):
        return np.log(np.exp(behind - top) @ np.exp(table - shift).transpose(0, 2, 1)) + (top + shift)


def _begun(rules: RunRules, steps: _Steps, beta: np.ndarray) -> tuple[np.ndarray, float]:
    """Return log weights [J, I] of the first states with their counts [J, I], and the logarithm of their sum."""
    at = _first_counts(rules, steps)
    J, I = np.indices(at.shape)
    weights = np.where(at >= 0, steps.start + beta[J, at, I], -np.inf)
    return weights, float(np.logaddexp.reduce(weights, axis=None))


def _first_counts(rules: RunRules, steps: _Steps) -> np.ndarray:
    """Return the counts of the first states [J, I], -1 where they are forbidden."""
    first = rules._after[0]  # of a run at the first position
    if not steps.second:
        return first[None]
    both = rules._after[first, np.arange(len(first))[:, None]]  # [J, I]
    begins = rules._begins.T  # by j, then i
    return np.where(first < 0, -1, np.where(begins, both, first))


def _forward(rules: RunRules, steps: _Steps, beta: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield p(state, counts | x, rules) [J, M, I] from the first position to the last."""
    weights, total = _begun(rules, steps, beta[0])
    at, alpha = _first_counts(rules, steps), np.zeros(beta[0].shape)
    J, I = np.nonzero(at >= 0)
    alpha[J, at[J, I], I] = np.exp(weights - total)[J, I]
    yield alpha
    after, labels = rules._after, np.arange(len(rules.group))
    for t, table in enumerate(steps.tables, 1):
        behind = _following(beta[t], steps.second)
        # What leaves a state is divided by its message, so that probabilities sum to one.
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(alpha > 0, np.log(alpha) - beta[t - 1], -np.inf)
        stay, begin = (_log_product(scaled, part.transpose(0, 2, 1)) for part in _split(rules, table, steps.second))
        moved = np.exp(stay + np.where(np.isneginf(stay), 0.0, behind))
        for k in labels:
            good = np.flatnonzero(after[:, k] >= 0)
            target = after[good, k]
            own = begin[:, good, k] + behind[:, target, k]
            np.add.at(moved[:, :, k].T, target, np.exp(own).T)
        alpha = _following(moved, steps.second)
        yield alpha
