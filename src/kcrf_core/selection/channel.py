"""How many labels are wrong: a channel between the labels that should be there and those that are.

A labelling y is drawn by the model, p(y | x); then each label is passed on as it is with probability 1 - e, and
exchanged for another one g with probability e r(g), where r is the same for all labels or goes by their frequency.
The likelihood of the labels g that data has is

    L = prod over sequences of sum_y p_s(y | x) prod_t [(1 - e) if y_t = g_t else e r(g_t)],

a ratio of two partition functions. Its maximum in e is the part of the labels that are wrong: where the model doubts,
it expects more labels than one, and such labels are no errors. A model that was fitted to wrong labels expects some of
them, so that its scores are multiplied by s, those of neighbouring labels by s', which are found along with e.

A model doubts too much where it doubts at all, having learnt from wrong labels that others may stand there, and takes
errors there for its own. So e is found a second time, with s and s' as they are, by the labels of the half of the
positions that the model is more sure of: errors that do not look at the input are as frequent there as anywhere. The
larger of both counts, as other errors may be where models are not sure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import Edges, chain
from ..system import Workers
from ..training import Scored

MOST_POSITIONS = 20_000  # to find the sharpness of scores by; the rate is found by all of them
EVALUATIONS, STEPS = 70, 12
LEAST_RATE, MOST_RATE = 1e-5, 0.5


@dataclass(frozen=True)
class Channel:
    """How labels get wrong, and how far scores can be believed."""

    rate: float  # e
    sharpness: float = 1.0  # s, of scores of positions
    edge_sharpness: float = 1.0  # s'
    by_frequency: bool = False  # a wrong label is as frequent as others of its kind
    frequencies: tuple[tuple[str, float], ...] = ()  # of labels, by their names
    rate_error: float = float("nan")  # the standard error of e

    def potentials(self, part: Scored) -> tuple[np.ndarray, Edges]:
        """Those of the labels that should be there, given the input and the labels that are."""
        scores, edges = self._sharpened(part)
        return scores + self._log_channel(part), edges

    def log_likelihood(self, part: Scored) -> float:
        """That of the labels, given the input."""
        scores, edges = self._sharpened(part)
        before = chain.marginals(scores, edges, part.offsets).log_z
        return float((chain.marginals(scores + self._log_channel(part), edges, part.offsets).log_z - before).sum())

    def wrong(self, part: Scored) -> np.ndarray:
        """The probability that each of the labels that are known is wrong."""
        known = np.flatnonzero(part.gold >= 0)
        return 1 - chain.marginals(*self.potentials(part), part.offsets).node[known, part.gold[known]]

    def _sharpened(self, part: Scored) -> tuple[np.ndarray, Edges]:
        return self.sharpness * part.scores, part.edges.times(self.edge_sharpness)

    def _log_channel(self, part: Scored) -> np.ndarray:
        """log p(g_t | y_t), [n, Y]; 0 where nothing is known of g_t."""
        Y = len(part.labels)
        others = np.full(Y, 1 / max(Y - 1, 1))
        if self.by_frequency:
            share = dict(self.frequencies)
            others = np.array([max(share.get(label, 0.0), 1e-6) for label in part.labels])
        known = np.flatnonzero(part.gold >= 0)
        logs = np.zeros(part.scores.shape)
        logs[known] = np.log(self.rate * others[part.gold[known]])[:, None]
        logs[known, part.gold[known]] = np.log1p(-self.rate)
        return logs


def fit_channel(parts: Sequence[Scored], workers: Workers) -> Channel:
    """The channel of the largest likelihood."""
    frequencies = _frequencies(parts)
    total = sum(len(part.gold) for part in parts)
    some = parts[:: max(1, total // MOST_POSITIONS)]
    found = [_fitted(some, by_frequency, frequencies, workers) for by_frequency in (False, True)]
    channel = max(found, key=lambda pair: pair[0])[1]
    rates = [_with_rate(channel, some, workers) for some in (parts, _surer_half(parts, workers))]
    return max(rates, key=lambda each: each.rate)


def _with_rate(channel: Channel, parts: Sequence[Scored], workers: Workers) -> Channel:
    """The channel with the rate of errors that makes the labels of some parts most probable, and its standard error."""
    for _ in range(STEPS):
        wrong = np.concatenate(list(workers.map(channel.wrong, parts)))
        rate = float(np.clip(wrong.mean(), LEAST_RATE, MOST_RATE))
        close = abs(rate - channel.rate) < 0.002 * rate
        channel = replace(channel, rate=rate)
        if close:
            break
    # What each label adds to the slope of the log-likelihood in e: the sum of squares is its information.
    slopes = wrong / rate - (1 - wrong) / (1 - rate)
    # Where models tell nothing there is none, and the rate may be any.
    return replace(channel, rate_error=1 / max(float(np.linalg.norm(slopes)), 1.0))


def _surer_half(parts: Sequence[Scored], workers: Workers) -> list[Scored]:
    """The parts with labels at those positions alone that models are most sure of, whatever label they have."""

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
    """The largest log-likelihood of a few parts, and its channel."""
    from scipy.optimize import minimize  # which others need not wait for

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


def _frequencies(parts: Sequence[Scored]) -> tuple[tuple[str, float], ...]:
    counts: dict[str, int] = {}
    for part in parts:
        known = part.gold[part.gold >= 0]
        for label, count in zip(part.labels, np.bincount(known, minlength=len(part.labels)).tolist(), strict=True):
            counts[label] = counts.get(label, 0) + count
    total = max(sum(counts.values()), 1)
    return tuple((label, count / total) for label, count in sorted(counts.items()))
