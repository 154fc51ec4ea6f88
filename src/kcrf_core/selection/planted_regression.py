"""Doubts about labels of spans, by comparison with planted errors (see "Wrong labels" in docs/method.md).

Errors are planted, a few at a time: f_k(d) is the distribution of doubts d of errors of kind k. If n_k labels are
wrong, n_k f_k(d) labels of the data have the doubt d because they are wrong, and A f_k(d) exp(-s d) because models are
uncertain: a label with log-odds d against it is drawn exp(-d) times as often as the other one, if probabilities are
right (s = 1). n_k, and for each kind A and s, maximise the likelihood of counts in bins of d, independent Poisson ones.

The doubt of a label is linear in its doubts z by the channel and by the model, for each kind of error. The coefficients
c maximise

    sum_k n_k E_k[c z]  -  sum over labels of log(1 + exp(c z))

the likelihood of a logistic regression in which planted errors stand for the unknown ones among the labels (du Plessis,
Niu & Sugiyama 2015, learning from positive and unlabelled data), with a normal prior. It ranks labels well. Its
probabilities are those of errors as they are planted, so they are not reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import chain
from ..system import Workers, scipy_module
from ..training import Scored
from .evidence import Channel, Doubts

# Bins of doubts from the least that tells errors from uncertainty.
EDGES = np.array([-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 9, np.inf])
MIDDLES = np.append((EDGES[:-2] + EDGES[1:-1]) / 2, 10.5)
PLANTED, MOST_ROUNDS, SHARE = 1500, 12, 0.05  # errors of each kind, rounds, share of spans in one
MOST_POSITIONS = 20_000  # to plant errors in
SLOPE, SLOPE_WIDTH = 0.8, 0.3  # s, expected around here; standard deviation of its logarithm
# Precisions of coefficients of all kinds together, and of the difference of each kind from them; errors of each kind
# that are always supposed, so that labels have an order if no errors are found.
SHARED, OWN, SUPPOSED = 0.01, 1.0, 0.01
LARGEST = 15.0  # doubt that counts


@dataclass(frozen=True, eq=False)
class PlantedRegression:
    """Coefficients of doubts about labels of spans."""

    coefficients: np.ndarray  # [K, 3] by kinds given the input

    def doubt(self, doubts: Doubts) -> np.ndarray:
        """Return the log-odds that labels are wrong [n]."""
        return np.einsum("np,np->n", self.coefficients[doubts.kinds_given_input], _inputs(doubts))

    @classmethod
    def fit(cls, parts: Sequence[Scored], channel: Channel, workers: Workers) -> PlantedRegression:
        """Plant errors of each kind in labels, which the models have not seen, and compare doubts with theirs."""
        assert channel.kinds is not None
        K = len(channel.kinds.names)
        nodes = list(workers.map(lambda part: chain.marginals(part.scores, part.edges, part.offsets).node, parts))
        doubts = list(workers.map(lambda pair: channel.doubts(*pair), list(zip(parts, nodes, strict=True))))
        seen = sum((_histogram(each, K) for each in doubts), np.zeros((K, len(MIDDLES))))  # counts of the data
        planted = np.zeros((K, K, len(MIDDLES)))  # [kind planted, kind found, bin], shares of those planted
        means = np.zeros((K, K, 3))  # [kind planted, kind given the input, input of the regression]
        for kind in range(K):
            total = 0
            for part, node, where in _planted(parts, nodes, channel, kind):
                errors = Doubts(*(values[where] for values in channel.doubts(part, node)))
                planted[kind] += _histogram(errors, K)
                means[kind] += _sums(errors.kinds_given_input, _inputs(errors), K)
                total += np.count_nonzero(where)
            planted[kind] /= max(total, 1)
            means[kind] /= max(total, 1)
        numbers = _numbers(seen, planted) + SUPPOSED
        return cls(_coefficients(doubts, np.einsum("k,kcp->cp", numbers, means)))


def _histogram(doubts: Doubts, K: int) -> np.ndarray:
    """Return counts [K, J] by kind and bin."""
    known = (doubts.given_labels >= EDGES[0]) & (doubts.kinds >= 0)
    bins = np.searchsorted(EDGES, doubts.given_labels[known], side="right") - 1
    J = len(MIDDLES)
    return np.bincount(doubts.kinds[known] * J + bins, minlength=K * J).reshape(K, J)


def _inputs(doubts: Doubts) -> np.ndarray:
    """Return the inputs of the regression [n, 3]."""
    both = np.clip([doubts.given_labels, doubts.given_input], -LARGEST, LARGEST) / 5
    return np.column_stack([np.ones(both.shape[1]), *both])


def _sums(kinds: np.ndarray, values: np.ndarray, K: int) -> np.ndarray:
    """Return the sums of values [n, P] over each kind, [K, P]."""
    return np.stack([np.bincount(kinds, column, K) for column in values.T], axis=1)


def _coefficients(doubts: Sequence[Doubts], target: np.ndarray) -> np.ndarray:
    """Return coefficients [K, P] whose probabilities have these sums of inputs over labels, by kind [K, P]."""
    minimize, expit = (
        scipy_module("optimize").minimize,
        scipy_module("special").expit,
    )  # only needed here
    K, P = target.shape
    z = np.concatenate([_inputs(each) for each in doubts])
    kinds = np.concatenate([each.kinds_given_input for each in doubts])
    known = ~np.isnan(z[:, 1]) & (kinds >= 0)
    z, kinds = z[known], kinds[known]
    precision = np.repeat([SHARED, OWN], [P, K * P])
    precision[0] = 0.0

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        shared, own = at[:P], at[P:].reshape(K, P)
        s = np.einsum("np,np->n", (shared + own)[kinds], z)
        off = _sums(kinds, expit(s)[:, None] * z, K) - target
        value = np.logaddexp(0.0, s).sum() - ((shared + own) * target).sum() + precision @ np.square(at) / 2
        return float(value), np.append(off.sum(axis=0), off) + precision * at

    start = np.zeros((K + 1) * P)
    start[0] = math.log(target[:, 0].sum() / max(len(z), 1) + 1e-9)
    best = minimize(loss, start, method="L-BFGS-B", jac=True, options={"maxiter": 500}).x
    return best[:P] + best[P:].reshape(K, P)


def _planted(
    parts: Sequence[Scored], nodes: Sequence[np.ndarray], channel: Channel, kind: int
) -> Iterator[tuple[Scored, np.ndarray, np.ndarray]]:
    """Give parts with errors of a kind, the marginals [n, Y] of each, and the positions [n] where errors are."""
    assert channel.kinds is not None
    some = slice(None, None, max(1, sum(len(part.gold) for part in parts) // MOST_POSITIONS))
    rng, total = np.random.default_rng(kind), 0
    for _ in range(MOST_ROUNDS):
        for part, node in zip(parts[some], nodes[some], strict=True):
            own = channel.numbers(part)
            among = np.full(len(channel.labels), -1)
            among[own] = np.arange(len(own))
            gold = np.where(part.gold >= 0, own[part.gold], -1)
            codes = channel.kinds.plant(kind, gold, part.offsets, SHARE, rng)
            new = np.where(codes >= 0, among[codes], -1)
            where = (new >= 0) & (new != part.gold)
            total += np.count_nonzero(where)
            if where.any():
                yield replace(part, gold=np.where(where, new, part.gold).astype(part.gold.dtype)), node, where
        if total >= PLANTED or not total:
            break


def _numbers(seen: np.ndarray, planted: np.ndarray) -> np.ndarray:
    """Return the numbers of errors by kind [K] that explain counts [K, J], beside the models' uncertainty."""
    minimize = scipy_module("optimize").minimize  # only needed here
    K, shape = len(seen), planted.sum(axis=0)
    unit = seen[:, MIDDLES > 0].sum() + 10

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        numbers, level, slope = at.reshape(3, K)
        numbers, slope = unit * numbers, np.exp(slope)
        steps = slope[:, None] * MIDDLES
        background = np.exp(level)[:, None] * np.exp(-steps) * shape
        expected = np.einsum("k,kcj->cj", numbers, planted) + background + 1e-9
        above = np.log(slope / SLOPE) / SLOPE_WIDTH
        misfit = expected - seen - seen * np.log(expected / np.maximum(seen, 1e-9))
        off = 1 - seen / expected
        by_number = unit * np.einsum("cj,kcj->k", off, planted)
        by_slope = above / SLOPE_WIDTH - (off * background * steps).sum(axis=1)
        value = float(misfit.sum() + np.square(above).sum() / 2)
        return value, np.concatenate([by_number, (off * background).sum(axis=1), by_slope])

    level = np.log(seen[:, 1] / np.maximum(shape[:, 1], 1e-3) * np.exp(SLOPE * MIDDLES[1]) + 0.1)
    # A kind of which nothing could be planted has no errors.
    bounds = [(0.0, 1e3 * (share > 0)) for share in planted.sum(axis=(1, 2))]
    bounds += [(-9.0, 16.0)] * K + [(np.log(0.3), np.log(2.0))] * K
    options = {"maxiter": 1000, "maxfun": 3000, "ftol": 1e-10, "gtol": 1e-5}
    found = []
    for share in (0.5, 0.05):
        start = np.clip(np.concatenate([np.full(K, share), level, np.full(K, np.log(SLOPE))]), *np.array(bounds).T)
        found.append(minimize(loss, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options))
    return unit * min(found, key=lambda each: each.fun).x[:K]
