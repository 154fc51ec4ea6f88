"""Calibration: the agreement of probabilities of labels with the frequencies of right labels.

Log-loss, Brier score and the expected calibration error, see "Figures and their errors" in docs/method.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from ..corpora import CodedColumn
from ..system import row_squares

# A probability that underflowed or was rounded to zero counts as this, so that a single hopeless position does not
# decide a comparison.
SMALLEST_PROBABILITY = 1e-30


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The probabilities of labels by one system that calibration needs."""

    predicted: np.ndarray  # [N] of the predicted label
    gold: np.ndarray | None  # [N] of the gold label, NaN where the system does not know it; None if not given
    squares: np.ndarray | None  # [N] sum over all labels of squared probabilities; None if not given

    @classmethod
    def of(cls, marginals: np.ndarray, gold: np.ndarray, predicted: np.ndarray) -> Probabilities:
        """Select from marginals [N, Y] by numbers of labels [N]; a gold one is negative if it is not known."""
        rows = np.arange(len(marginals))
        of_gold = np.where(gold >= 0, marginals[rows, gold], np.nan)
        return cls(marginals[rows, predicted], of_gold, row_squares(marginals))

    @classmethod
    def joined(cls, parts: Sequence[Probabilities]) -> Probabilities:
        """Concatenate the arrays of several parts, all of them given."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


@dataclass(frozen=True)
class Bin:
    """Positions with a confidence from `low` to `high`."""

    low: float
    high: float
    positions: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """The result of `calibrate`."""

    log_loss: float | None  # None if only the probabilities of predicted labels are there
    brier: float | None
    calibration_error: float
    impossible: int  # gold labels with a probability of zero; for the log-loss it is SMALLEST_PROBABILITY
    left_out: int  # positions whose gold label the system does not know; the log-loss is without them
    bins: tuple[Bin, ...]  # those that are not empty, in order

    def to_dict(self) -> dict:
        """Return plain values for JSON."""
        return asdict(self)


def from_marginals(
    marginals: np.ndarray, labels: Sequence[str], gold: Sequence[str], predicted: Sequence[str]
) -> Probabilities:
    """Collect the probabilities of N positions from marginals [N, Y] over `labels`, predicted ones among them."""
    return Probabilities.of(marginals, *(CodedColumn.of(column).numbered(labels) for column in (gold, predicted)))


def calibrate(probabilities: Probabilities, right: np.ndarray, bins: int = 10) -> Calibration:
    """Compute all figures from N probabilities and from `right` [N], which says where the predicted label is right."""
    confidence = probabilities.predicted
    which = np.minimum((confidence * bins).astype(np.int64), bins - 1)  # a confidence of 1 belongs to the last
    positions = np.bincount(which, minlength=bins)
    sums = np.bincount(which, weights=confidence, minlength=bins)
    hits = np.bincount(which, weights=right, minlength=bins)
    found = tuple(
        Bin(b / bins, (b + 1) / bins, int(positions[b]), float(sums[b] / positions[b]), float(hits[b] / positions[b]))
        for b in np.flatnonzero(positions).tolist()
    )
    log_loss = brier = None
    impossible = left_out = 0
    gold = probabilities.gold
    if gold is not None:
        known = gold[~np.isnan(gold)]
        impossible, left_out = int(np.count_nonzero(known == 0)), len(gold) - len(known)
        if len(known):
            log_loss = float(-np.log(np.maximum(known, SMALLEST_PROBABILITY)).mean())
        if probabilities.squares is not None:
            # An unknown label has no part in the sum over y, but should have had all of the probability.
            brier = float((probabilities.squares - 2 * np.nan_to_num(gold) + 1).mean())
    return Calibration(
        log_loss=log_loss,
        brier=brier,
        calibration_error=float(np.abs(hits - sums).sum() / len(confidence)),
        impossible=impossible,
        left_out=left_out,
        bins=found,
    )
