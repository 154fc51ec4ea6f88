"""Transforms of columns of numbers: functions of rows [N, r] that see the positions around each within its sequence.

Sums over a width depend on the numbers in view alone, whatever stands before a sequence and however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ..system import positions_within, ranges

RANKS = 257  # quantiles that ranks are read from
SUMMARY = 4096  # quantiles that stand for the numbers of a part of the data, where it has more
NUMBERS_AT_ONCE = 1 << 20  # in views of positions
QUANTILE = 0.01  # of the training data below and above which `clip` cuts


@dataclass(frozen=True)
class Moments:
    """Counts, means and standard deviations of columns of numbers, [r] each, those that are missing left out.

    Where rows have weights, counts are sums of them, and rows of weight 0 are left out.
    """

    count: np.ndarray  # or the sum of weights
    mean: np.ndarray
    deviation: np.ndarray
    binary: np.ndarray  # whether all are zeros and ones

    @classmethod
    def of(cls, raw: np.ndarray, weights: np.ndarray | None = None) -> Moments:
        """Return the moments of numbers [n, r]; a weight [n] says how often a row counts."""
        if weights is not None and (weights != 1).any():
            return cls._weighted(raw[weights > 0], weights[weights > 0])
        lacking = np.isnan(raw)
        count, binary = len(raw) - lacking.sum(axis=0), ((raw == 0) | (raw == 1) | lacking).all(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            if not lacking.any():
                return cls(count, raw.mean(axis=0), raw.std(axis=0), binary)
            mean, deviation = np.zeros(raw.shape[1]), np.zeros(raw.shape[1])
            some = count > 0
            mean[some], deviation[some] = np.nanmean(raw[:, some], axis=0), np.nanstd(raw[:, some], axis=0)
        return cls(count, mean, deviation, binary)

    @classmethod
    def _weighted(cls, raw: np.ndarray, weights: np.ndarray) -> Moments:
        known = ~np.isnan(raw)
        binary = ((raw == 0) | (raw == 1) | ~known).all(axis=0)
        shares = np.where(known, weights[:, None], 0.0)  # [n, r]
        count = shares.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = (shares * np.where(known, raw, 0.0)).sum(axis=0) / np.where(count > 0, count, 1.0)
            squares = np.where(known, raw - mean, 0.0) ** 2
            deviation = np.sqrt((shares * squares).sum(axis=0) / np.where(count > 0, count, 1.0))
        return cls(count, mean, deviation, binary)

    def plus(self, other: Moments) -> Moments:
        """Return the moments of both together."""
        count = self.count + other.count
        share = other.count / np.where(count > 0, count, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.where((self.count > 0) & (other.count > 0), other.mean - self.mean, 0.0)
            mean = np.where(self.count > 0, self.mean + share * apart, other.mean)
            within = (1 - share) * self.deviation**2 + share * other.deviation**2
            deviation = np.sqrt(within + share * (1 - share) * apart**2)
        return Moments(count, mean, deviation, self.binary & other.binary)


@dataclass(frozen=True)
class NumberTransform:
    """A transform: `function` of rows [N, r], offsets of sequences, a width and quantiles of training data [L, r]."""

    function: Callable[[np.ndarray, np.ndarray, int, np.ndarray | None], np.ndarray]
    reach: Callable[[int], tuple[int, int]] = lambda width: (0, 0)  # positions behind and ahead, by its width
    narrowest: int | None = None  # width; None: it takes none
    width: int | None = None  # the default; None: it has to be given
    levels: Callable[[float], np.ndarray] | None = None  # of quantiles that it needs, by the lowest one
    joins: bool = False  # several columns make one number; else one each


def _difference(values: np.ndarray, offsets: np.ndarray, width: int, _: np.ndarray | None) -> np.ndarray:
    """Return the change since `width` positions before, or since the first position of the sequence."""
    before = np.arange(len(values)) - np.minimum(positions_within(offsets), width)
    with np.errstate(over="ignore"):
        return values - values[before]


def _speed(values: np.ndarray, offsets: np.ndarray, width: int, _: np.ndarray | None) -> np.ndarray:
    """Return the Euclidean length of the change of all columns together."""
    with np.errstate(over="ignore"):
        return np.linalg.norm(_difference(values, offsets, width, None), axis=1, keepdims=True)


def _clip(values: np.ndarray, _: np.ndarray, width: int, quantiles: np.ndarray | None) -> np.ndarray:
    assert quantiles is not None
    return np.clip(values, quantiles[0], quantiles[-1])


def _rank(values: np.ndarray, _: np.ndarray, width: int, quantiles: np.ndarray | None) -> np.ndarray:
    """Return the part of the training data that is smaller, from 0 to 1; half of what is equal counts."""
    assert quantiles is not None
    out, last = np.empty_like(values), len(quantiles) - 1
    for r, table in enumerate(quantiles.T):
        own = values[:, r]
        low, high = (np.searchsorted(table, own, side=side) for side in ("left", "right"))
        below, above = np.maximum(low - 1, 0), np.minimum(low, last)
        gap = table[above] - table[below]
        share = np.divide(own - table[below], gap, out=np.zeros_like(own), where=gap > 0)
        between = np.where(low == 0, 0.0, np.where(low > last, last, below + share))
        out[:, r] = np.where(high > low, (low + high - 1) / 2, between) / last
    out[np.isnan(values)] = np.nan
    return out


def _around(width: int) -> tuple[int, int]:
    """Return positions behind and ahead of a centred width."""
    return width // 2, (width - 1) // 2


def _moments(values: np.ndarray, offsets: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return means and deviations of the known numbers in a width around each position, [N, r]; NaN for none."""
    behind, _ = _around(width)
    # Sequences stand so far apart that no view of one has numbers of another.
    sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    first = np.arange(len(values)) + behind * sequence  # [N] where the view of each position begins
    apart = np.full((len(values) + width * len(offsets), values.shape[1]), np.nan)
    apart[first + behind] = values
    views = np.lib.stride_tricks.sliding_window_view(apart, width, axis=0)  # [., r, width]
    mean, deviation = np.empty_like(values), np.empty_like(values)
    for some in ranges(len(values), max(NUMBERS_AT_ONCE // (width * max(values.shape[1], 1)), 1)):
        part = np.ascontiguousarray(views[first[some]])
        known = ~np.isnan(part)
        count = known.sum(axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            mean[some] = np.where(known, part, 0.0).sum(axis=2) / count
            part = np.where(known, part - mean[some][:, :, None], 0.0)
            deviation[some] = np.sqrt((part * part).sum(axis=2) / count)
    return mean, deviation


def _before(width: int) -> tuple[int, int]:
    return width, 0


DIFFERENCE = NumberTransform(_difference, _before, 1, 1)
SPEED = NumberTransform(_speed, _before, 1, 1, joins=True)
LOG1P = NumberTransform(lambda values, *_: np.copysign(np.log1p(np.abs(values)), values))  # log(1 + |x|), signed
CLIP = NumberTransform(_clip, levels=lambda lowest: np.array([lowest, 1 - lowest]))
RANK = NumberTransform(_rank, levels=lambda lowest: np.linspace(0, 1, RANKS))
MEAN = NumberTransform(lambda values, offsets, width, _: _moments(values, offsets, width)[0], _around, 2)
STD = NumberTransform(lambda values, offsets, width, _: _moments(values, offsets, width)[1], _around, 2)


def quantiles(parts: Iterable[np.ndarray], levels: np.ndarray) -> np.ndarray:
    """Return quantiles [L, r] of the known numbers of all parts [n, r]; zeros of columns that have none."""
    found: list[list[tuple[np.ndarray, np.ndarray]]] = []  # of each column: numbers, and the weight of each
    for part in parts:
        found = found or [[] for _ in part.T]
        for own, column in zip(found, part.T, strict=True):
            known = column[~np.isnan(column)]
            count = len(known)
            if count > SUMMARY:
                known = np.quantile(known, (np.arange(SUMMARY) + 0.5) / SUMMARY)
            own.append((known, np.full(len(known), count / max(len(known), 1))))
    out = np.zeros((len(levels), len(found)))
    for r, own in enumerate(found):
        numbers, weights = (np.concatenate(arrays) for arrays in zip(*own, strict=True))
        if len(numbers):
            order = np.argsort(numbers, kind="stable")
            before = np.cumsum(weights[order]) - weights[order] / 2
            out[:, r] = np.interp(levels, before / weights.sum(), numbers[order])
    return out
