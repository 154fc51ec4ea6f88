"""Labels with a bounded delay: label t is decided when line t+K has been read, in memory that does not grow.

Windows look up to `ahead` positions ahead, so that after line t+K scores are known up to line m = t+K-ahead. The label
has the largest marginal given all lines to m, those before t by their forward message and those from t to m by backward
messages that begin at m without any score of an end. Where K is less than `ahead`, m is t, and the window of t sees
nothing beyond t+K, as at the end of a sequence. When a sequence ends, the labels that are left are decided given all of
it, its end's own score included. What is decided never depends on how many lines came at a time.

Where transitions are impossible, a label must be able to follow the one already given; the labels left at the end are
the best path from there on, as in `decoding`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..chains import Edges, Messages, chain
from ..corpora import Corpus, concatenate
from ..errors import ConfigError, DataError, NumericError
from .decoding import Decoded, Wishes, constrained, scheme_of
from .model import Model

MESSAGES_AT_ONCE = 1 << 18  # numbers


@dataclass
class _Open:
    """A sequence that has not ended, and how far it has come."""

    read: int = 0
    given: int = 0  # labels that are out
    message: np.ndarray | None = None  # forward, of the last position whose label is out
    label: int = -1  # of that position


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
                f"feature '{whole[0]}' (position) looks at the length of whole sequences, unknown while they "
                "arrive: train a model without it",
                settings=["lag"],
            )
        self.behind, self.ahead = model.encoding.reach(used)
        self._wait = min(lag, self.ahead)  # lines after a position before it is scored
        self._horizon = max(lag - self.ahead, 0)  # scored positions after one before its label is out
        self._allowed = None if wishes.scheme is None else scheme_of(model, wishes.scheme)
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
        self._open = _Open()
        self._scored: list[_Scored] = []
        self.missing: Counter[str] = Counter()  # values, by features

    def feed(self, corpus: Corpus, ended: bool) -> Decoded:
        """What is due after some more positions; the first sequence continues the one that is open, if there is one.

        `ended` says whether the last of them is complete.
        """
        known = 0
        if self._context is not None:
            known = self._context.positions
            corpus = _continued(self._context, corpus)
        out = _Results()
        scored = self._score(corpus, known, ended)
        taken = 0
        bounds = corpus.offsets.tolist()
        for s, (first, last) in enumerate(pairwise(bounds)):
            complete = ended or s < corpus.sequences - 1
            new = last - max(first, known)
            count = self._count_scored(new, complete)
            if count:
                self._scored.append(scored.rows(taken, taken + count))
            taken += count
            self._open.read += new
            self._give(complete, corpus.source, out)
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
        return out.decoded(self.wishes.marginals, len(self.model.labels))

    def end(self) -> Decoded:
        """What is left of the sequence that is open, now complete."""
        assert self._context is not None
        return self.feed(self._context.subset([]), True)

    @property
    def waiting(self) -> bool:
        """Whether a sequence is open."""
        return self._context is not None

    def _count_scored(self, new: int, complete: bool) -> int:
        """Positions of the open sequence that are scored once there are `new` more of them."""
        before = max(self._open.read - self._wait, 0)
        read = self._open.read + new
        return (read if complete else max(read - self._wait, 0)) - before

    def _score(self, corpus: Corpus, known: int, ended: bool) -> _Scored:
        """Potentials of all positions that can be scored now and could not before."""
        unscored = min(self._open.read, self._wait)  # positions at the end of the context
        first, last = known - unscored, corpus.positions
        if not ended:
            last = max(last - min(self._wait, last - int(corpus.offsets[-2])), first)
        if first == last:
            return _Scored(np.zeros((0, len(self.model.labels))), None, np.zeros(0), None)
        rows = None
        whole = corpus
        if self.lag < self.ahead:
            corpus, rows = _cut_windows(corpus, np.arange(first, last), self.behind, self.lag)
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

    def _give(self, complete: bool, source: str, out: _Results) -> None:
        """Decide all labels that are due."""
        state = self._open
        due = max(state.read - self.lag, 0) - state.given
        if self._scored and (due > 0 or complete):
            pending = _Scored.joined(self._scored)
            self._scored = []
            try:
                if due > 0:
                    self._decide(pending, due, out)
                    pending = pending.rows(due, len(pending.scores))
                if complete and len(pending.scores):
                    self._decide_rest(pending, out)
            except NumericError:
                if self._allowed is None and self._given is None:
                    raise
                message = "no labelling of this sequence is possible with its given labels and the transitions allowed"
                raise DataError(message, source, int(pending.lines[0])) from None
            if not complete:
                self._scored = [pending]

    def _decide(self, pending: _Scored, due: int, out: _Results) -> None:
        """The labels of the first `due` positions of those that are pending."""
        at_once = max(MESSAGES_AT_ONCE // len(self.model.labels) ** self.model.order, 1)
        for first in range(0, due, at_once):
            last = min(first + at_once, due)
            self._decide_some(pending.rows(first, last + self._horizon), last - first, out)

    def _decide_some(self, rows: _Scored, due: int, out: _Results) -> None:
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
        out.add(labels, node, None if rows.novelty is None else rows.novelty[:due])

    def _edges_of(self, rows: _Scored) -> Edges:
        return self._edges if rows.transitions is None else replace(self._edges, transitions=rows.transitions)

    def _decide_rest(self, rest: _Scored, out: _Results) -> None:
        """The last labels of a sequence, given all of it."""
        state, edges = self._open, self._edges_of(rest)
        node = Messages.to_the_end(state.message, rest.scores, edges)
        offsets = np.array([0, len(rest.scores)])
        reached = edges if state.label < 0 else replace(edges, start=np.where(self._follows[state.label], 0.0, -np.inf))
        try:
            labels = chain.posterior_labels(node, rest.scores, reached, offsets, self.wishes.costs)
        except NumericError:
            # What is already out cannot be ended as the scheme or given labels demand.
            labels = (node if self.wishes.costs is None else node * self.wishes.costs).argmax(axis=1).astype(np.int32)
        out.add(labels, node, rest.novelty)


@dataclass(frozen=True)
class _Scored:
    """Potentials of positions whose labels are not out."""

    scores: np.ndarray  # [n, Y]
    transitions: np.ndarray | None  # [n, Y, Y] where they look at the input
    lines: np.ndarray  # [n]
    novelty: np.ndarray | None  # [n]

    def rows(self, first: int, last: int) -> _Scored:
        own = slice(first, last)
        return _Scored(
            self.scores[own],
            None if self.transitions is None else self.transitions[own],
            self.lines[own],
            None if self.novelty is None else self.novelty[own],
        )

    @classmethod
    def joined(cls, parts: list[_Scored]) -> _Scored:
        if len(parts) == 1:
            return parts[0]

        def of(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            return None if arrays[0] is None else np.concatenate(arrays)

        return cls(of("scores"), of("transitions"), of("lines"), of("novelty"))


class _Results:
    """Labels that are out, and what goes with them."""

    def __init__(self) -> None:
        self._labels: list[np.ndarray] = []
        self._node: list[np.ndarray] = []
        self._novelty: list[np.ndarray | None] = []

    def add(self, labels: np.ndarray, node: np.ndarray, novelty: np.ndarray | None) -> None:
        self._labels.append(labels)
        self._node.append(node)
        self._novelty.append(novelty)

    def decoded(self, marginals: bool, Y: int) -> Decoded:
        if not self._labels:
            return Decoded(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros((0, Y)) if marginals else None)
        labels = np.concatenate(self._labels)
        told = [part for part in self._novelty if part is not None]
        novelty = np.concatenate(told) if told else None
        node = np.concatenate(self._node) if marginals else None
        return Decoded(np.array([0, len(labels)]), labels, node, novelty=novelty)


def _continued(context: Corpus, corpus: Corpus) -> Corpus:
    """One corpus, the first sequence of the second a continuation of the only one of the first."""
    if not corpus.positions or not context.positions:
        return corpus if corpus.positions else context
    joined = concatenate([replace(context, weights=None), replace(corpus, weights=None)])
    return replace(joined, offsets=np.delete(joined.offsets, 1))


def _gathered(corpus: Corpus, rows: np.ndarray, offsets: np.ndarray) -> Corpus:
    """Any positions of a corpus, cut into sequences anew."""
    alone = replace(corpus, weights=None, offsets=np.arange(corpus.positions + 1))
    return replace(alone.subset(rows), offsets=offsets)


def _cut_windows(corpus: Corpus, rows: np.ndarray, behind: int, lag: int) -> tuple[Corpus, np.ndarray]:
    """For each of the positions `rows` a sequence of what it may see, and where it stands in them.

    It sees `behind` positions before itself and `lag` after, as far as its own sequence goes.
    """
    sequence = np.searchsorted(corpus.offsets, rows, side="right") - 1
    first = np.maximum(rows - behind, corpus.offsets[sequence])
    last = np.minimum(rows + lag + 1, corpus.offsets[sequence + 1])
    offsets = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int64)
    seen = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], last - first)
    return _gathered(corpus, seen, offsets), offsets[:-1] + rows - first
