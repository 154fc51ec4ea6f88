"""The yardstick: the one figure that choices go by, with its standard error and that of a difference.

Each is a mean of ratios a_k / b_k of sums over units, which are sequences, or blocks of long ones. F1 has 2 x correct
for a and gold + predicted for b. Errors come by linearisation (see "Figures and their errors" in docs/method.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import ConfigError
from ..system import AUTO
from . import METRICS
from .calibration import SMALLEST_PROBABILITY
from .schemes import detect_scheme
from .spans import SpanFinder, SpanMatches

# Counts of many labels in many units are added up over neighbouring units, so that there are no more cells.
MOST_CELLS = 1 << 24

UNKNOWN = "<unknown>"  # a gold label that could not be predicted


@dataclass(frozen=True)
class Yardstick:
    """A figure for labellings by certain labels; larger values are better.

    >>> import numpy as np
    >>> from kcrf_core.scoring import choose_yardstick
    >>> yardstick = choose_yardstick(["B-A", "I-A", "O"])
    >>> gold = np.array([0, 1, 2, 2, 0, 2])
    >>> counts = yardstick.counts(gold, np.array([0, 1, 2, 0, 2, 2]), None, np.array([0, 3, 6]))
    >>> yardstick.name, yardstick.value(counts), yardstick.text(yardstick.value(counts))
    ('f1', 0.5, 'span F1 50.00')
    """

    name: str  # one of METRICS
    labels: tuple[str, ...]
    spans: bool  # whether the labels are those of a scheme
    strict: str | None = None  # count only spans that are written as this scheme demands
    title: str = field(init=False, repr=False, compare=False)  # its name in a sentence
    by_probability: bool = field(init=False, repr=False, compare=False)  # it depends on probabilities, not on labels
    # The yardstick for labels: this one, or the default one if it depends on probabilities.
    of_labels: Yardstick = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        macro = "macro F1 of types" if self.spans else "macro F1 of labels"
        title = {"f1": "span F1", "macro-f1": macro}.get(self.name, self.name)
        strict = "strict " if self.strict is not None and "f1" in self.name else ""
        by_probability = self.name == "log-loss"
        object.__setattr__(self, "title", strict + title)
        object.__setattr__(self, "by_probability", by_probability)
        object.__setattr__(self, "of_labels", choose_yardstick(self.labels) if by_probability else self)

    def figure(self, value: float) -> float:
        """Return the value as it is usually given: a log-loss without its minus."""
        return -value if self.by_probability and value else value

    def text(self, value: float) -> str:
        """Return the figure with its name."""
        return f"{self.title} {self.number(value)}" + (" %" if self.name == "accuracy" else "")

    def number(self, value: float) -> str:
        """Return the figure without its name: in per cent, or in nats."""
        return f"{self.figure(value):.4f}" if self.by_probability else f"{100 * value:.2f}"

    def margin(self, error: float) -> str:
        """Return a standard error as it is shown after a figure; nothing if it is not known."""
        if math.isinf(error):
            return ""
        return f" +- {error:.4f}" if self.by_probability else f" +- {100 * error:.2f}"

    def counts(
        self,
        gold: np.ndarray,
        predicted: np.ndarray | None,
        log_probability: np.ndarray | None,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        sequences: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return counts of each unit [units, 2K] float64: a of all k, then b; unit u is offsets[u]:offsets[u+1].

        Spans end with their unit; where units are parts of longer `sequences`, whose offsets these are, with their
        sequence, and they count for the unit that they begin in.

        `gold` [N] numbers the labels, negative where there is none to compare with: such a position has no say, and
        ends spans on both sides. A number beyond the labels is a label that could not be predicted. `predicted`
        [N] may be None for the log-loss, `log_probability` [N] of gold labels for the others. `weights` are [units].
        """
        gold = np.asarray(gold, dtype=np.int64)
        weights = np.ones(len(offsets) - 1) if weights is None else np.asarray(weights, dtype=np.float64)
        whole = offsets if sequences is None else sequences
        if self.name == "macro-f1":
            return self._macro_counts(gold, np.asarray(predicted, dtype=np.int64), offsets, weights, whole)
        if self.name == "log-loss":
            known = (gold >= 0) & (gold < len(self.labels))
            assert log_probability is not None
            logs = np.maximum(log_probability, math.log(SMALLEST_PROBABILITY), where=known, out=np.zeros(len(gold)))
            counts = [_sums(logs, offsets), _sums(known, offsets)]
        elif self.name == "accuracy":
            counts = [_sums((gold == predicted) & (gold >= 0), offsets), _sums(gold >= 0, offsets)]
        else:
            counted = self._matches(gold, np.asarray(predicted, dtype=np.int64), whole).by_unit(offsets)
            counts = [2 * counted[:, 2], counted[:, 0] + counted[:, 1]]
        return np.stack(counts, axis=1) * weights[:, None]

    def value(self, counts: np.ndarray) -> float:
        """Return the figure, larger being better: minus the log-loss. 0 if there was nothing to count."""
        return _linearised(counts)[0]

    def standard_error(self, counts: np.ndarray) -> float:
        """Return the standard error of the value; infinite for fewer than two units."""
        return _error_of(_linearised(counts)[1])

    def difference(self, first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
        """Return by how much the first is better than the second on the same units, and the standard error."""
        (value, effects), (other, others) = _linearised(first), _linearised(second)
        return value - other, _error_of(effects - others)

    @property
    def classes(self) -> list[str]:
        """Types of spans, or labels, that macro F1 is the mean over, in the order of its counts; one is unknown."""
        return SpanFinder(self._alphabet).types if self.spans else [*self.labels, UNKNOWN]

    @property
    def _alphabet(self) -> tuple[str, ...]:
        # An unknown label gets a name that fits the scheme and equals no other.
        return (*self.labels, f"B-{UNKNOWN}", "O")

    def _matches(self, gold: np.ndarray, predicted: np.ndarray, offsets: np.ndarray) -> SpanMatches:
        unknown, outside = len(self.labels), len(self.labels) + 1
        hidden, finder = gold < 0, SpanFinder(self._alphabet)
        right = finder.find(np.where(hidden, outside, np.minimum(gold, unknown)), offsets)
        found = finder.find(np.where(hidden, outside, predicted), offsets)
        return SpanMatches(finder.types, right, found, len(gold)).strict(self.strict)

    def _macro_counts(
        self, gold: np.ndarray, predicted: np.ndarray, offsets: np.ndarray, weights: np.ndarray, whole: np.ndarray
    ) -> np.ndarray:
        """Return counts by type or label; rows are added up if there are too many, see MOST_CELLS."""
        if self.spans:
            matches = self._matches(gold, predicted, whole)
            K, items = len(matches.types), matches.items
        else:
            K = len(self.labels) + 1  # the last one is for labels that are not known
            seen, right = np.flatnonzero(gold >= 0), np.flatnonzero((gold >= 0) & (gold == predicted))
            items = [(seen, np.minimum(gold[seen], K - 1)), (seen, predicted[seen]), (right, predicted[right])]
        units = len(offsets) - 1
        together = max(-(-2 * K * units // MOST_CELLS), 1)  # units in a row of the counts
        rows = -(-units // together)

        def counted(where: np.ndarray, which: np.ndarray) -> np.ndarray:
            unit = np.searchsorted(offsets, where, side="right") - 1
            cells = unit // together * K + which
            return np.bincount(cells, weights[unit], minlength=rows * K).reshape(rows, K)

        of_gold, of_predicted, correct = (counted(*item) for item in items)
        of_gold += of_predicted
        correct *= 2
        return np.hstack([correct, of_gold])


def choose_yardstick(labels: Sequence[str], asked: str | None = None, spans: bool | None = None) -> Yardstick:
    """Return the requested yardstick; for None and "auto" span F1 if labels are those of a scheme, else accuracy.

    `spans` is True if they are; None to detect it.

    >>> from kcrf_core.scoring import choose_yardstick
    >>> choose_yardstick(["noun", "verb"]).name, choose_yardstick(["noun", "verb"], "macro-f1").title
    ('accuracy', 'macro F1 of labels')
    """
    spans = detect_scheme(labels) is not None if spans is None else spans
    if asked in (None, AUTO):
        asked = "f1" if spans else "accuracy"
    if asked not in METRICS:
        raise ConfigError(f"'metric' is {asked!r}, not one of {', '.join(METRICS)}", settings=["metric"])
    if asked == "f1" and not spans:
        raise ConfigError(
            "the metric f1 is for spans, and these labels are not spans (B-X, I-X, O): use macro-f1, "
            "the mean over labels, or accuracy",
            settings=["metric"],
        )
    return Yardstick(asked, tuple(labels), spans)


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return sums over units [units], some of them perhaps empty."""
    units = len(offsets) - 1
    return np.bincount(np.repeat(np.arange(units), np.diff(offsets)), values, minlength=units)


def _linearised(counts: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the figure and the change of it by each unit, [units]."""
    K = counts.shape[1] // 2
    above, below = counts[:, :K], counts[:, K:]
    total = below.sum(axis=0)
    there = total > 0
    if not there.any():
        return 0.0, np.zeros(len(counts))
    ratios = np.divide(above.sum(axis=0), total, where=there, out=np.zeros(K))  # [K]
    inverse = np.divide(1.0, total, where=there, out=np.zeros(K)) / np.count_nonzero(there)  # [K]
    return float(ratios[there].mean()), above @ inverse - below @ (inverse * ratios)


def _error_of(effects: np.ndarray) -> float:
    """Return the standard error of a figure from the change by each unit."""
    n = len(effects)
    return math.inf if n < 2 else math.sqrt(n / (n - 1) * float(effects @ effects))
