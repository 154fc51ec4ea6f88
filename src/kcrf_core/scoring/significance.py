"""Confidence: intervals of figures by the bootstrap, p-values of differences by paired randomisation.

A figure is a function of counts that add up over units: sequences, which are independent draws, or blocks of a few
long ones (see "Figures and their errors" in docs/method.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np

from ..system import scipy_module, without_empty

# Draws times sequences held at a time.
_CELLS_AT_ONCE = 1 << 22

# Independent streams of random numbers: the results of one do not depend on whether the other is used.
_BOOTSTRAP, _RANDOMISATION = 0, 1

FEW_SEQUENCES = 20  # below that many, long ones are taken in blocks
GAPS_PER_BLOCK = 4  # least length of a block in gaps: runs or windows
FEWEST_BLOCKS, MOST_BLOCKS = 10, 40  # that all sequences together are divided into, about
LENGTHS_PER_BLOCK = 8  # wanted length of a block in correlation lengths of errors
FEWEST_LENGTHS = 4  # below which intervals are clearly too narrow
WINDOW = 5  # correlation lengths that a sum of autocorrelations reaches
FEW_UNITS = 30  # below that many, intervals and p-values are less sure than they say


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """One figure of two systems."""

    figure: str
    first: float
    second: float
    p_value: float
    interval: Interval | None  # of the difference, first minus second

    @property
    def difference(self) -> float:
        return self.first - self.second

    def to_dict(self) -> dict:
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "p_value": self.p_value,
            "interval": None if self.interval is None else asdict(self.interval),
        }


def figures(totals: np.ndarray) -> dict[str, np.ndarray]:
    """Compute figures by name, each [...], from sums [..., 4 or 7] of `Evaluation.unit_counts`."""
    positions, correct, sequences, right = (totals[..., k] for k in range(4))
    found = {"accuracy": _ratio(correct, positions), "sequence_accuracy": _ratio(right, sequences)}
    if totals.shape[-1] > 4:
        gold, predicted, matched = (totals[..., k] for k in range(4, 7))
        found |= {
            "precision": _ratio(matched, predicted),
            "recall": _ratio(matched, gold),
            "f1": _ratio(2 * matched, gold + predicted),
        }
    return found


def differences(
    first: np.ndarray, second: np.ndarray, draws: int, resamples: int, confidence: float, seed: int
) -> tuple[Difference, ...]:
    """Compare two systems on the same S sequences by their counts; without resamples there are no intervals."""
    K = first.shape[1]
    totals = first.sum(axis=0), second.sum(axis=0)
    observed = [figures(total) for total in totals]
    extreme = dict.fromkeys(observed[0], 0)
    generator, change = np.random.default_rng([seed, _RANDOMISATION]), second - first
    # Many sequences change counts alike: the number of those that are exchanged is one binomial draw.
    rows, number = np.unique(change[change.any(axis=1)], axis=0, return_counts=True)
    for size in _sizes(draws, len(rows)):
        taken = generator.binomial(number, 0.5, size=(size, len(rows)))
        moved = taken.astype(np.float64) @ rows.astype(np.float64)
        ours, theirs = figures(totals[0] + moved), figures(totals[1] - moved)
        for name in extreme:
            seen = abs(observed[0][name] - observed[1][name])
            # A draw counts that gives the same difference but for the rounding of another order of additions.
            extreme[name] += int(np.count_nonzero(np.abs(ours[name] - theirs[name]) >= seen * (1 - 1e-9)))

    found: dict[str, Interval] = {}
    if resamples:

        def difference(both: np.ndarray) -> dict[str, np.ndarray]:
            ours, theirs = figures(both[..., :K]), figures(both[..., K:])
            return {name: ours[name] - theirs[name] for name in ours}

        found = bootstrap(np.hstack([first, second]), difference, resamples, confidence, seed)
    return tuple(
        Difference(
            name, float(observed[0][name]), float(observed[1][name]), (1 + extreme[name]) / (1 + draws), found.get(name)
        )
        for name in extreme
    )


def bootstrap(
    counts: np.ndarray,
    statistics: Callable[[np.ndarray], dict[str, np.ndarray]],
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, Interval]:
    """Return intervals of statistics by name, functions of totals [..., K], from counts [S, K] of units."""
    generator = np.random.default_rng([seed, _BOOTSTRAP])
    S = len(counts)
    values = counts.astype(np.float64)  # whole numbers, in the type that BLAS takes
    parts = []
    for size in _sizes(resamples, S):
        drawn = generator.integers(S, size=(size, S))
        drawn += S * np.arange(size)[:, None]  # a row of bins for each resample
        times = np.bincount(drawn.ravel(), minlength=size * S).reshape(size, S)
        parts.append(statistics(times.astype(np.float64) @ values))
    tail = expanded_tail(confidence, S)
    tails = tail, 1 - tail
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: Interval(*map(float, np.quantile(figure, tails))) for name, figure in found.items()}


def expanded_tail(confidence: float, units: int) -> float:
    """Return the part of resampled figures on each side of an interval, from so many units.

    Plain quantiles of resamples are those of a normal distribution with (n - 1) / n of the
    variance. These are as far out as those of Student's distribution (Hesterberg 2015).
    """
    if units < 2:
        return (1 - confidence) / 2
    special = scipy_module("special")
    student = special.stdtrit(units - 1, (1 + confidence) / 2)
    return float(special.ndtr(-np.sqrt(units / (units - 1)) * student))


def _sizes(total: int, width: int) -> Iterator[int]:
    """Yield sizes that add up to `total`, each small enough for `width` columns."""
    most = max(1, _CELLS_AT_ONCE // max(width, 1))
    for first in range(0, total, most):
        yield min(most, total - first)


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide; 0 where the denominator is 0."""
    return numerator / np.maximum(denominator, 1)


def median_run(labels: np.ndarray, offsets: np.ndarray) -> int:
    """Return the median length of a run of one label, negative ones left out; 0 if there is none."""
    if not len(labels):
        return 0
    begins = np.ones(len(labels), dtype=bool)
    begins[1:] = labels[1:] != labels[:-1]
    begins[offsets[:-1][np.diff(offsets) > 0]] = True
    starts = np.flatnonzero(begins)
    runs = np.diff(np.append(starts, len(labels)))[labels[starts] >= 0]
    return int(np.median(runs)) if len(runs) else 0


def block_borders(
    offsets: np.ndarray, sequences: np.ndarray, block: int | None, gap: int, least: float = 0.0
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the starts and ends of blocks of some sequences that are not empty: of about `block` positions, if given.

    Else there are about MOST_BLOCKS of them, each worth a gap on both sides, and of the least
    number of positions unless that leaves too few; None if sequences are many, or too short for two each.
    """
    lengths = np.diff(offsets)[sequences]
    total = int(lengths.sum())
    if block is None:
        if len(sequences) >= FEW_SEQUENCES or total < 2 * GAPS_PER_BLOCK * gap * len(sequences):
            return None
        wanted = max(GAPS_PER_BLOCK * gap, math.ceil(least))
        block = max(-(-total // MOST_BLOCKS), min(wanted, -(-total // FEWEST_BLOCKS)), 1)
    counts = np.maximum(np.rint(lengths / block).astype(np.int64), 1)
    borders = [
        begin + np.linspace(0, length, count + 1).astype(np.int64)
        for begin, length, count in zip(offsets[sequences], lengths, counts, strict=True)
    ]
    nothing = np.zeros(0, dtype=np.int64)
    first = np.concatenate([nothing, *(each[:-1] for each in borders)])
    return first, np.concatenate([nothing, *(each[1:] for each in borders)])


def correlation_length(series: np.ndarray, offsets: np.ndarray) -> float:
    """Return the sum of autocorrelations of a series [N] within sequences, 1 + 2 sum_k rho_k.

    It ends at the first lag k of WINDOW times the sum so far; beyond is noise alone (Sokal 1997).
    """
    left = series - series.mean()
    pieces = [left[begin:end] for begin, end in pairwise(offsets.tolist())]
    longest = max(map(len, pieces))
    sums = np.zeros(longest)  # [k] of products of numbers k positions apart
    for piece in pieces:
        spectrum = np.fft.rfft(piece, 2 * len(piece))
        sums[: len(piece)] += np.fft.irfft(spectrum * spectrum.conj(), 2 * len(piece))[: len(piece)]
    if sums[0] <= 0:
        return 1.0
    lengths = 2 * np.cumsum(sums / sums[0]) - 1
    far = np.flatnonzero(np.arange(longest) >= WINDOW * lengths)
    return max(float(lengths[far[0] if len(far) else -1]), 1.0)


def unit_offsets(
    labels: np.ndarray,
    offsets: np.ndarray,
    block: int | None = None,
    errors: Sequence[np.ndarray] = (),
) -> tuple[np.ndarray, float]:
    """Return offsets [U+1] of units of labels [N]: sequences, or blocks of a few long ones.

    Blocks are several times as long as errors, or differences of errors, are correlated, series [N]
    each; that length comes second, 0 where units are sequences.
    """
    offsets = without_empty(offsets)
    every, gap = np.arange(len(offsets) - 1), median_run(labels, offsets)
    if block_borders(offsets, every, block, gap) is None:
        return offsets, 0.0
    lengths = [correlation_length(series.astype(np.float64), offsets) for series in errors]
    length = max(lengths, default=1.0)
    borders = block_borders(offsets, every, block, gap, LENGTHS_PER_BLOCK * length)
    assert borders is not None
    return np.append(borders[0], offsets[-1]), length
