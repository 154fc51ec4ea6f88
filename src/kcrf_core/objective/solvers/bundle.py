"""A lower bound on min P from several linearisations at once.

The loss -sum_i w_i log p(y^i | x^i; theta) is convex: for every point k it lies above a_k + <g_k, theta>, g_k its
gradient there. So it does above convex combinations, and with the prior added their minimum is known:

    min P >= sum_k l_k a_k - sum_j (sigma_j^2 / 2) |sum_k l_k g_kj|^2,    l_k >= 0,  sum_k l_k = 1

With an L1 penalty of thresholds c it is sigma_j^2 / 2 times |soft_c(sum_k l_k g_kj)|^2, piecewise quadratic in the
shares: Newton steps find the best ones. Where sigma is infinite gold labellings are mixed in, see `objective`. On OCR
(poly-3, 1,500 pivots) five points certify a gap of 1e-3 after 113 passes where one alone, Lemma 9, takes 125.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from .. import Objective, Point, Slack, Vector, mixed_bound

POINTS = 5
# Points whose own bound is below this part of P are of no use yet, and would only cost memory traffic.
USEFUL = 0.5
MOST_EXCHANGES = 1_000
# Newton steps for the shares with an L1 penalty, how much one must gain, as a part of the bound, and halvings of it.
MOST_NEWTON, LEAST_NEWTON_GAIN, MOST_HALVINGS = 6, 1e-6, 4
# With an L1 penalty and an infinite sigma^2 slopes must not pass thresholds at all. To choose shares they may pass them
# at a price, that of some sigma^2, as a part of the square of a weight that takes all of P for its penalty.
SURROGATES = (1e-4, 1e-2, 1.0)

# Vectors that long are remembered in single precision while passes are: half the memory to hold and to go through.
LONG = 1 << 15


def kept_dtype(objective: Objective) -> type:
    """Return the precision of steps and gradients that are remembered."""
    return np.float32 if objective.size > LONG and objective.dtype != np.float64 else np.float64


@dataclass(frozen=True)
class BundlePart:
    """A point, and its share in a combination."""

    theta: Vector
    share: float
    value: float  # P there


@dataclass(frozen=True)
class Bound:
    """A lower bound on min P, but for rounding, and the points that it is made of."""

    value: float
    constant: float  # sum_k l_k a_k
    square: float  # |sum_k l_k sigma g_k|^2
    parts: list[BundlePart]
    total: Vector | None = None  # sum_k l_k g_k, with an L1 penalty
    points: tuple[Point, ...] = ()  # of parts, likewise

    def proven(self, objective: Objective) -> float:
        """Return the bound less the rounding error of evaluations in double precision."""
        slack = reduce(Slack.joined, [objective.slack(part.theta, part.value) for part in self.parts])
        if self.total is not None:
            return objective.sparse_bound(self.total, self.found_parts(), slack)
        return slack.widen(self.constant, self.square)

    def found_parts(self) -> list[tuple[float, Vector, Point]]:
        """List shares, points and evaluations, with an L1 penalty."""
        return [(part.share, part.theta, point) for part, point in zip(self.parts, self.points, strict=True)]


class Combination:
    """Bound of a given combination of points, taken up one at a time: it keeps no more than their sum."""

    def __init__(self, objective: Objective):
        self._objective, self._total = objective, objective.vectors.zeros()  # of sigma g_k
        self._constant, self._slack = 0.0, Slack(0.0, 0.0, 0.0)
        self._parts: list[tuple[float, Vector, Point]] = []  # with an L1 penalty

    def add(self, theta: Vector, found: Point, share: float) -> None:
        objective, vectors = self._objective, self._objective.vectors
        if objective.thresholds is not None:
            own = vectors.loss_gradient(theta, found.gradient, objective.sigma2)
            self._parts.append((share, theta, replace(found, gradient=None)))
        else:
            own, constant, _ = vectors.linearised(theta, found.gradient, objective.sigma2, np.float64, [])
            self._constant += share * (-found.log_likelihood - constant)
        vectors.add_scaled(self._total, share, own)
        self._slack = self._slack.joined(objective.slack(theta, found.value))

    def proven(self) -> float:
        """Return the bound less the rounding error; shares have to sum up to one."""
        if self._parts:
            return self._objective.sparse_bound(self._total, self._parts, self._slack)
        return self._slack.widen(self._constant, self._objective.vectors.dot(self._total, self._total))


class Bundle:
    """Linearisations of the last few points that mattered."""

    def __init__(self) -> None:
        self._thetas: list[Vector] = []  # K points
        self._values: list[float] = []  # K times P
        self._constants = np.empty(0)  # [K] a_k
        self._gradients: list[Vector] = []  # K times sigma g_k
        self._gram = np.empty((0, 0))  # [K, K] of those
        self._shares = np.empty(0)  # [K] l_k of the best combination
        self._points: list[Point] = []  # K, without their gradients, with an L1 penalty
        self._gold: dict[int, np.ndarray] = {}  # log p(y | x) of each sequence [S], by the identity of a point

    def add(self, objective: Objective, theta: Vector, found: Point) -> Bound | None:
        """Take up a point; return the best bound with it, None where it is of no use yet."""
        vectors, sparse, dtype = objective.vectors, objective.thresholds is not None, kept_dtype(objective)
        if sparse:
            useful = USEFUL * found.value <= found.constant <= found.value / USEFUL
        else:
            useful = not found.lower < USEFUL * found.value
        if not useful:
            return None
        if len(self._gradients) == POINTS:
            self._drop(int(np.argmin(self._shares)))
        if sparse:
            own = vectors.loss_gradient(theta, found.gradient, objective.sigma2, dtype)
            constant = found.constant
            self._points.append(replace(found, gradient=None))
        else:
            own, along, row = vectors.linearised(theta, found.gradient, objective.sigma2, dtype, self._gradients)
            constant = -found.log_likelihood - along
            self._gram = np.block([[self._gram, np.array(row[:-1])[:, None]], [np.array(row)]])
        self._gradients.append(own)
        self._thetas.append(vectors.cast(theta, np.dtype(dtype)))
        self._values.append(found.value)
        self._constants = np.append(self._constants, constant)
        if sparse:
            return self._best_sparse(objective, found)
        self._shares, bound = best_combination(self._constants, self._gram)
        square = float(self._shares @ self._gram @ self._shares)
        return Bound(bound, float(self._shares @ self._constants), square, self._parts(self._shares))

    def _parts(self, shares: np.ndarray) -> list[BundlePart]:
        return [BundlePart(self._thetas[k], float(shares[k]), self._values[k]) for k in np.flatnonzero(shares)]

    def _best_sparse(self, objective: Objective, found: Point) -> Bound:
        """Return the best bound with an L1 penalty, after a new point."""
        newest = np.zeros(len(self._constants))
        newest[-1] = 1.0
        start = np.append(self._shares, 0.0)
        start = start / start.sum() if start.any() else newest
        best: Bound | None = None
        unit = (found.value / objective.least_threshold) ** 2
        for price in SURROGATES if objective.mixes else (1.0,):
            variances = np.where(np.isfinite(objective.sigma2), objective.sigma2, price * unit)
            soft_products = partial(objective.vectors.soft_products, self._gradients, variances=variances)
            products = partial(soft_products, thresholds=objective.thresholds)
            start = best_sparse_combination(self._constants, start, products)
            bound = self._sparse_bound(objective, start)
            if best is None or bound.value > best.value:
                best, self._shares = bound, start
        if best is None or found.lower > best.value:
            best, self._shares = self._sparse_bound(objective, newest), newest
        return best

    def _sparse_bound(self, objective: Objective, shares: np.ndarray) -> Bound:
        """Return the bound of a combination."""
        vectors, total = objective.vectors, objective.vectors.zeros()
        used = np.flatnonzero(shares)
        for k in used:
            vectors.add_scaled(total, float(shares[k]), self._gradients[k])
        square, excess = vectors.soft_square(total, objective.sigma2, objective.thresholds)
        constant = float(shares @ self._constants)
        points = tuple(self._points[k] for k in used)
        return Bound(mixed_bound(constant, square, excess), constant, square, self._parts(shares), total, points)

    def mixed(self, objective: Objective, bound: Bound) -> tuple[float, int]:
        """Return a bound with the entropy of mixtures, but for rounding, and how many passes it took."""
        parts = bound.found_parts()
        new = [theta for _, theta, _ in parts if id(theta) not in self._gold]
        for theta in new:
            self._gold[id(theta)] = objective.engine.sequence_log_probabilities(theta)
        gold = [self._gold[id(theta)] for _, theta, _ in parts]
        return objective.sparse_bound(bound.total, parts, Slack(0.0, 0.0, 0.0), gold), len(new)

    def _drop(self, k: int) -> None:
        self._gold.pop(id(self._thetas[k]), None)
        del self._gradients[k], self._thetas[k], self._values[k]
        self._constants, self._shares = np.delete(self._constants, k), np.delete(self._shares, k)
        if self._points:
            del self._points[k]
        else:
            self._gram = np.delete(np.delete(self._gram, k, axis=0), k, axis=1)


def best_combination(constants: np.ndarray, gram: np.ndarray) -> tuple[np.ndarray, float]:
    """Return l on the simplex that nearly maximises l.a - l.G l / 2, and that value, a bound for any l.

    Exchanges between two entries at a time: the one that gains most by growing, and the one by shrinking.
    """
    shares = np.zeros(len(constants))
    shares[np.argmax(constants - np.diag(gram) / 2)] = 1.0
    for _ in range(MOST_EXCHANGES):
        slopes = constants - gram @ shares
        up = int(np.argmax(slopes))
        down = int(np.argmin(np.where(shares > 0, slopes, np.inf)))
        gain = slopes[up] - slopes[down]
        if gain <= 1e-10 * abs(constants).max():
            break
        curvature = gram[up, up] + gram[down, down] - 2 * gram[up, down]
        amount = min(shares[down], gain / max(curvature, 1e-300))
        shares[up] += amount
        shares[down] -= amount
    shares /= shares.sum()
    return shares, float(shares @ constants - shares @ gram @ shares / 2)


def best_sparse_combination(
    constants: np.ndarray,
    shares: np.ndarray,
    soft_products: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Return l on the simplex that nearly maximises l.a - S(l) / 2, from given ones on.

    `soft_products` gives S, half of its first and half of its second derivatives at some shares.
    """
    square, slopes, gram = soft_products(shares)
    value = float(shares @ constants) - square / 2
    for _ in range(MOST_NEWTON):
        aim, _ = best_combination(constants - slopes + gram @ shares, gram)
        for _ in range(MOST_HALVINGS):
            found = soft_products(aim)
            reached = float(aim @ constants) - found[0] / 2
            if reached > value:
                break
            aim = (aim + shares) / 2
        else:
            break
        gain, value = reached - value, reached
        shares, (square, slopes, gram) = aim, found
        if gain <= LEAST_NEWTON_GAIN * abs(value):
            break
    return shares
