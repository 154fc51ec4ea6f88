"""Evidence of models about the labels of data (see "Wrong labels" in docs/method.md).

The channel: a labelling y is drawn by the model, p(y | x). Then each label y_t becomes g_t, the label of the data, with
probability T(g_t | y_t). The doubt of a label is the log-odds of y_t != g_t: by the channel, given the input and all
labels, or by the model, given the input.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

import numpy as np

from ..chains import Edges, chain
from ..model import scores_in_place
from ..scoring import (
    SpanFinder,
    Transitions,
    allowed_transitions,
    detect_scheme,
    labels_of_spans,
    tell_iob_apart,
)
from ..system import Workers
from ..training import Scored
from .planting import ErrorKinds


class Doubts(NamedTuple):
    """Log-odds that labels are wrong, and the kind of error that they would be; NaN for unknown labels."""

    given_labels: np.ndarray  # [n] by the channel
    given_input: np.ndarray  # [n] by the model alone
    kinds: np.ndarray  # [n] by the label that the channel prefers
    kinds_given_input: np.ndarray  # [n] by the label that the model prefers


class Judge(Protocol):
    """A rule that finds one doubt of each label by several."""

    def doubt(self, doubts: Doubts) -> np.ndarray:
        """Return the log-odds that labels are wrong [n]."""


SUPPOSED_RATE = 0.01  # of errors
STEPS, LEAST_POSITIONS, LEAST_ERRORS = 6, 3000, 10  # of learning a channel; positions and errors that are supposed
IMPROBABLE, BROKEN = 0.05, 0.05  # p(label | x), and the share of such labels that break rules of spans


@dataclass(frozen=True, eq=False)
class Channel:
    """The probability of labels of the data, given the true ones."""

    labels: tuple[str, ...]
    log_t: np.ndarray  # [Y, Y] log T(g | y)
    kinds: ErrorKinds | None = None  # of errors of spans

    @classmethod
    def of(cls, labels: Sequence[str], rates: np.ndarray, kinds: ErrorKinds | None = None) -> Channel:
        """Return the channel with these probabilities of errors [Y, Y]; the diagonal does not count."""
        t = np.where(np.eye(len(labels), dtype=bool), 0.0, rates)
        return cls(tuple(labels), np.log(t + np.diag(1 - t.sum(axis=1))), kinds)

    @classmethod
    def by_kind(
        cls,
        labels: Sequence[str],
        counts: np.ndarray,
        odd: Collection[str] = (),
    ) -> Channel:
        """Return the channel with equally frequent errors of each kind, towards frequent labels.

        Odd labels are not of the scheme of all others.
        """
        kinds = ErrorKinds.of(labels_of_spans(labels, odd), counts)
        rates = np.zeros((len(labels), len(labels)))
        for kind in range(len(kinds.names)):
            share = (kinds.table == kind) * np.maximum(counts, 0.5)
            rates += SUPPOSED_RATE * share / np.maximum(share.sum(axis=1, keepdims=True), 0.5)
        return cls.of(labels, rates, kinds)

    def numbers(self, part: Scored) -> np.ndarray:
        """Return the numbers of a part's labels among those of the channel."""
        number = {label: y for y, label in enumerate(self.labels)}
        return np.array([number[label] for label in part.labels])

    def potentials(self, part: Scored) -> tuple[np.ndarray, Edges]:
        """Return the potentials of the true labels, given the input and the labels of the data."""
        own, known = self.numbers(part), np.flatnonzero(part.gold >= 0)
        scores = part.scores.copy()
        scores[known] += self.log_t[np.ix_(own, own)].T[part.gold[known]]
        return scores, part.edges

    def expected_counts(self, part: Scored) -> np.ndarray:
        """Return the expected number of positions [Y, Y] with each true label and each label of the data."""
        own, known = self.numbers(part), part.gold >= 0
        after = chain.marginals(*self.potentials(part), part.offsets).node[known]
        counts = np.zeros_like(self.log_t)
        for y, column in zip(own.tolist(), after.T, strict=True):
            counts[y] = np.bincount(own[part.gold[known]], column, len(self.labels))
        return counts

    def doubts(self, part: Scored, node: np.ndarray, after: np.ndarray | None = None) -> Doubts:
        """Return the doubts of labels, with p(y_t | x) [n, Y], and perhaps p(y_t | x, g) by the channel."""
        assert self.kinds is not None
        known, own = part.gold >= 0, self.numbers(part)
        gold = np.where(known, part.gold, 0)
        after = chain.marginals(*self.potentials(part), part.offsets).node if after is None else after
        found = [_rivals(each, gold) for each in (after, node)]
        doubts = [np.where(known, log_odds(1 - right), np.nan) for right, _ in found]
        return Doubts(*doubts, *(self.kinds.table[own[rival], own[gold]] for _, rival in found))


def log_odds(p: np.ndarray) -> np.ndarray:
    """Return log p / (1 - p), finite."""
    p = np.clip(p, 1e-15, 1 - 1e-15)
    return np.log(p) - np.log1p(-p)


def _rivals(node: np.ndarray, gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of labels [n], and the most probable other label [n]."""
    rows, others = np.arange(len(gold)), node.copy()
    others[rows, gold] = -1
    return node[rows, gold], others.argmax(axis=1)


def label_counts(parts: Sequence[Scored]) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the labels of all parts, and how often each of them occurs."""
    counts: dict[str, int] = {}
    for part in parts:
        known = np.bincount(part.gold[part.gold >= 0], minlength=len(part.labels))
        for label, count in zip(part.labels, known.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
    labels = tuple(sorted(counts))
    return labels, np.array([counts[label] for label in labels])


def span_rules(labels: Sequence[str], gold: np.ndarray, offsets: np.ndarray) -> Transitions | None:
    """Return the pairs of labels that the scheme of a labelling [N] allows, or None if labels are no spans."""
    scheme = detect_scheme(labels)
    if scheme is None:
        return None
    return allowed_transitions(labels, tell_iob_apart(scheme, SpanFinder(labels).find(gold, offsets)))


def errors_of_single_labels(
    parts: Sequence[Scored],
    workers: Workers,
    odd: Collection[str] = (),
) -> bool:
    """Return True if labels are no spans, or improbable ones break rules that wrong spans keep.

    Odd labels are not of the scheme of all others.
    """

    def counts(part: Scored) -> tuple[int, int]:
        node = chain.marginals(part.scores, part.edges, part.offsets).node
        gold = np.where(part.gold >= 0, part.gold, node.argmax(axis=1))
        improbable = node[np.arange(len(gold)), gold] < IMPROBABLE
        rules = span_rules(labels_of_spans(part.labels, odd), gold, part.offsets)
        if rules is None:
            return 0, 0
        first = part.offsets[:-1][np.diff(part.offsets) > 0]
        broken = np.append(False, ~rules.pairs[gold[:-1], gold[1:]])
        broken[first] = False
        before = np.append(broken[1:], False)  # the next label may not follow
        broken[first] = ~rules.first[gold[first]]
        return int((improbable & (broken | before)).sum()), int(improbable.sum())

    if detect_scheme(labels_of_spans(label_counts(parts)[0], odd)) is None:
        return True
    broken, improbable = np.sum(list(workers.map(counts, parts)), axis=0)
    return bool(broken > BROKEN * improbable)


def learn_channel(parts: Sequence[Scored], workers: Workers) -> Channel:
    """Return the channel of single errors, learnt by expectation maximisation.

    Errors happen to a label, and lead to one, as often as this data shows, but half of them, and more where a label is
    rare, are supposed: a hundredth of the labels, with given labels as wrong ones have them.
    """
    labels, counts = label_counts(parts)
    frequency = np.maximum(counts, 0.5) / np.maximum(counts, 0.5).sum()
    channel = Channel.of(labels, np.tile(SUPPOSED_RATE * frequency, (len(labels), 1)))
    for _ in range(STEPS):
        table = np.sum(list(workers.map(channel.expected_counts, parts)), axis=0)
        true = table.sum(axis=1, keepdims=True)
        np.fill_diagonal(table, 0.0)
        given = (table.sum(axis=0) + LEAST_ERRORS * frequency) / (table.sum() + LEAST_ERRORS)
        supposed = true + LEAST_POSITIONS
        channel = Channel.of(labels, (table + SUPPOSED_RATE * supposed * given) / (true + supposed))
    return channel


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about all N positions; NaN where no model knows the label."""

    marginal: np.ndarray  # [N] p(gold | x)
    context: np.ndarray  # [N] p(gold | x, the other labels)
    doubt: np.ndarray  # [N] log-odds that it is wrong
    suggested: np.ndarray  # [N] number of the suggested label, among those of the corpus
    support: np.ndarray  # [N] p(suggested | x)


def gather(
    parts: Sequence[Scored],
    channel: Channel,
    labels: Sequence[str],
    positions: int,
    workers: Workers,
    judge: Judge | None = None,
) -> Evidence:
    """Return the evidence of all parts, which share no position, on a corpus with these labels.

    Doubts are those of the channel, or `judge` finds them by those of the channel and of the models.
    """
    out = Evidence(
        **{each.name: np.full(positions, np.nan) for each in fields(Evidence)}
        | {"suggested": np.zeros(positions, dtype=np.int64)}
    )
    numbers = {label: y for y, label in enumerate(labels)}
    for part, found in zip(parts, workers.map(lambda part: _of_part(part, channel, judge), parts), strict=True):
        known = part.rows[part.gold >= 0]
        for name, values in found.items():
            getattr(out, name)[known] = values
        out.suggested[known] = np.array([numbers[label] for label in part.labels])[out.suggested[known]]
    return out


def _of_part(part: Scored, channel: Channel, judge: Judge | None) -> dict[str, np.ndarray]:
    """Return the evidence about the positions of a part whose label the model knows."""
    node = chain.marginals(part.scores, part.edges, part.offsets).node
    rows, known = np.arange(len(part.gold)), np.flatnonzero(part.gold >= 0)
    # A label that the model does not know is replaced by the model's most probable one.
    gold = np.where(part.gold >= 0, part.gold, node.argmax(axis=1)).astype(np.int32)
    beside = scores_in_place(part.scores, part.edges, part.offsets, gold)
    beside -= beside.max(axis=1, keepdims=True)
    np.exp(beside, out=beside)
    after = chain.marginals(*channel.potentials(part), part.offsets).node
    right, suggested = _rivals(after, gold)
    positions = {
        "marginal": node[rows, gold],
        "context": beside[rows, gold] / beside.sum(axis=1),
        "doubt": log_odds(1 - right),
        "suggested": suggested,
        "support": node[rows, suggested],
    }
    if judge is not None:
        positions["doubt"] = judge.doubt(channel.doubts(part, node, after))
    return {name: values[known] for name, values in positions.items()}
