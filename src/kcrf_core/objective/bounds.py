"""Lower bounds on min P: their rounding errors, and what an L1 penalty makes of them.

With an L1 penalty sum_j c_j |theta_j| beside the prior, the loss is linearised, with its gradient g, its constant
H = loss - <g, theta>, which is the entropy of the model's distribution, and soft_c(g) = sign(g) max(|g| - c, 0):

    min P >= H - sum_j (sigma_j^2 / 2) soft_c(g_j)^2

Where sigma is infinite this needs |g| <= c, and where it is large slopes beyond c cost much. The distribution
q = (1 - s) e_y + s p, gold mixed with the model's p, has the gradient s g, and the loss lies above its entropy, for
each sequence

    H(q) = s H(p) + s p(y) log p(y) - s (1 - p(y)) log s - q(y) log q(y)                         at least s H(p)

so every s gives a bound, H(q) - sum_j (sigma_j^2 / 2) soft_c(s g_j)^2, concave in s: the best one is taken. Of several
points, with shares l_k and g = sum_k l_k g_k, the entropy is at least sum_k l_k H(q_k).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

# Halvings of the interval that has the best share of the model's distribution beside gold labellings.
HALVINGS = 30


@dataclass(frozen=True)
class Slack:
    """Rounding error of a lower bound; see `maps.rounding`."""

    amount: float  # off the bound
    length: float  # of the gradient, each block times its sigma
    factor: float  # of the squared length of the gradient, as a part
    excess: float = 0.0  # of the largest |g| / c of an L1 penalty

    def widen(self, value: float, square: float) -> float:
        """Return the bound value - square / 2, where `square` is the squared length of a gradient, sigma included."""
        if not self.factor < 1 or not np.isfinite(square):
            return -np.inf
        return float(value - self.amount - (np.sqrt(max(square, 0.0)) + self.length) ** 2 / (2 * (1 - self.factor)))

    def joined(self, other: Slack) -> Slack:
        """Return the larger of both."""
        return Slack(*map(max, astuple(self), astuple(other)))


NO_SLACK = Slack(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Mixture:
    """Probabilities of gold labellings under the distributions of some points."""

    weights: np.ndarray  # [S] of sequences
    shares: np.ndarray  # [K] of points
    logs: np.ndarray  # [K, S] log p(y)

    def gain(self, share: float) -> float:
        """Return the sum of H(q) - s H(p) for q = (1 - s) e_y + s p; never negative."""
        gold = np.exp(self.logs)
        both = 1 - share + share * gold
        gains = share * gold * self.logs + share * np.expm1(self.logs) * np.log(share) - both * np.log(both)
        return float(self.shares @ np.maximum(gains, 0.0) @ self.weights)

    def slope(self, share: float) -> float:
        """Return the derivative of `gain` by s."""
        gold = np.exp(self.logs)
        slopes = gold * self.logs - np.expm1(self.logs) * np.log((1 - share) / share + gold)
        return float(self.shares @ slopes @ self.weights)


@dataclass(frozen=True)
class SparseDual:
    """A bound on min P with an L1 penalty, by an entropy H and the slopes beyond their thresholds."""

    constant: float  # H
    places: np.ndarray  # [n] where |g| is beyond c
    sizes: np.ndarray  # [n] |g| there
    thresholds: np.ndarray  # [n] c
    variances: np.ndarray  # [n] sigma^2

    def bound(self, slack: Slack = NO_SLACK, mixture: Mixture | None = None) -> float:
        """Return the best bound of mixtures with gold, less its rounding error; without one, by s H(p) alone."""
        infinite = np.isinf(self.variances)
        excess, sizes, thresholds, variances = 0.0, self.sizes, self.thresholds, self.variances
        if infinite.any():
            excess = float((sizes[infinite] / thresholds[infinite]).max())
            sizes, thresholds, variances = (own[~infinite] for own in (sizes, thresholds, variances))
        share, least = 1.0 / max(1.0, excess + slack.excess), 0.0
        # The bound falls by sum_j sigma^2 g^2 max(s - c / |g|, 0) with s: the sum over terms that are linear between
        # `least` and `share`, and those that are not yet known to be so, which become ever fewer.
        borders, weights, linear, at_zero = thresholds / sizes, variances * sizes * sizes, 0.0, 0.0
        for halving in range(HALVINGS + 1):
            middle = (least + share) / 2 if halving else share
            below = borders < middle
            weight, moment = float(weights[below].sum()), float(weights[below] @ borders[below])
            slope = self.constant - (linear + weight) * middle + at_zero + moment
            if slope + (mixture.slope(middle) if mixture else 0.0) <= 0:
                share, kept = middle, below
            elif not halving:
                break
            else:
                least, kept, linear, at_zero = middle, ~below, linear + weight, at_zero + moment
            borders, weights = borders[kept], weights[kept]
        constant = share * self.constant + (mixture.gain(share) if mixture else 0.0)
        return slack.widen(constant, float(variances @ np.maximum(share * sizes - thresholds, 0.0) ** 2))
