"""Labels with a bounded delay: label t is decided when line t+K has been read, in memory that does not grow.

Windows look up to `ahead` positions ahead, so that after line t+K scores are known up to line m = t+K-ahead. The label
has the largest marginal given all lines to m, by forward messages before t and backward messages from m on. Where K is
less than `ahead`, m is t, and the window of t ends at t+K. When a sequence ends, the remaining labels are decided given
all of it. A label must be able to follow the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..chains import Edges, Messages, chain
from ..corpora import Corpus, concatenate
from ..encoding import Totals
from ..errors import ConfigError, DataError, NumericError
from .decoding import Decoded, Wishes, constrained, scheme_of
from .model import IMPOSSIBLE, Model

MESSAGES_AT_ONCE = 1 << 18  # numbers


@dataclass
class _Open:
    """State of a sequence that has not ended."""

    read: int = 0
    given: int = 0  # labels that are out
    message: np.ndarray | None = None  # forward, of the last position whose label is out
    label: int = -1  # of that position


class _Scored(NamedTuple):
    """Potentials of positions whose labels are not out."""

    scores: np.ndarray  # [n, Y]
    transitions: np.ndarray | None  # [n, Y, Y] where they look at the input
    lines: np.ndarray  # [n]
    novelty: np.ndarray | None  # [n]

    def rows(self, first: int, last: int) -> _Scored:
        arrays: Any = (None if array is None else array[first:last] for array in self)
        return _Scored(*arrays)


def _joined(parts: Iterable[Iterable[Any]]) -> list[Any]:
    """Return arrays, end to end, that each of the parts has, None for those that none has."""
    return [None if arrays[0] is None else np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


class LagDecoder:
    """A model, and the sequence that it is labelling.

    `feed` takes positions as they come and returns the labels that are due then.
    """

    def __init__(self, model: Model, lag: int, wishes: Wishes, given: Callable[[Corpus], np.ndarray] | None = None):
        self.model, self.lag, self.wishes = model, lag, wishes
        used = {name for term in model.terms for name in term.features}
        whole = model.encoding.features_of_whole_sequences(used)
        if whole:
            raise ConfigError(
                f"feature '{whole[0]}' (position) needs the length of whole sequences, which are "
                "not complete here: leave out the lag, or train a model without this feature",
                settings=["lag"],
            )
        self.behind, self.ahead = model.encoding.reach(used)
        self._wait = min(lag, self.ahead)  # lines after a position before it is scored
        self._horizon = max(lag - self.ahead, 0)  # scored positions after one before its label is out
        self._allowed = None if wishes.scheme is None else scheme_of(model, wishes.scheme)
        if (replace(model, rules=wishes.rules) if wishes.rules is not None else model).label_rules is not None:
            message = "rules are about whole sequences, and labels are given before their sequence is complete"
            raise ConfigError(f"{message}: leave out the lag or the rules", settings=["lag", "no_rules"])
        self._given = given
        self._novelty = None
        if wishes.novelty:
            from .novelty import Novelty

            self._novelty = Novelty(model)
        edges = constrained(np.zeros((1, len(model.labels))), model.used_edges, self._allowed, None)[1]
        self._follows = np.isfinite(edges.transitions)  # [Y, Y]
        self._free = bool(self._follows.all() and np.isfinite(edges.start).all() and np.isfinite(edges.end).all())
        self._starts = np.isfinite(edges.start)
        self._edges = edges
        self._context: Corpus | None = None  # the last positions that windows may still look at
        self._nothing: Corpus | None = None  # a context of no position
        self._totals: dict[str, Totals] = {}  # of groups of numbers, by features
        self._open = _Open()
        self._scored: list[_Scored] = []
        self.missing: Counter[str] = Counter()  # values, by features

    def feed(self, corpus: Corpus, ended: bool) -> Decoded:
        """Return the labels due after some more positions, the first of them in the sequence that is open, if one is.

        The last sequence is complete if `ended`.
        """
        known, corpus = 0, self.model.encoding.scaled_online(corpus, self._totals, self.waiting)
        if self._context is not None:
            known = self._context.positions
            if known and corpus.positions:  # the first sequence continues the one of the context
                corpus = concatenate([replace(self._context, weights=None), replace(corpus, weights=None)])
                corpus = replace(corpus, offsets=np.delete(corpus.offsets, 1))
            elif not corpus.positions:
                corpus = self._context
        out: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []  # labels [n], marginals [n, Y], novelty [n]
        scored = self._score(corpus, known, ended)
        taken = 0
        bounds = corpus.offsets.tolist()
        for s, (first, last) in enumerate(pairwise(bounds)):
            complete = ended or s < corpus.sequences - 1
            before = max(self._open.read - self._wait, 0)  # positions that are scored
            self._open.read += last - max(first, known)
            count = (self._open.read if complete else max(self._open.read - self._wait, 0)) - before
            if count:
                self._scored.append(scored.rows(taken, taken + count))
            taken += count
            out += self._due(complete, corpus.source)
            if complete:
                self._open = _Open()
        self._context = None
        if not ended:
            # Positions that are not scored, and what stands in their windows.
            kept = min(self.behind + self._wait, bounds[-1] - bounds[-2])
            if kept or self._nothing is None:
                rows = np.arange(bounds[-1] - kept, bounds[-1])
                self._context = _gathered(corpus, rows, np.array([0, kept]))
                self._nothing = self._nothing if kept else self._context
            else:
                self._context = self._nothing
        nothing = np.zeros(0, np.int32), np.zeros((0, len(self.model.labels))), None
        labels, node, novelty = _joined(out or [nothing])
        return Decoded(np.array([0, len(labels)]), labels, node if self.wishes.marginals else None, novelty=novelty)

    def end(self) -> Decoded:
        """Return the other labels of the sequence that is open, now complete."""
        assert self._context is not None
        return self.feed(self._context.subset([]), True)

    @property
    def waiting(self) -> bool:
        """True if a sequence is open."""
        return self._context is not None

    def _score(self, corpus: Corpus, known: int, ended: bool) -> _Scored:
        """Return potentials of all positions that can be scored now and could not before."""
        unscored = min(self._open.read, self._wait)  # positions at the end of the context
        first, last = known - unscored, corpus.positions
        if not ended:
            last = max(last - min(self._wait, last - int(corpus.offsets[-2])), first)
        if first == last:
            return _Scored(np.zeros((0, len(self.model.labels))), None, np.zeros(0), None)
        rows, whole = None, corpus
        if self.lag < self.ahead:
            # A sequence for each: positions that it sees of its own sequence, `behind` before it and `lag` after it.
            rows = np.arange(first, last)
            sequence = np.searchsorted(corpus.offsets, rows, side="right") - 1
            begin = np.maximum(rows - self.behind, corpus.offsets[sequence])
            lengths = np.minimum(rows + self.lag + 1, corpus.offsets[sequence + 1]) - begin
            offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            seen = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], lengths)
            corpus, rows = _gathered(corpus, seen, offsets), offsets[:-1] + rows - begin
        dataset = replace(self.model.encoding.encode(corpus), weights=None)
        if dataset.missing:
            # Others may be seen again with what comes next, and each is to be counted once.
            new = _gathered(whole, np.arange(first, last), np.array([0, last - first]))
            self.missing.update(dict(self.model.encoding.encode(new).missing))
        if self._given is not None:
            dataset = replace(dataset, labels=self._given(corpus))
        if rows is None:
            part = replace(dataset, offsets=np.array([0, first, last, dataset.positions])).span(1, 2)
        else:
            part = replace(dataset, offsets=np.arange(dataset.positions + 1)).subset(rows)
        scores, edges = self.model.potentials(part)
        scores, edges = constrained(scores, edges, self._allowed, part.labels if self._given is not None else None)
        own = edges.transitions if edges.transitions.ndim == 3 else None
        return _Scored(scores, own, part.lines, None if self._novelty is None else self._novelty.of(part))

    def _due(self, complete: bool, source: str) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
        """Decide all labels that are due: yield labels, marginals and novelty of runs of positions."""
        due = max(self._open.read - self.lag, 0) - self._open.given
        if not self._scored or (due <= 0 and not complete):
            return
        pending = _Scored(*_joined(self._scored))
        self._scored = []
        at_once = max(MESSAGES_AT_ONCE // len(self.model.labels) ** self.model.order, 1)
        try:
            while due > 0:
                count = min(at_once, due)
                yield self._decided(pending.rows(0, count + self._horizon), count)
                pending, due = pending.rows(count, len(pending.scores)), due - count
            if complete and len(pending.scores):
                yield self._decided_to_the_end(pending)
        except NumericError:
            raise DataError(IMPOSSIBLE, source, int(pending.lines[0])) from None
        if not complete:
            self._scored = [pending]

    def _decided(self, rows: _Scored, due: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Decide the first `due` labels, given all of these positions."""
        state, edges = self._open, self._edges_of(rows)
        messages = Messages.of(rows.scores[:due], edges, state.message)
        node = messages.marginals(rows.scores, edges, self._horizon)
        values = node if self.wishes.costs is None else node * self.wishes.costs
        if self._free:
            labels = values.argmax(axis=1).astype(np.int32)
        else:
            labels = np.empty(due, dtype=np.int32)
            label = state.label
            for t in range(due):
                follows = self._starts if label < 0 else self._follows[label]
                possible = follows & (node[t] > 0)
                if not possible.any():
                    # A given label, or one that is next to impossible, leaves none that may follow.
                    possible = node[t] > 0 if self._given is not None or not follows.any() else follows
                labels[t] = label = int(np.where(possible, values[t], -1.0).argmax())
        state.given += due
        state.message, state.label = messages.last, int(labels[-1])
        return labels, node, None if rows.novelty is None else rows.novelty[:due]

    def _edges_of(self, rows: _Scored) -> Edges:
        return self._edges if rows.transitions is None else replace(self._edges, transitions=rows.transitions)

    def _decided_to_the_end(self, rest: _Scored) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Decide the last labels of a sequence, given all of it."""
        state, edges = self._open, self._edges_of(rest)
        node = Messages.to_the_end(state.message, rest.scores, edges)
        offsets = np.array([0, len(rest.scores)])
        reached = edges if state.label < 0 else replace(edges, start=np.where(self._follows[state.label], 0.0, -np.inf))
        try:
            labels = chain.posterior_labels(node, rest.scores, reached, offsets, self.wishes.costs)
        except NumericError:
            # Labels that are already out cannot be ended as the scheme or given labels demand.
            labels = (node if self.wishes.costs is None else node * self.wishes.costs).argmax(axis=1).astype(np.int32)
        return labels, node, rest.novelty


def _gathered(corpus: Corpus, rows: np.ndarray, offsets: np.ndarray) -> Corpus:
    """Return some positions of a corpus as sequences with these offsets."""
    alone = replace(corpus, weights=None, offsets=np.arange(corpus.positions + 1))
    return replace(alone.subset(rows), offsets=offsets)
