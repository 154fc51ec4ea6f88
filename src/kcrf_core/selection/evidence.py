"""Evidence of models about the labels of data, and the rate of wrong labels (see "Wrong labels" in docs/method.md).

The channel: a labelling y is drawn by the model, p(y | x), whose scores are multiplied by s, those of neighbouring
labels by s'. Then each label is passed on with probability 1 - e, and exchanged for another one g with probability
e r(g). The likelihood of the labels of the data, a ratio of two partition functions, is maximised in e, s and s'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from ..chains import Edges, chain, run_probabilities
from ..model import scores_in_place
from ..scoring import SpanFinder, detect_scheme
from ..system import Workers
from ..training import Scored

MOST_POSITIONS = 20_000  # to find the sharpness of scores by; the rate is found by all of them
EVALUATIONS, STEPS = 70, 12
LEAST_RATE, MOST_RATE = 1e-5, 0.5


@dataclass(frozen=True)
class Channel:
    """The rate of wrong labels, and factors of scores."""

    rate: float  # e
    sharpness: float = 1.0  # s, of scores of positions
    edge_sharpness: float = 1.0  # s'
    by_frequency: bool = False  # a wrong label is as frequent as others of its kind
    frequencies: tuple[tuple[str, float], ...] = ()  # of labels, by their names
    rate_error: float = float("nan")  # the standard error of e

    def potentials(self, part: Scored) -> tuple[np.ndarray, Edges]:
        """Return the potentials of the true labels, given the input and the labels of the data."""
        Y = len(part.labels)
        others = np.full(Y, 1 / max(Y - 1, 1))
        if self.by_frequency:
            share = dict(self.frequencies)
            others = np.array([max(share.get(label, 0.0), 1e-6) for label in part.labels])
        known = np.flatnonzero(part.gold >= 0)
        logs = np.zeros(part.scores.shape)  # log p(g_t | y_t), [n, Y]; 0 where g_t is not known
        logs[known] = np.log(self.rate * others[part.gold[known]])[:, None]
        logs[known, part.gold[known]] = np.log1p(-self.rate)
        return self.sharpness * part.scores + logs, part.edges.times(self.edge_sharpness)

    def log_likelihood(self, part: Scored) -> float:
        """Return the log-likelihood of the labels of the data, given the input."""
        after, edges = self.potentials(part)
        before = chain.marginals(self.sharpness * part.scores, edges, part.offsets).log_z
        return float((chain.marginals(after, edges, part.offsets).log_z - before).sum())

    def wrong(self, part: Scored) -> np.ndarray:
        """Return the probability that each of the known labels is wrong."""
        known = np.flatnonzero(part.gold >= 0)
        return 1 - chain.marginals(*self.potentials(part), part.offsets).node[known, part.gold[known]]


def fit_channel(parts: Sequence[Scored], workers: Workers) -> Channel:
    """Return the channel of the largest likelihood."""
    counts: dict[str, int] = {}
    for part in parts:
        known = np.bincount(part.gold[part.gold >= 0], minlength=len(part.labels))
        for label, count in zip(part.labels, known.tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
    total = max(sum(counts.values()), 1)
    frequencies = tuple((label, count / total) for label, count in sorted(counts.items()))
    some = parts[:: max(1, sum(len(part.gold) for part in parts) // MOST_POSITIONS)]
    found = [_fitted(some, by_frequency, frequencies, workers) for by_frequency in (False, True)]
    channel = max(found, key=lambda pair: pair[0])[1]
    rates = [_with_rate(channel, some, workers) for some in (parts, _surer_half(parts, workers))]
    return max(rates, key=lambda each: each.rate)


def _with_rate(channel: Channel, parts: Sequence[Scored], workers: Workers) -> Channel:
    """Return the channel with the most probable rate of errors of some parts, and its standard error."""
    for _ in range(STEPS):
        wrong = np.concatenate(list(workers.map(channel.wrong, parts)))
        rate = float(np.clip(wrong.mean(), LEAST_RATE, MOST_RATE))
        close = abs(rate - channel.rate) < 0.002 * rate
        channel = replace(channel, rate=rate)
        if close:
            break
    # Terms of the slope of the log-likelihood in e: their sum of squares is its information.
    slopes = wrong / rate - (1 - wrong) / (1 - rate)
    # Uninformative models give no information, and any rate is possible.
    return replace(channel, rate_error=1 / max(float(np.linalg.norm(slopes)), 1.0))


def _surer_half(parts: Sequence[Scored], workers: Workers) -> list[Scored]:
    """Return the parts with labels only at the half of the positions that models are more certain of."""

    def sureness(part: Scored) -> np.ndarray:
        most = chain.marginals(part.scores, part.edges, part.offsets).node.max(axis=1, initial=0.0)
        return np.where(part.gold >= 0, most, np.nan)

    found = list(workers.map(sureness, parts))
    least = np.nanmedian(np.concatenate(found))
    return [replace(part, gold=np.where(own >= least, part.gold, -1)) for part, own in zip(parts, found, strict=True)]


def _fitted(
    parts: Sequence[Scored],
    by_frequency: bool,
    frequencies: tuple[tuple[str, float], ...],
    workers: Workers,
) -> tuple[float, Channel]:
    """Return the largest log-likelihood of a few parts, and its channel."""
    from scipy.optimize import minimize  # only needed here

    def channel(at: np.ndarray) -> Channel:
        rate = float(np.clip(np.exp(at[0]), LEAST_RATE, MOST_RATE))
        sharpness, edge_sharpness = np.exp(np.clip(at[1:], -2, 2)).tolist()
        return Channel(rate, sharpness, edge_sharpness, by_frequency, frequencies)

    def loss(at: np.ndarray) -> float:
        return -math.fsum(workers.map(channel(at).log_likelihood, parts))

    start = np.log([0.02, 1.0, 1.0])
    simplex = np.vstack([start, start + np.diag([0.7, 0.15, 0.15])])
    options = {"maxfev": EVALUATIONS, "initial_simplex": simplex, "xatol": 0.01, "fatol": 0.05}
    best = minimize(loss, start, method="Nelder-Mead", options=options)
    return -float(best.fun), channel(best.x)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence about all N positions; NaN where no model knows the label."""

    marginal: np.ndarray  # [N] p(gold | x)
    context: np.ndarray  # [N] p(gold | x, the other labels)
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
    parts: Sequence[Scored], channel: Channel, labels: Sequence[str], positions: int, workers: Workers
) -> Evidence:
    """Return the evidence of all parts, which share no position, on a corpus with these labels."""
    out = Evidence(
        **{each.name: np.full(positions, np.nan) for each in fields(Evidence)}
        | {"suggested": np.zeros(positions, dtype=np.int64), "span_end": np.full(positions, -1)}
    )
    numbers = {label: y for y, label in enumerate(labels)}
    spans = detect_scheme(labels) is not None
    for part, found in zip(parts, workers.map(lambda part: _of_part(part, channel, spans), parts), strict=True):
        for name, (where, values) in found.items():
            getattr(out, name)[part.rows[where]] = values
        known = part.rows[part.gold >= 0]
        out.suggested[known] = np.array([numbers[label] for label in part.labels])[out.suggested[known]]
        begin = part.rows[found["span_end"][0]]
        out.span_end[begin] = part.rows[out.span_end[begin] - 1] + 1
    return out


_Found = dict[str, tuple[np.ndarray, np.ndarray]]  # places in the part, and values


def _of_part(part: Scored, channel: Channel, spans: bool) -> _Found:
    node = chain.marginals(part.scores, part.edges, part.offsets)
    rows, known = np.arange(len(part.gold)), np.flatnonzero(part.gold >= 0)
    # A label that the model does not know is replaced by the model's most probable one.
    gold = np.where(part.gold >= 0, part.gold, node.node.argmax(axis=1)).astype(np.int32)
    beside = scores_in_place(part.scores, part.edges, part.offsets, gold)
    beside -= beside.max(axis=1, keepdims=True)
    np.exp(beside, out=beside)
    true = channel.potentials(part)
    after = chain.marginals(*true, part.offsets)
    others = after.node.copy()
    others[rows, gold] = -1
    suggested = others.argmax(axis=1)
    positions = {
        "marginal": node.node[rows, gold],
        "context": beside[rows, gold] / beside.sum(axis=1),
        "wrong": 1 - after.node[rows, gold],
        "suggested": suggested,
        "support": node.node[rows, suggested],
    }
    # A sequence with a label that the model does not know cannot be judged as a whole.
    strange = np.concatenate([[0], np.cumsum(part.gold < 0)])[part.offsets]
    whole = np.flatnonzero((np.diff(part.offsets) > 0) & (np.diff(strange) == 0))
    first = part.offsets[whole]
    logs = (chain.path_scores(part.scores, part.edges, part.offsets, gold) - node.log_z)[whole]
    right = np.exp(chain.path_scores(*true, part.offsets, gold) - after.log_z)[whole]
    return {
        **{name: (known, values[known]) for name, values in positions.items()},
        "log_probability": (first, np.minimum(logs, 0.0)),
        "sequence_wrong": (first, np.clip(1 - right, 0.0, 1.0)),
        **_of_spans(part, gold, true, spans),
    }


def _of_spans(part: Scored, gold: np.ndarray, true: tuple[np.ndarray, Edges], spans: bool) -> _Found:
    """Return evidence about spans whose labels the model knows; those that a cut between folds divides end there."""
    if not spans:
        nothing = np.zeros(0, dtype=np.int64)
        return dict.fromkeys(("span", "span_wrong", "span_end"), (nothing, nothing))
    finder = SpanFinder(part.labels)
    found = finder.find(gold, part.offsets)
    unknown = np.concatenate([[0], np.cumsum(part.gold < 0)])
    kept = unknown[found.ends] == unknown[found.starts]
    starts, ends = found.starts[kept], found.ends[kept]
    seen, after = (
        run_probabilities(scores, edges, part.offsets, gold, starts, ends, finder.apart)
        for scores, edges in ((part.scores, part.edges), true)
    )
    return {"span": (starts, seen), "span_wrong": (starts, 1 - after), "span_end": (starts, ends)}
