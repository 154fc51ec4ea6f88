"""Evidence of models about the labels of data (see "Wrong labels" in docs/method.md).

The channel: a labelling y is drawn by the model, p(y | x), whose scores are multiplied by s, those of neighbouring
labels by s'. Then each label y_t becomes g_t with probability T(g_t | y_t): an error of kind k happens with probability
e_k, and leads to labels of that kind as they are frequent. A label has two doubts, log-odds of y_t != g_t: by the
channel, given the input and all labels of the data, and by the model, given the input alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Protocol

import numpy as np

from ..chains import Edges, chain, run_probabilities
from ..model import scores_in_place
from ..scoring import SpanFinder, detect_scheme
from ..system import Workers, offsets_of
from ..training import Scored
from .planting import ErrorKinds


class Doubts(NamedTuple):
    """Log-odds that labels are wrong, and the kinds of error that they would be; NaN for unknown labels."""

    given_labels: np.ndarray  # [n] by the channel
    given_input: np.ndarray  # [n] by the model alone
    kinds: np.ndarray  # [n] by the label that the channel prefers
    kinds_given_input: np.ndarray  # [n] by the label that the model prefers


class Probability(Protocol):
    """Probabilities of being wrong."""

    def of_labels(self, doubts: Doubts) -> np.ndarray:
        """Return those of single labels [n]."""

    def of_wholes(self, doubts: np.ndarray) -> np.ndarray:
        """Return those of spans or sequences [n], by their doubts [n] given all labels."""


SUPPOSED_RATE = 0.01  # e_k, the rate of errors by which doubts are measured
MOST_POSITIONS = 20_000  # to find the sharpness of scores by
EVALUATIONS = 40


@dataclass(frozen=True, eq=False)
class Channel:
    """The probability of labels of the data, given the true ones, and factors of scores."""

    kinds: ErrorKinds
    log_t: np.ndarray  # [Y, Y] log T(g | y)
    sharpness: float = 1.0  # s, of scores of positions
    edge_sharpness: float = 1.0  # s'

    @classmethod
    def of(cls, labels: Sequence[str], counts: np.ndarray, rate: float = SUPPOSED_RATE) -> Channel:
        """Return the channel with this rate of each kind, for labels that occur so often [Y]."""
        kinds, Y = ErrorKinds.of(labels, counts), len(labels)
        t = np.zeros((Y, Y))
        for kind in range(len(kinds.names)):
            share = (kinds.table == kind) * np.maximum(counts, 0.5)
            t += rate * share / np.maximum(share.sum(axis=1, keepdims=True), 0.5)
        np.fill_diagonal(t, 1 - t.sum(axis=1))
        return cls(kinds, np.log(t))

    def numbers(self, part: Scored) -> np.ndarray:
        """Return the numbers of a part's labels among those of the channel."""
        number = {label: y for y, label in enumerate(self.kinds.labels)}
        return np.array([number[label] for label in part.labels])

    def potentials(self, part: Scored) -> tuple[np.ndarray, Edges]:
        """Return the potentials of the true labels, given the input and the labels of the data."""
        own, known = self.numbers(part), np.flatnonzero(part.gold >= 0)
        scores = self.sharpness * part.scores
        scores[known] += self.log_t[np.ix_(own, own)].T[part.gold[known]]
        return scores, part.edges.times(self.edge_sharpness)

    def log_likelihood(self, part: Scored) -> float:
        """Return the log-likelihood of the labels of the data, given the input."""
        after, edges = self.potentials(part)
        before = chain.marginals(self.sharpness * part.scores, edges, part.offsets).log_z
        return float((chain.marginals(after, edges, part.offsets).log_z - before).sum())

    def doubts(self, part: Scored, node: np.ndarray, after: np.ndarray | None = None) -> Doubts:
        """Return the doubts of labels, with p(y_t | x) [n, Y], and perhaps p(y_t | x, g) by the channel."""
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


def fit_channel(parts: Sequence[Scored], workers: Workers) -> Channel:
    """Return the channel whose sharpness makes the labels most likely."""
    from scipy.optimize import minimize  # only needed here

    start = channel_of(parts)
    some = parts[:: max(1, sum(len(part.gold) for part in parts) // MOST_POSITIONS)]

    def channel(at: np.ndarray) -> Channel:
        sharpness, edge_sharpness = np.exp(np.clip(at, -2, 2)).tolist()
        return replace(start, sharpness=sharpness, edge_sharpness=edge_sharpness)

    simplex = np.array([[0.0, 0.0], [-0.4, 0.0], [0.0, -0.4]])
    options = {"maxfev": EVALUATIONS, "initial_simplex": simplex, "xatol": 0.01, "fatol": 0.05}
    loss = lambda at: -math.fsum(workers.map(channel(at).log_likelihood, some))  # noqa: E731
    return channel(minimize(loss, simplex[0], method="Nelder-Mead", options=options).x)


def channel_of(parts: Sequence[Scored]) -> Channel:
    """Return the channel of the labels that these parts have."""
    counts: dict[str, int] = {}
    for part in parts:
        known = np.bincount(part.gold[part.gold >= 0], minlength=len(part.labels))
        for label, count in zip(part.labels, known.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
    labels = tuple(sorted(counts))
    return Channel.of(labels, np.array([counts[label] for label in labels]))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about all N positions; NaN where no model knows the label."""

    marginal: np.ndarray  # [N] p(gold | x)
    context: np.ndarray  # [N] p(gold | x, the other labels)
    doubt: np.ndarray  # [N] log-odds that it is wrong, by the channel
    wrong: np.ndarray  # [N] probability that it is wrong
    suggested: np.ndarray  # [N] number of the suggested label, among those of the corpus
    support: np.ndarray  # [N] p(suggested | x)
    # [N] at the first position of each span and NaN elsewhere: p(span | x), and the probability that it is wrong.
    span: np.ndarray
    span_wrong: np.ndarray
    span_end: np.ndarray  # [N] where a span ends that begins here, -1 elsewhere
    # [N] at the first position of each sequence and NaN elsewhere: log p(labels | x), and that one of them is wrong.
    log_probability: np.ndarray
    sequence_wrong: np.ndarray


def gather(
    parts: Sequence[Scored],
    channel: Channel,
    labels: Sequence[str],
    positions: int,
    workers: Workers,
    probability: Probability | None = None,
) -> Evidence:
    """Return the evidence of all parts, which share no position, on a corpus with these labels.

    Probabilities of being wrong are those of the channel, or `probability` finds them by doubts.
    """
    out = Evidence(
        **{each.name: np.full(positions, np.nan) for each in fields(Evidence)}
        | {"suggested": np.zeros(positions, dtype=np.int64), "span_end": np.full(positions, -1)}
    )
    numbers = {label: y for y, label in enumerate(labels)}
    spans = detect_scheme(labels) is not None
    for part, found in zip(
        parts, workers.map(lambda part: _of_part(part, channel, spans, probability), parts), strict=True
    ):
        for name, (where, values) in found.items():
            getattr(out, name)[part.rows[where]] = values
        known = part.rows[part.gold >= 0]
        out.suggested[known] = np.array([numbers[label] for label in part.labels])[out.suggested[known]]
        begin = part.rows[found["span_end"][0]]
        out.span_end[begin] = part.rows[out.span_end[begin] - 1] + 1
    return out


_Found = dict[str, tuple[np.ndarray, np.ndarray]]  # places in the part, and values


def _of_part(part: Scored, channel: Channel, spans: bool, probability: Probability | None) -> _Found:
    node = chain.marginals(part.scores, part.edges, part.offsets)
    rows, known = np.arange(len(part.gold)), np.flatnonzero(part.gold >= 0)
    # A label that the model does not know is replaced by the model's most probable one.
    gold = np.where(part.gold >= 0, part.gold, node.node.argmax(axis=1)).astype(np.int32)
    beside = scores_in_place(part.scores, part.edges, part.offsets, gold)
    beside -= beside.max(axis=1, keepdims=True)
    np.exp(beside, out=beside)
    true = channel.potentials(part)
    after = chain.marginals(*true, part.offsets)
    right, suggested = _rivals(after.node, gold)

    def wrong(p: np.ndarray) -> np.ndarray:
        return p if probability is None else probability.of_wholes(log_odds(p))

    positions = {
        "marginal": node.node[rows, gold],
        "context": beside[rows, gold] / beside.sum(axis=1),
        "doubt": log_odds(1 - right),
        "wrong": 1 - right,
        "suggested": suggested,
        "support": node.node[rows, suggested],
    }
    if probability is not None:
        positions["wrong"] = probability.of_labels(channel.doubts(part, node.node, after.node))
    # A sequence with a label that the model does not know cannot be judged as a whole.
    strange = offsets_of(part.gold < 0)[part.offsets]
    whole = np.flatnonzero((np.diff(part.offsets) > 0) & (np.diff(strange) == 0))
    first = part.offsets[whole]
    logs = (chain.path_scores(part.scores, part.edges, part.offsets, gold) - node.log_z)[whole]
    all_right = np.exp(chain.path_scores(*true, part.offsets, gold) - after.log_z)[whole]
    return {
        **{name: (known, values[known]) for name, values in positions.items()},
        "log_probability": (first, np.minimum(logs, 0.0)),
        "sequence_wrong": (first, wrong(np.clip(1 - all_right, 0.0, 1.0))),
        **{
            name: (where, wrong(values) if name == "span_wrong" else values)
            for name, (where, values) in _of_spans(part, gold, true, spans).items()
        },
    }


def _of_spans(part: Scored, gold: np.ndarray, true: tuple[np.ndarray, Edges], spans: bool) -> _Found:
    """Return evidence about spans whose labels the model knows; those that a cut between folds divides end there."""
    if not spans:
        nothing = np.zeros(0, dtype=np.int64)
        return dict.fromkeys(("span", "span_wrong", "span_end"), (nothing, nothing))
    finder = SpanFinder(part.labels)
    found = finder.find(gold, part.offsets)
    unknown = offsets_of(part.gold < 0)
    kept = unknown[found.ends] == unknown[found.starts]
    starts, ends = found.starts[kept], found.ends[kept]
    seen, after = (
        run_probabilities(scores, edges, part.offsets, gold, starts, ends, finder.apart)
        for scores, edges in ((part.scores, part.edges), true)
    )
    return {"span": (starts, seen), "span_wrong": (starts, 1 - after), "span_end": (starts, ends)}
