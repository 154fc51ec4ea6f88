"""Rules that hold for whole sequences: how many runs of a label there may be, which must occur, allowed transitions.

Transitions are only checked here; for others, potentials have minus infinity where they are not allowed.

Counters of runs are an automaton, whose states are all counts. The best labelling that obeys is found by best-first
search (`_rules.pyx`), which needs few of the states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._lazy import cached_property
from ..scoring import Transitions
from . import _rules, chain
from ._rules import Counters
from .chain import Edges, Labellings

EXACT, LIMITED, IMPOSSIBLE, NONE_FOUND = _rules.EXACT, _rules.LIMITED, _rules.IMPOSSIBLE, _rules.NONE_FOUND


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
        self, scores: np.ndarray, edges: Edges, offsets: np.ndarray, wanted: np.ndarray, number: int, limit: int
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
