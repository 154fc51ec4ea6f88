"""The number of wrong labels, by comparison with planted ones (see "Wrong labels" in docs/method.md).

Models measure how doubtful each label is. The same is done for errors that are planted, a few at a time: f_k(d) is the
distribution of doubts d of errors of kind k. If n_k labels are wrong, n_k f_k(d) labels of the data have the doubt d
because they are wrong, and A f_k(d) exp(-s d) because models are uncertain: a label with log-odds d against it is drawn
exp(-d) times as often as the other one, if probabilities are right (s = 1). At large d, only errors are left. n_k, and
for each kind A and s, maximise the likelihood of counts in bins of d, independent Poisson ones.

The log-odds that a label is wrong are linear in its doubts z, for each kind of error. The coefficients c maximise

    sum_k n_k E_k[c z]  -  sum over labels of log(1 + exp(c z))

the likelihood of a logistic regression in which planted errors stand for the unknown ones among the labels (du Plessis,
Niu & Sugiyama 2015, learning from positive and unlabelled data), with a normal prior. Probabilities add up to n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..chains import chain
from ..system import Workers
from ..training import Scored
from .evidence import MOST_POSITIONS, Channel, Doubts
from .planting import NEIGHBOUR

EDGES = np.array([-np.inf, -14, -12, -10, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 9, np.inf])  # bins of d
MIDDLES = np.concatenate([[-15], (EDGES[1:-2] + EDGES[2:-1]) / 2, [10.5]])
LEAST = (-5, -7, -3)  # doubts from which on the number is estimated: the first one is used for probabilities
PLANTED, MOST_ROUNDS, SHARE = 1500, 12, 0.05  # errors of each kind, rounds, share of spans or labels in one
SLOPE, SLOPE_WIDTH = 0.8, 0.3  # s, expected around here; standard deviation of its logarithm
CHI2 = 3.84 / 2  # of the profile likelihood, 95 %
UNCLEAR, NEGLIGIBLE, FEW = 1.2, 0.01, 8  # widest interval: share of the estimate, share of all labels, labels
LEARNT = 0.25  # of the errors: models learn the labels that neighbours have
# Precisions of coefficients of all kinds together, of the difference of each kind from them, and of one that is 0;
# errors of each kind that are always supposed, so that labels have an order if no errors are estimated.
SHARED, OWN, NONE, SUPPOSED = 0.01, 1.0, 1e9, 0.01
LARGEST = 15.0  # doubt that counts


@dataclass(frozen=True, eq=False)
class ErrorNumber:
    """The estimated number of wrong labels, and the probability that a label is wrong by its doubt."""

    number: float
    low: float  # of the 95 % interval
    high: float
    labels: int  # that were judged
    by_kind: dict[str, float]  # by the first of LEAST alone
    coefficients: np.ndarray  # [K, 3] of the log-odds that a label is wrong, by kinds given the input
    curve: np.ndarray  # [J] probability of being wrong by bin of doubts given all labels, for spans and sequences

    @property
    def identified(self) -> bool:
        """False if the data do not tell the number: errors look like the models' own uncertainty."""
        learnt = self.by_kind.get(NEIGHBOUR, 0.0) > LEARNT * math.fsum(self.by_kind.values())
        narrow = self.high - self.low <= max(UNCLEAR * self.number, NEGLIGIBLE * self.labels, FEW)
        return narrow and not (learnt and self.number > NEGLIGIBLE * self.labels)

    def of_labels(self, doubts: Doubts) -> np.ndarray:
        """Return the probability that each label is wrong [n]."""
        return _logistic(np.einsum("np,np->n", self.coefficients[doubts.kinds_given_input], _inputs(doubts)))

    def of_wholes(self, doubts: np.ndarray) -> np.ndarray:
        """Return the probability that spans or sequences are wrong, by their doubts given all labels [n]."""
        return np.interp(doubts, MIDDLES, self.curve)


def estimate(parts: Sequence[Scored], channel: Channel, workers: Workers) -> ErrorNumber:
    """Estimate how many labels of the data are wrong."""
    K = len(channel.kinds.names)
    nodes = list(workers.map(lambda part: chain.marginals(part.scores, part.edges, part.offsets).node, parts))
    found = list(workers.map(lambda pair: channel.doubts(*pair), list(zip(parts, nodes, strict=True))))
    seen = sum((_histogram(doubts, K) for doubts in found), np.zeros((K, len(MIDDLES))))  # counts of the data
    planted = np.zeros((K, K, len(MIDDLES)))  # [kind planted, kind found, bin], shares of those planted
    means = np.zeros((K, K, 3))  # [kind planted, kind given the input, input of the regression], in the mean
    runs = np.ones(K)  # labels of an error
    for kind in range(K):
        total = errors = 0
        for part, node, where in _planted(parts, nodes, channel, kind):
            doubts = Doubts(*(values[where] for values in channel.doubts(part, node)))
            planted[kind] += _histogram(doubts, K)
            means[kind] += _sums(doubts.kinds_given_input, _inputs(doubts), K)
            total += np.count_nonzero(where)
            errors += np.count_nonzero(where & ~np.concatenate([[False], where[:-1]]))
        planted[kind] /= max(total, 1)
        means[kind] /= max(total, 1)
        runs[kind] = total / max(errors, 1)
    fits = [_Mixture(seen, planted, least) for least in LEAST]
    numbers, background = fits[0].best
    totals = [float(fit.best[0].sum()) for fit in fits]
    wrong = np.einsum("k,kcj->cj", numbers, planted)
    # Labels of an error come together and are no independent counts.
    spread = CHI2 * float(np.average(runs, weights=numbers + 1e-9))
    bounds = [fits[0].bound(sign, spread) for sign in (-1, 1)]
    labels = int(sum(np.count_nonzero(part.gold >= 0) for part in parts))
    by_kind = dict(zip(channel.kinds.names, numbers.tolist(), strict=True))
    low, high, number = min(*bounds, *totals), max(*bounds, *totals), float(np.median(totals))
    expected = numbers * (number / max(float(numbers.sum()), 1e-9)) + SUPPOSED
    curve = _curve(wrong.sum(axis=0), background.sum(axis=0), seen.sum(axis=0))
    result = ErrorNumber(number, low, high, labels, by_kind, np.zeros((K, 3)), curve)
    coefficients = _regression(found, np.einsum("k,kcp->cp", expected, means), result.identified)
    return replace(result, coefficients=coefficients)


def _histogram(doubts: Doubts, K: int) -> np.ndarray:
    """Return counts [K, J] by kind and bin."""
    known = ~np.isnan(doubts.given_labels) & (doubts.kinds >= 0)
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


def _logistic(s: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-s))


def _regression(found: Sequence[Doubts], target: np.ndarray, identified: bool) -> np.ndarray:
    """Return coefficients [K, P] whose probabilities have these sums of inputs over labels, by kind [K, P].

    If the number of errors is not identified, their kinds are even less: labels are ranked by p(label | x).
    """
    from scipy.optimize import minimize  # only needed here

    K, P = target.shape
    z, kinds = np.concatenate([_inputs(each) for each in found]), np.concatenate([each[3] for each in found])
    known = ~np.isnan(z[:, 1]) & (kinds >= 0)
    z, kinds = z[known], kinds[known]
    precision = np.repeat([SHARED, OWN if identified else NONE], [P, K * P])
    precision[:2] = 0.0, SHARED if identified else NONE

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        shared, own = at[:P], at[P:].reshape(K, P)
        s = np.einsum("np,np->n", (shared + own)[kinds], z)
        off = _sums(kinds, _logistic(s)[:, None] * z, K) - target
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
    some = slice(None, None, max(1, sum(len(part.gold) for part in parts) // MOST_POSITIONS))
    rng, total = np.random.default_rng(kind), 0
    for _ in range(MOST_ROUNDS):
        for part, node in zip(parts[some], nodes[some], strict=True):
            own = channel.numbers(part)
            among = np.full(len(channel.kinds.labels), -1)
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


class _Mixture:
    """The fit of errors and uncertainty to counts in bins."""

    def __init__(self, seen: np.ndarray, planted: np.ndarray, least: float):
        fitted = EDGES[:-1] >= least
        self.K, self.middles = len(seen), MIDDLES[fitted]
        self.seen, self.planted = seen[:, fitted], planted[:, :, fitted]
        self.shape, self.all_bins = self.planted.sum(axis=0), planted.sum(axis=0)
        level = self.seen[:, 1] / np.maximum(self.shape[:, 1], 1e-3) * np.exp(SLOPE * self.middles[1])
        self.unit = self.seen[:, self.middles > 0].sum() + 10
        rest = np.log(level + 0.1), np.full(self.K, np.log(SLOPE))
        starts = [np.concatenate([np.full(self.K, share), *rest]) for share in (0.5, 0.05)]
        self.found = min((self._fitted(start) for start in starts), key=lambda pair: pair[0])

    def _values(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return n, A and s, [K] each."""
        numbers, level, slope = at.reshape(3, self.K)
        return self.unit * numbers, np.exp(level), np.exp(slope)

    def _loss(self, at: np.ndarray, tilt: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the negative log-posterior less `tilt` times the number of errors, and its gradient."""
        numbers, level, slope = self._values(at)
        steps = slope[:, None] * self.middles
        background = level[:, None] * np.exp(-steps) * self.shape
        expected = np.einsum("k,kcj->cj", numbers, self.planted) + background + 1e-9
        above = np.log(slope / SLOPE) / SLOPE_WIDTH
        misfit = expected - self.seen - self.seen * np.log(expected / np.maximum(self.seen, 1e-9))
        loss = misfit.sum() + np.square(above).sum() / 2 - tilt * numbers.sum()
        off = 1 - self.seen / expected
        by_number = self.unit * (np.einsum("cj,kcj->k", off, self.planted) - tilt)
        by_slope = above / SLOPE_WIDTH - (off * background * steps).sum(axis=1)
        return float(loss), np.concatenate([by_number, (off * background).sum(axis=1), by_slope])

    def _fitted(self, start: np.ndarray, tilt: float = 0.0) -> tuple[float, np.ndarray]:
        """Return the smallest loss and where it is."""
        from scipy.optimize import minimize  # only needed here

        # A kind of which nothing could be planted has no errors.
        bounds = [(0.0, 1e3 * (share > 0)) for share in self.planted.sum(axis=(1, 2))]
        bounds += [(-9.0, 16.0)] * self.K + [(np.log(0.3), np.log(2.0))] * self.K
        start = np.clip(start, *np.array(bounds).T)
        options = {"maxiter": 1000, "maxfun": 3000, "ftol": 1e-10, "gtol": 1e-5}
        found = minimize(self._loss, start, (tilt,), "L-BFGS-B", jac=True, bounds=bounds, options=options)
        return float(found.fun), found.x

    @property
    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of errors by kind [K], and the expected counts of uncertain labels [K, J]."""
        numbers, level, slope = self._values(self.found[1])
        return numbers, level[:, None] * np.exp(-slope[:, None] * MIDDLES) * self.all_bins

    def bound(self, sign: int, distance: float) -> float:
        """Return the smallest or largest number of errors whose profile log-likelihood is so near to the best."""
        best, at = self.found
        number, tilts = float(self._values(at)[0].sum()), np.log([1e-5, 3.0])
        # The slope of the profile at its bound is not known: a tilt of the loss by it leads there.
        for _ in range(12):
            middle = tilts.mean()
            _, there = self._fitted(at, sign * np.exp(middle))
            near = self._loss(there)[0] - best < distance
            tilts[0 if near else 1] = middle
            if near:
                number = float(self._values(there)[0].sum())
        return number


def _curve(wrong: np.ndarray, background: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return the probability of being wrong by bin [J], which rises with the doubt."""
    # Below the fitted bins, the background is what is seen and not wrong.
    right = np.where(EDGES[:-1] >= LEAST[0], background, np.maximum(seen - wrong, 0.0))
    weights = wrong + right + 1e-6
    ends = np.cumsum(weights), np.cumsum(wrong)
    begins = [np.concatenate([[0.0], each[:-1]]) for each in ends]
    # The isotonic regression: the largest, over beginnings, of the smallest mean, over ends, around each bin.
    means = (ends[1] - begins[1][:, None]) / np.maximum(ends[0] - begins[0][:, None], 1e-12)  # [from, to]
    J = len(wrong)
    return np.array([max(means[a, j:].min() for a in range(j + 1)) for j in range(J)])
