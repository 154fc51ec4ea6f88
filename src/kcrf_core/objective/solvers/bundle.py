"""A lower bound on min P from several linearisations at once.

The loss -sum_i w_i log p(y^i | x^i; theta) is convex: for every point k it lies above a_k + <g_k, theta>, g_k its
gradient there. So it does above convex combinations, and with the prior added their minimum is known:

    min P >= sum_k l_k a_k - sum_j (sigma_j^2 / 2) |sum_k l_k g_kj|^2,    l_k >= 0,  sum_k l_k = 1

Five points certify a gap of 1e-3 of OCR (poly-3, 1,500 pivots) after 93 passes where one alone, Lemma 9, takes 101, and
CoNLL-2000 with a sigma^2 of 1 after 123 passes in place of 143.

With an L1 penalty the bound is that of `SparseDual`, for the same combinations and for what it adds itself, gold
labellings. There it is piecewise quadratic in the l_k; a few of its pieces are maximised one after another. 2,000
sentences of CoNLL-2000, c1 and c2 0.1, after 100 passes: the gap is 0.53 % by single points and 0.19 % by five.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from .. import Objective, Point, Slack, SparseDual, Vector, Vectors

POINTS = 5
# Points whose own bound is below this part of P are of no use yet, and would only cost memory traffic.
USEFUL, USEFUL_SPARSE = 0.5, 0.3
MOST_EXCHANGES = 50
# With an L1 penalty: pieces of the bound that are maximised, at most, and halvings of a step between two of them. With
# 3, 6 and 20 pieces: gaps of 0.878, 0.819 and 0.819 nats (120 documents of header). In the place of an infinite sigma^2
# comes a finite one: slopes 1 % beyond c take that part of H off the bound.
MOST_PIECES, MOST_HALVINGS, INFINITE_TAKES = 6, 4, 0.01
# Relative error of a combination in single precision: values differ by a few parts in a million.
SINGLE_MARGIN = 1e-5

# Vectors that long are remembered in single precision while passes are: half the memory to hold and to go through.
LONG = 1 << 15


def kept_dtype(objective: Objective) -> type:
    """Return the precision of steps and gradients that are remembered."""
    return np.float32 if objective.size > LONG and objective.dtype != np.float64 else np.float64


@dataclass(frozen=True)
class NonzeroParameters:
    """Parameters that are not zero, with an L1 penalty."""

    vectors: Vectors
    places: np.ndarray  # [n] ascending
    values: np.ndarray  # [n]

    @classmethod
    def of(cls, vectors: Vectors, theta: Vector, dtype: type) -> NonzeroParameters:
        places = np.flatnonzero(vectors.to_array(theta))
        return cls(vectors, places, vectors.values_at(theta, places).astype(dtype))

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return parameters at these places, which ascend."""
        out = np.zeros(len(places))
        _, own, there = np.intersect1d(self.places, places, assume_unique=True, return_indices=True)
        out[there] = self.values[own]
        return out

    def whole(self) -> Vector:
        out = np.zeros(self.vectors.size)
        out[self.places] = self.values
        return self.vectors.from_array(out)


def whole(theta: Vector | NonzeroParameters | None) -> Vector | None:
    """Return parameters as a vector of all."""
    return theta.whole() if isinstance(theta, NonzeroParameters) else theta


@dataclass(frozen=True)
class BundlePart:
    """A point, and its share in a combination."""

    kept: Vector | NonzeroParameters
    share: float
    value: float  # P there

    @property
    def theta(self) -> Vector:
        return whole(self.kept)


@dataclass(frozen=True)
class Bound:
    """A lower bound on min P, but for rounding, and the points that it is made of."""

    value: float
    parts: list[BundlePart]
    constant: float = 0.0  # sum_k l_k a_k
    square: float = 0.0  # |sum_k l_k sigma g_k|^2
    dual: SparseDual | None = None  # with an L1 penalty

    def proven(self, objective: Objective) -> float:
        """Return the bound less the rounding error of evaluations in double precision."""
        slack = reduce(Slack.joined, [objective.slack(part.theta, part.value) for part in self.parts])
        if self.dual is None:
            return slack.widen(self.constant, self.square)
        mixture = objective.mixture([part.theta for part in self.parts], [part.share for part in self.parts])
        return self.dual.bound(slack, mixture)


class Combination:
    """Bound of a given combination of points, taken up one at a time: it keeps no more than their sum."""

    def __init__(self, objective: Objective):
        self._objective = objective
        self._total: Vector | None = None  # sum_k l_k sigma g_k
        self._constant, self._slack = 0.0, Slack(0.0, 0.0, 0.0)

    def add(self, theta: Vector, point: Point, share: float) -> None:
        objective, vectors = self._objective, self._objective.vectors
        slope, constant, _ = vectors.linearised(theta, point.gradient, objective.sigma2, np.float64, [])
        self._constant += share * (-point.log_likelihood - constant)
        self._total = vectors.zeros() if self._total is None else self._total
        vectors.add_scaled(self._total, share, slope)
        self._slack = self._slack.joined(objective.slack(theta, point.value))

    def proven(self) -> float:
        """Return the bound less the rounding error; shares have to sum up to one. No points prove nothing."""
        if self._total is None:
            return -np.inf
        return self._slack.widen(self._constant, self._objective.vectors.dot(self._total, self._total))


class Bundle:
    """Linearisations of the last few points that mattered.

    With an L1 penalty slopes may be kept at `near` places alone. Where a point is beyond c elsewhere, it is taken for
    as far beyond as it is, and others for c, with the same sign.
    """

    def __init__(self, near: np.ndarray | None = None) -> None:
        self._near = near
        self._thetas: list[Vector | NonzeroParameters] = []  # K points
        self._values: list[float] = []  # K times P
        self._constants = np.empty(0)  # [K] a_k
        self._gradients: list[Vector] = []  # K times sigma g_k
        self._gram = np.empty((0, 0))  # [K, K] of those
        self._shares = np.empty(0)  # [K] l_k of the best combination
        self._beyond: list[tuple[np.ndarray, np.ndarray]] = []  # with an L1 penalty: places beyond c, and |g| there

    def add(self, objective: Objective, theta: Vector, point: Point) -> Bound | None:
        """Take up a point; return the best bound with it, None where it is of no use yet."""
        if point.lower < (USEFUL if point.dual is None else USEFUL_SPARSE) * point.value:
            return None
        if len(self._gradients) == POINTS:
            self._drop(int(np.argmin(self._shares)))
        vectors, dtype = objective.vectors, kept_dtype(objective)
        if point.dual is not None:
            return self._add_sparse(objective, theta, point, dtype)
        scaled, along, row = vectors.linearised(theta, point.gradient, objective.sigma2, dtype, self._gradients)
        self._gram = np.block([[self._gram, np.array(row[:-1])[:, None]], [np.array(row)]])
        self._gradients.append(scaled)
        self._thetas.append(vectors.cast(theta, np.dtype(dtype)))
        self._values.append(point.value)
        self._constants = np.append(self._constants, -point.log_likelihood - along)
        self._shares, bound = best_combination(self._constants, self._gram)
        margin = 0.0 if objective.dtype == np.float64 else SINGLE_MARGIN * abs(point.value)
        square = float(self._shares @ self._gram @ self._shares)
        return Bound(bound - margin, self._parts(), float(self._shares @ self._constants), square)

    def _parts(self) -> list[BundlePart]:
        used = np.flatnonzero(self._shares).tolist()
        return [BundlePart(self._thetas[k], float(self._shares[k]), self._values[k]) for k in used]

    def _add_sparse(self, objective: Objective, theta: Vector, point: Point, dtype: type) -> Bound:
        """Take up a point of P with an L1 penalty. Slopes are looked at where one of the points is beyond c."""
        vectors, dual = objective.vectors, point.dual
        assert dual is not None
        own = vectors.cast(point.gradient, np.dtype(dtype))
        self._gradients.append(own if self._near is None else vectors.values_at(own, self._near))
        self._thetas.append(NonzeroParameters.of(vectors, theta, dtype))
        self._values.append(point.value)
        self._constants, self._shares = np.append(self._constants, dual.constant), np.append(self._shares, 0.0)
        self._beyond.append((dual.places, dual.sizes if self._near is not None else dual.sizes[:0]))
        places = np.sort(np.concatenate([own for own, _ in self._beyond]), kind="stable")
        places = places[np.diff(places, prepend=-1) > 0] if self._near is None else np.union1d(places, self._near)
        variances, thresholds = objective.variances_at(places), vectors.values_at(objective.thresholds, places)
        columns = [self._slopes(k, vectors, places, variances, thresholds) for k in range(len(self._beyond))]
        slopes = np.stack(columns, axis=1)
        self._shares = best_shares(self._constants, slopes, thresholds, variances, self._shares)
        constant, total = float(self._shares @ self._constants), np.abs(slopes @ self._shares)
        combined = SparseDual(constant, places, total, thresholds, variances)
        return Bound(combined.bound(), self._parts(), dual=combined)

    def _slopes(
        self, k: int, vectors: Vectors, places: np.ndarray, variances: np.ndarray, thresholds: np.ndarray
    ) -> np.ndarray:
        """Return slopes of the loss at one of the points."""
        if self._near is None:
            return vectors.values_at(self._gradients[k], places) - self._thetas[k].at(places) / variances
        slopes, near = thresholds.copy(), np.searchsorted(places, self._near)
        beyond, sizes = self._beyond[k]
        slopes[np.searchsorted(places, beyond)] = sizes
        slopes[near] = self._gradients[k] - self._thetas[k].at(self._near) / variances[near]
        return slopes

    def _drop(self, k: int) -> None:
        del self._gradients[k], self._thetas[k], self._values[k]
        self._constants, self._shares = np.delete(self._constants, k), np.delete(self._shares, k)
        if self._beyond:
            del self._beyond[k]
        else:
            self._gram = np.delete(np.delete(self._gram, k, axis=0), k, axis=1)


def best_combination(constants: np.ndarray, gram: np.ndarray) -> tuple[np.ndarray, float]:
    """Return l on the simplex that maximises l.a - l.G l / 2, and that value, a bound for any l.

    A method of active sets: it maximises over the entries in use alone, leaves out those that would become negative,
    and takes up the one that gains most.
    """
    shares = np.zeros(len(constants))
    shares[np.argmax(constants - np.diag(gram) / 2)] = 1.0
    used = shares > 0
    ridge = 1e-12 * max(float(np.diag(gram).max()), 1e-300)  # points may be the same
    for _ in range(MOST_EXCHANGES):
        own = np.flatnonzero(used)
        equations = np.ones((len(own) + 1, len(own) + 1))
        equations[:-1, :-1], equations[-1, -1] = gram[np.ix_(own, own)] + ridge * np.eye(len(own)), 0.0
        aim = np.zeros(len(constants))
        aim[own] = np.linalg.solve(equations, np.append(constants[own], 1.0))[:-1]
        negative = aim < 0
        if negative.any():  # as far as the first entry that becomes zero
            ratios = np.where(negative, shares / np.where(negative, shares - aim, 1.0), np.inf)
            shares = shares + ratios.min() * (aim - shares)
            used[np.argmin(ratios)] = False
            shares[~used] = 0.0
            continue
        shares = aim
        slopes = constants - gram @ shares
        gains = np.where(used, -np.inf, slopes - slopes[own].mean())
        if gains.max() <= 1e-10 * abs(constants).max():
            break
        used[np.argmax(gains)] = True
    shares = np.maximum(shares, 0.0) / np.maximum(shares, 0.0).sum()
    return shares, float(shares @ constants - shares @ gram @ shares / 2)


def best_shares(
    constants: np.ndarray,  # [K] H of each point
    slopes: np.ndarray,  # [n, K] g
    thresholds: np.ndarray,  # [n]
    variances: np.ndarray,  # [n]
    start: np.ndarray,  # [K]
) -> np.ndarray:
    """Return l on the simplex for which the bound of the combination, with gold labellings mixed in, is about largest.

    Where slopes are beyond c it is quadratic in l: with these known its maximum is that of `best_combination`.
    """
    most = 2e4 * INFINITE_TAKES * constants.max() / thresholds**2
    variances = np.where(np.isinf(variances), most, variances)

    def bound(shares: np.ndarray) -> float:
        beyond = np.maximum(np.abs(slopes @ shares) - thresholds, 0.0)
        return float(shares @ constants - variances @ (beyond * beyond) / 2)

    shares = np.eye(len(constants))[-1]
    best = bound(shares)
    if start.any() and (value := bound(start)) > best:
        best, shares = value, start
    for _ in range(MOST_PIECES):
        total = slopes @ shares
        beyond = np.abs(total) > thresholds
        rows, weights = slopes[beyond], variances[beyond]
        gram = np.pad((rows * weights[:, None]).T @ rows, (0, 1))
        linear = constants + (weights * np.copysign(thresholds[beyond], total[beyond])) @ rows
        aim = best_combination(np.append(linear, 0.0), gram)[0][:-1]  # the last share is that of gold labellings
        for _ in range(MOST_HALVINGS):
            value = bound(aim)
            if value > best:
                break
            aim = (aim + shares) / 2
        if not value > best + 2e-5 * abs(best) or not aim.any():
            break
        best, shares = value, aim
    return shares / shares.sum()
