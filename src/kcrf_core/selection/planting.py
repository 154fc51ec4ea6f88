"""Kinds of errors of spans, and such errors planted in the labels of data.

There are four kinds for each of the most frequent types: `missed` (O instead of a span), `spurious` (a span instead of
O), `boundary` (another label of the same type) and `type` (another type).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..scoring import SCHEMES, Scheme, SpanFinder, Spans, detect_scheme, split_label, tell_iob_apart

SPAN_KINDS = ("missed", "spurious", "boundary", "type")
MISSED, SPURIOUS, BOUNDARY, TYPE = range(4)
MOST_GROUPS = 4  # of types: the most frequent ones, and all others
OUTSIDE = ("O", "")
REST = "other"


@dataclass(frozen=True, eq=False)
class ErrorKinds:
    """Kinds of errors among some labels."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    table: np.ndarray  # [Y, Y] number of the kind by which the true label y became g; -1 on the diagonal
    groups: np.ndarray  # [Y] group of the type of each label; -1 of O

    @classmethod
    def of(cls, labels: Sequence[str], counts: np.ndarray) -> ErrorKinds:
        """Return the kinds of labels of a scheme, which occur so often [Y]; several may be O."""
        parts = [split_label(label) or OUTSIDE for label in labels]
        total: dict[str, int] = {}
        for (letter, name), count in zip(parts, counts.tolist(), strict=True):
            if letter != "O":
                total[name] = total.get(name, 0) + count
        ordered = sorted(total, key=lambda name: (-total[name], name))
        names = ordered if len(ordered) <= MOST_GROUPS else [*ordered[: MOST_GROUPS - 1], REST]
        types = np.array([-1 if letter == "O" else ordered.index(name) for letter, name in parts])
        groups, G = np.minimum(types, len(names) - 1), len(names)
        table = np.where(types[:, None] == types, BOUNDARY, TYPE) * G + groups[:, None]
        table[types < 0], table[:, types < 0] = SPURIOUS * G + groups, (MISSED * G + groups)[:, None]
        table[np.ix_(types < 0, types < 0)] = MISSED * G  # another label in the place of O
        np.fill_diagonal(table, -1)
        kinds = [f"{kind} {name}".rstrip() for kind in SPAN_KINDS for name in names]
        return cls(tuple(labels), tuple(kinds), table, groups)

    def plant(
        self, kind: int, gold: np.ndarray, offsets: np.ndarray, share: float, rng: np.random.Generator
    ) -> np.ndarray:
        """Return labels [N] with errors of a kind in this share of the spans; -1 stays, an unknown label."""
        G = int(self.groups.max(initial=0)) + 1
        return _SpanPlanter(self, gold, offsets, kind % G, share, rng).plant(kind // G)


class _SpanPlanter:
    def __init__(
        self,
        kinds: ErrorKinds,
        gold: np.ndarray,
        offsets: np.ndarray,
        group: int,
        share: float,
        rng: np.random.Generator,
    ):
        labels = kinds.labels
        finder = SpanFinder(labels)
        parts = [split_label(label) or OUTSIDE for label in labels]
        # Of several labels that count as O, the most frequent one is O.
        numbers = np.bincount(gold[gold >= 0], minlength=len(labels))
        order = np.argsort(numbers, kind="stable").tolist()
        self.number = {OUTSIDE if parts[y][0] == "O" else parts[y]: y for y in order}
        self.out, self.offsets, self.rng, self.types = gold.copy(), offsets, rng, finder.types
        # A label that no model knows counts as O here, or as the first label where there is no O.
        self.spans: Spans = finder.find(np.where(gold < 0, self.number.get(OUTSIDE, 0), gold), offsets)
        self.scheme: Scheme = SCHEMES[tell_iob_apart(detect_scheme(labels) or "", self.spans)]
        self.parts, self.begins = parts, set(offsets.tolist())
        mine = np.flatnonzero(kinds.groups[gold[self.spans.starts]] == group)
        n = len(mine)
        self.chosen = np.sort(rng.choice(mine, min(max(round(share * n), 20), n), replace=False))

    def plant(self, kind: int) -> np.ndarray:
        work = {MISSED: self._miss, SPURIOUS: self._invent, BOUNDARY: self._move, TYPE: self._rename}[kind]
        if OUTSIDE in self.number or kind == TYPE:
            last = -3
            for r in self.chosen.tolist():
                if r > last + 2 or kind == SPURIOUS:  # neighbours stay, so that no two errors meet
                    last = r
                    work(r)
        return self.out

    def _write(self, start: int, end: int, kind: str) -> bool:
        """Put a span there; False, and nothing is written, if one of its labels does not occur."""
        letters = ["B"] + ["I"] * (end - start - 1)
        if self.scheme.closed:
            closing, single = "ES" if "E" in self.scheme.letters else "LU"
            letters[-1] = closing if len(letters) > 1 else single
        elif not self.scheme.follows(
            self.parts[self.out[start - 1]] if start not in self.begins else OUTSIDE, ("B", kind)
        ):
            letters[0] = "I"
        codes = [self.number.get((letter, kind), -1) for letter in letters]
        if min(codes) < 0 or (self.out[start:end] < 0).any():
            return False
        self.out[start:end] = codes
        return True

    def _clear(self, start: int, end: int) -> None:
        own = self.out[start:end]
        own[own >= 0] = self.number[OUTSIDE]

    def _of(self, r: int) -> tuple[int, int, str]:
        return int(self.spans.starts[r]), int(self.spans.ends[r]), self.types[self.spans.kinds[r]]

    def _miss(self, r: int) -> None:
        self._clear(*self._of(r)[:2])

    def _invent(self, r: int) -> None:
        """Put a span of the length and type of another one where there is O, if a few trials find a place."""
        start, end, kind = self._of(r)
        for t in self.rng.integers(len(self.out), size=50).tolist():
            last = int(self.offsets[np.searchsorted(self.offsets, t, side="right")])
            if t + end - start <= last and (self.out[t : t + end - start] == self.number[OUTSIDE]).all():
                self._write(t, t + end - start, kind)
                return

    def _rename(self, r: int) -> None:
        start, end, _ = self._of(r)
        kinds = self.spans.kinds[self.spans.kinds != self.spans.kinds[r]]
        if len(kinds):
            self._write(start, end, self.types[kinds[self.rng.integers(len(kinds))]])

    def _move(self, r: int) -> None:
        """Move one end by one position; a neighbouring span loses what this one gains."""
        start, end, kind = self._of(r)
        s = int(np.searchsorted(self.offsets, start, side="right"))
        ways = [(start, end - 1), (start + 1, end)] if end - start > 1 else []
        ways += [(start, end + 1)] if end < self.offsets[s] else []
        ways += [(start - 1, end)] if start > self.offsets[s - 1] else []
        if not ways:
            return
        first, last = ways[self.rng.integers(len(ways))]
        before = self.out.copy()
        self._clear(start, end)
        done = self._write(first, last, kind)
        for other in (r - 1, r + 1):  # what is left of a neighbour
            if done and 0 <= other < len(self.spans.starts):
                begin, stop, own = self._of(other)
                if begin < last and first < stop and stop - begin > 1:
                    done = self._write(begin + (other > r), stop - (other < r), own)
        if not done:
            self.out = before
