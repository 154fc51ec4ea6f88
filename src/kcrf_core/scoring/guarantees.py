"""Thresholds on confidence that limit errors without review, and thresholds for sets of labels.

"Guarantees" in docs/method.md has the assumptions and proofs. Items, which are positions or predicted spans, are marked
if their confidence is at most t. Of n sequences, L_s(t) is the share of the items of s that are wrong and not marked,
and U_s(t) the share of those not marked.

risk: the smallest t with (sum_s L_s(t) + 1) / (n + 1) <= level (conformal risk control). For sets, y is in the set if
it is predicted or p(y | x) >= -t, and the confidence is -p(gold | x).

among-unmarked: t is tested (learn then test): E (L - level U) > 0 is rejected if the product of 1 - b (L_s - level U_s)
is at least 1 / error. A fifth of the sequences gives candidates, the bet b of each, and the first one to be tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import DataError
from ..system import counted, piece_rows
from . import ITEMS
from .labelling import Labelling
from .spans import SpanFinder, Spans

GUARANTEES = RISK, AMONG_UNMARKED, COVERAGE = "risk", "among-unmarked", "sets"
POSITION, SPAN = ITEMS
ERROR = 0.1  # probability that more than the level is wrong among the unmarked
DIGITS = 9  # of marginals, so that equal inputs have equal ones on all machines
CANDIDATES = 100
LARGEST_BET = 0.9  # of the one that leaves all factors positive


@dataclass(frozen=True)
class Guarantee:
    """A threshold, and what it guarantees."""

    kind: str  # one of GUARANTEES
    of: str  # one of ITEMS
    level: float  # of errors, or of labels outside their sets
    threshold: float  # items of at most this confidence are marked; sets have labels of at least this probability
    sequences: int  # that it was found with

    def __post_init__(self) -> None:
        numbers = (self.level, self.threshold, self.sequences)
        fine = all(type(number) in (int, float) and 0 <= number < math.inf for number in numbers)
        if not fine or self.kind not in GUARANTEES or self.of not in ITEMS:
            raise ValueError("no guarantee")

    def marked(
        self, names: Sequence[str], labels: np.ndarray, offsets: np.ndarray, marginals: np.ndarray
    ) -> np.ndarray:
        """Return True for positions to review, all those of a marked span, [n] bool."""
        confidence = confidences(marginals, labels)
        if self.of == POSITION:
            return confidence <= self.threshold
        spans = SpanFinder(names).find(labels, offsets)
        spans = spans.take(span_confidences(spans, confidence) <= self.threshold)
        out = np.zeros(len(labels), dtype=bool)
        out[piece_rows(spans.starts, spans.ends)] = True
        return out

    def label_sets(self, labels: np.ndarray, marginals: np.ndarray) -> np.ndarray:
        """Return True for the labels of the set at each position, [n, Y] bool."""
        return (marginals.round(DIGITS) >= self.threshold) | (labels[:, None] == np.arange(marginals.shape[1]))


def confidences(marginals: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the probability of each label [n] by marginals [n, Y]."""
    return marginals[np.arange(len(labels)), labels].round(DIGITS)


def span_confidences(spans: Spans, confidence: np.ndarray) -> np.ndarray:
    """Return the smallest confidence of each span, by those of positions [n]."""
    bounds = np.stack([spans.starts, spans.ends], axis=1).ravel()
    return np.minimum.reduceat(np.append(confidence, 1.0), bounds)[::2] if len(bounds) else np.empty(0)


class Items:
    """Positions or predicted spans, by the sequences that have some."""

    def __init__(self, confidence: np.ndarray, wrong: np.ndarray, sequence: np.ndarray):
        """Take arrays [I], the last with numbers of sequences in any order."""
        number, counts = np.unique(sequence, return_inverse=True, return_counts=True)[1:]
        self.confidence, self.wrong, self.number, self.sequences = confidence, wrong, number.ravel(), len(counts)
        self.share = 1 / counts[self.number]  # of its sequence that an item is

    @classmethod
    def spans(cls, labelling: Labelling, confidence: np.ndarray) -> Items:
        """Take the predicted spans; one is wrong if it is no gold span."""
        found = labelling.spans
        sequence = np.searchsorted(labelling.offsets, found.predicted.starts, side="right")
        return cls(span_confidences(found.predicted, confidence), ~found.correct, sequence)

    def risk(self, threshold: float) -> float:
        """Return the mean over sequences of the share of items that are wrong and not marked."""
        return float(self.share[self.wrong & (self.confidence > threshold)].sum() / max(self.sequences, 1))


def controlled_threshold(items: Items, level: float, least: float = 0.0) -> float:
    """Return the smallest threshold from `least` on whose expected risk is at most the level."""
    wrong = np.flatnonzero(items.wrong & (items.confidence > least))
    wrong = wrong[np.argsort(-items.confidence[wrong], kind="stable")]
    kept = np.cumsum(items.share[wrong]) <= level * (items.sequences + 1) - 1 + 1e-12
    return least if kept.all() else float(items.confidence[wrong[np.argmin(kept)]])


def proven_threshold(items: Items, level: float, error: float = ERROR) -> float | None:
    """Return the smallest threshold that tests allow, so that few of the unmarked items are wrong; None without one."""
    n, limit = items.sequences, math.log(1 / error)
    first = np.zeros(n, dtype=bool)
    first[np.random.default_rng(0).permutation(n)[: n // 5]] = True
    marked = np.linspace(1.0, 0.0, CANDIDATES) ** 2  # shares of the items
    quantiles = np.quantile(items.confidence[first[items.number]], marked, method="lower")
    candidates = np.unique(np.append(quantiles, 0.0))[::-1].tolist()
    prospects, totals = [], []
    for threshold in candidates:
        own = np.where(items.confidence > threshold, items.share * (level - items.wrong), 0.0)
        gain = np.bincount(items.number, own, minlength=n)  # level U - L
        # This bet gives a sum of variance v the largest product where that is about 1 / error.
        variance = (level * (1 - level) + np.sum(gain[first] ** 2)) / (1 + n // 5)
        bet = min(LARGEST_BET / (1 - level), math.sqrt(2 * limit / ((n - n // 5) * variance)))
        logs = np.log1p(bet * gain)
        prospects.append(logs[first].mean())
        totals.append(logs[~first].sum())
    begin = int(np.argmax(prospects))
    end = next((at for at in range(begin, len(totals)) if totals[at] < limit), len(totals))
    return candidates[end - 1] if end > begin else None


def find_guarantee(items: Items, kind: str, of: str, level: float, source: str | None = None) -> Guarantee:
    """Return the threshold with the fewest marks, or the smallest sets; refuse data that is too little for it."""
    n, needed = items.sequences, math.ceil(1 / level - 1 - 1e-9)
    if kind == AMONG_UNMARKED:  # a fifth is not tested, the rest makes no error
        needed = math.ceil(1.25 * math.log(1 / ERROR) / math.log1p(LARGEST_BET * level / (1 - level)))
    if n < needed:
        need = f"{' with predicted spans' * (of == SPAN)}, and a level of {level:g} needs at least {needed:,}"
        raise DataError(f"{counted(n, 'sequence')}{need}", source)
    if kind == AMONG_UNMARKED:
        threshold = proven_threshold(items, level)
        if threshold is None:
            message = f"no threshold leaves provably at most {100 * level:g} % wrong among unmarked {of}s"
            raise DataError(f"{message}: give more sequences, or a larger level", source)
    else:
        threshold = controlled_threshold(items, level, -1.0 if kind == COVERAGE else 0.0)
        if kind == COVERAGE and threshold > 0:
            unknown = f"{100 * items.risk(0.0):.3g} % of the labels are unknown to the model"
            raise DataError(f"{unknown}: no sets of labels can have {100 * (1 - level):g} %", source)
    return Guarantee(kind, of, level, abs(threshold), n)
