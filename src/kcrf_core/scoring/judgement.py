"""A judgement: all figures of one system, and of a second one on the same data if there is one.

Intervals are those of the bootstrap over sequences, blocks or groups (see "Figures and their errors" in
docs/method.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..corpora import CodedColumn
from ..errors import DataError
from ..system import counted, without_empty
from .calibration import Calibration, calibrate
from .error_analysis import ErrorAnalysis, analyse_errors
from .evaluation import Evaluation, evaluate, evaluate_labelling
from .labelling import Labelling
from .schemes import labels_of_spans
from .significance import (
    FEW_UNITS,
    FEWEST_LENGTHS,
    Difference,
    Interval,
    bootstrap,
    differences,
    figures,
    unit_offsets,
)
from .spans import Score, SpanScores
from .yardstick import Yardstick, choose_yardstick


@dataclass(frozen=True)
class JudgementOptions:
    """Figures to compute, and their parameters."""

    scheme: str | None = "auto"  # as for `evaluate`
    strict: bool = False  # intervals and comparisons by strict spans
    metric: str | None = None  # the figure that counts; None: by the labels
    resamples: int = 0  # of the bootstrap; 0 for no intervals
    confidence: float = 0.95  # of intervals
    draws: int = 10_000  # of the randomisation test
    bins: int = 10  # of the reliability curve
    seed: int = 0
    block: int | None = None  # positions of a block; None: whole sequences, and blocks of a few long ones


@dataclass(frozen=True, eq=False)
class ResamplingUnits:
    """Units to resample and exchange: groups if they are given, else sequences, or blocks of a few long ones."""

    kind: str  # sequence, block or group
    offsets: np.ndarray  # [U+1] of sequences that are not empty, or of blocks
    groups: np.ndarray | None  # [U] numbers from 0 on
    correlated: float = 0.0  # positions over which errors are correlated, where units are blocks

    @classmethod
    def of(
        cls,
        labelling: Labelling,
        other: Labelling | None,
        block: int | None,
    ) -> ResamplingUnits:
        """Return the units of a labelling, and of its difference from another one."""
        sequences = without_empty(np.asarray(labelling.offsets, dtype=np.int64))
        if labelling.groups is not None:
            groups = np.unique(labelling.groups[sequences[:-1]], return_inverse=True)[1]
            return cls("group", sequences, groups)
        errors = [labelling.right]
        if other is not None:
            errors.append(labelling.right.astype(np.int8) - other.right)
        codes = CodedColumn.of(labelling.gold).codes
        offsets, length = unit_offsets(codes, sequences, block, errors)
        kind = "block" if len(offsets) > len(sequences) else "sequence"
        return cls(kind, offsets, None, length if kind == "block" else 0.0)

    def __len__(self) -> int:
        return len(self.offsets) - 1 if self.groups is None else int(self.groups.max(initial=-1)) + 1

    @property
    def text(self) -> str:
        """Their name for messages; of blocks and groups, which users do not count, with their number."""
        return "sequences" if self.kind == "sequence" else counted(len(self), self.kind)

    @property
    def doubt(self) -> str | None:
        """A warning about intervals and p-values; None for many units that are long enough."""
        length = self.offsets[-1] / max(len(self), 1)
        if self.kind == "block" and length < FEWEST_LENGTHS * self.correlated:
            return (
                f"warning: errors are correlated over about {self.correlated:.0f} positions, and "
                f"blocks of {length:.0f} are short for that: intervals are too narrow, and p-values "
                "too small"
            )
        if len(self) < FEW_UNITS:
            few = f"{counted(len(self), self.kind)}, and fewer than {FEW_UNITS} are few"
            return f"warning: {few}: intervals are rather too narrow"
        return None

    def sums(self, counts: np.ndarray) -> np.ndarray:
        """Return counts [U, K] of sequences or blocks as those of units."""
        if self.groups is None:
            return counts
        totals = np.zeros((len(self), counts.shape[1]), counts.dtype)
        np.add.at(totals, self.groups, counts)
        return totals


@dataclass(frozen=True)
class Headline:
    """The figure that counts, with its standard error over units."""

    yardstick: Yardstick
    value: float
    error: float  # infinite for a single unit
    units: ResamplingUnits

    @property
    def text(self) -> str:
        return self.yardstick.text(self.value) + self.yardstick.margin(self.error)

    @property
    def error_text(self) -> str:
        """Explanation of the number after +-."""
        alone = f"one {self.units.kind}: no standard error"
        return alone if math.isinf(self.error) else f"+- standard error over {self.units.text}"

    def to_dict(self) -> dict:
        figure = self.yardstick.figure(self.value)
        return {"name": self.yardstick.name, "value": figure, "standard_error": finite(self.error)}


@dataclass(frozen=True)
class Comparison:
    """The second system beside the first, on the same data."""

    headline: Headline  # of the second
    difference: float  # how much better the first is by that figure
    error: float  # the standard error of the difference
    p_value: float  # of the difference: by randomisation if that has the figure, else by the normal distribution
    decode: str | None  # the decoder of the second, where a model gave the labels
    span_bonus: float
    scores: Evaluation  # of the second
    calibration: Calibration | None  # of the second
    differences: tuple[Difference, ...]
    both_right: int  # positions
    only_first: int  # positions that only the first labels right
    only_second: int
    both_wrong: int

    def to_dict(self) -> dict:
        return {
            "decode": self.decode,
            **({"span_bonus": self.span_bonus} if self.span_bonus else {}),
            "metric": {
                **self.headline.to_dict(),
                "better": self.difference,
                "standard_error": finite(self.error),
                "p_value": self.p_value,
            },
            "figures": {found.figure: found.to_dict() for found in self.differences},
            "positions": {key: getattr(self, key) for key in ("both_right", "only_first", "only_second", "both_wrong")},
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
        }


@dataclass(frozen=True)
class TrainedOn:
    """Sequences that the model was trained on, and the scores of the others; short ones are among the others."""

    sequences: int
    of: int  # all sequences
    others: Evaluation | None  # None if there are none

    @classmethod
    def among(cls, labelling: Labelling, scores: Evaluation) -> TrainedOn | None:
        """Count sequences that the model was trained on; None if that is not known, or there are none."""
        if labelling.trained_on is None or not labelling.trained_on.any():
            return None
        first = without_empty(labelling.offsets)[:-1]
        known, others, new = int(labelling.trained_on[first].sum()), None, np.flatnonzero(~labelling.trained_on)
        if len(new):
            gold, predicted = (CodedColumn.of(own).take(new) for own in (labelling.gold, labelling.predicted))
            offsets = np.unique(np.searchsorted(new, labelling.offsets))
            others = evaluate(
                gold,
                predicted,
                offsets,
                scheme=scores.scheme,
                known_labels=labelling.known_labels,
                odd_labels=labelling.odd_labels,
            )
        return cls(known, len(first), others)

    def text(self, where: str = "the training data") -> str:
        out = f"{self.sequences:,} of {counted(self.of, 'sequence')} were in {where}"
        if self.others is None:
            return out
        spans = self.others.spans
        name, value = ("accuracy", self.others.accuracy) if spans is None else ("F1", spans.total.f1)
        return f"{out} (without them {name} {100 * value:.2f} %)"

    def to_dict(self) -> dict:
        others, spans = self.others, None if self.others is None else self.others.spans
        return {
            "sequences": self.sequences,
            "accuracy_without": None if others is None else others.accuracy,
            "f1_without": None if spans is None else spans.total.f1,
        }


@dataclass(frozen=True)
class Judgement:
    """The result of `judge`."""

    options: JudgementOptions
    headline: Headline
    decode: str | None  # the decoder that a model gave the labels by; None where they were read
    span_bonus: float
    scores: Evaluation
    calibration: Calibration | None  # None without probabilities
    intervals: dict[str, Interval]  # by figure; empty if not asked for, or of a single unit
    comparison: Comparison | None
    errors: ErrorAnalysis
    units: ResamplingUnits  # resampled and exchanged
    trained_on: TrainedOn | None = None  # None if no sequence was, or that is not known

    @property
    def spans(self) -> SpanScores | None:
        """Span scores, strict ones if the options say so."""
        return self.scores.strict_spans if self.options.strict else self.scores.spans

    def to_dict(self) -> dict:
        """Return plain values for JSON, those of `Evaluation` first."""
        options, intervals, comparison = self.options, None, None
        if self.intervals:
            intervals = {name: getattr(options, name) for name in ("confidence", "resamples", "seed")}
            intervals["figures"] = {name: asdict(found) for name, found in self.intervals.items()}
        if self.comparison is not None:
            comparison = {"draws": options.draws, "seed": options.seed, **self.comparison.to_dict()}
        return {
            **self.scores.to_dict(),
            **self.errors.to_dict(),
            "strict": options.strict,
            "decode": self.decode,
            **({"span_bonus": self.span_bonus} if self.span_bonus else {}),
            "metric": self.headline.to_dict(),
            **({} if self.trained_on is None else {"trained_on": self.trained_on.to_dict()}),
            **({} if self.units.kind == "sequence" else {f"{self.units.kind}s": len(self.units)}),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "intervals": intervals,
            "comparison": comparison,
        }


def judge(first: Labelling, second: Labelling | None, options: JudgementOptions) -> Judgement:
    """Score a labelling and, with a second one, say whether the two differ by more than chance."""
    if second is not None:
        check_same_data(first, second)
    units = ResamplingUnits.of(first, second, options.block)
    scores = evaluate_labelling(first, options.scheme, units.offsets)
    if options.strict and scores.scheme is None:
        message = "no spans to count strictly: the labels are of no scheme known; leave 'strict' out"
        raise DataError(message, first.source, settings=["strict"])
    yardstick, names = _yardstick(first, scores, options), [score.name for score in scores.labels]
    measured = _measured(yardstick, names, first, scores, units)
    counts = units.sums(scores.strict_counts if options.strict else scores.unit_counts)
    # A single unit has a single resample, whose interval would look like certainty.
    resamples = options.resamples if len(units) > 1 else 0
    comparison = None
    if second is not None:
        # The same scheme for both, even if the labels of the second suggest another.
        second = replace(second, known_odd=(*first.odd_labels, *second.known_odd))
        other = evaluate_labelling(second, scores.scheme, units.offsets)
        also = _measured(yardstick, names, second, other, units)
        difference, error = yardstick.difference(measured, also)
        ours, theirs = first.right, second.right
        other_counts = units.sums(other.strict_counts if options.strict else other.unit_counts)
        found = differences(counts, other_counts, options.draws, resamples, options.confidence, options.seed)
        p_values = {each.figure: each.p_value for each in found}
        normal = 1.0 if difference == 0 else math.erfc(abs(difference) / (error * math.sqrt(2))) if error else 0.0
        comparison = Comparison(
            headline=Headline(yardstick, yardstick.value(also), yardstick.standard_error(also), units),
            difference=difference,
            error=error,
            p_value=p_values.get(yardstick.name, normal),
            decode=second.decode,
            span_bonus=second.span_bonus,
            scores=other,
            calibration=_calibration_of(second, options.bins),
            differences=found,
            both_right=int(np.count_nonzero(ours & theirs)),
            only_first=int(np.count_nonzero(ours & ~theirs)),
            only_second=int(np.count_nonzero(theirs & ~ours)),
            both_wrong=int(np.count_nonzero(~ours & ~theirs)),
        )
    return Judgement(
        options=options,
        headline=Headline(yardstick, yardstick.value(measured), yardstick.standard_error(measured), units),
        decode=first.decode,
        span_bonus=first.span_bonus,
        scores=scores,
        calibration=_calibration_of(first, options.bins),
        intervals=bootstrap(counts, figures, resamples, options.confidence, options.seed) if resamples else {},
        comparison=comparison,
        errors=analyse_errors(first, scores.scheme, options.strict),
        units=units,
        trained_on=TrainedOn.among(first, scores),
    )


def _yardstick(labelling: Labelling, scores: Evaluation, options: JudgementOptions) -> Yardstick:
    """Return the requested yardstick, else that of the scheme, over all labels of the data."""
    labels = labels_of_spans([score.name for score in scores.labels], scores.odd_labels)
    spans = scores.scheme is not None
    name = choose_yardstick(labels, options.metric, spans).name
    if name == "log-loss":
        gold = None if labelling.probabilities is None else labelling.probabilities.gold
        if gold is None or np.isnan(gold).all():
            lacks = "no probabilities of gold labels for a log-loss: give a model, or columns LABEL:p of all labels"
            if gold is not None:
                lacks = "no position has a known gold label, one with a probability, so that there is no log-loss"
            raise DataError(lacks, labelling.source, settings=["model", "metric"])
    return Yardstick(name, labels, spans, scores.scheme if options.strict else None)


def _measured(
    yardstick: Yardstick,
    names: Sequence[str],
    labelling: Labelling,
    scores: Evaluation,
    units: ResamplingUnits,
) -> np.ndarray:
    """Return the counts of the yardstick, whose labels have these names, for each unit."""
    positions, right, _, _, *spans = (scores.unit_counts if yardstick.strict is None else scores.strict_counts).T
    if yardstick.name == "accuracy":
        return units.sums(np.stack([right, positions], axis=1).astype(np.float64))
    if yardstick.name == "f1":
        return units.sums(np.stack([2 * spans[2], spans[0] + spans[1]], axis=1).astype(np.float64))
    gold = CodedColumn.of(labelling.gold).numbered(names, len(names))
    predicted = CodedColumn.of(labelling.predicted).numbered(names, len(names))
    logs = None
    if yardstick.by_probability:
        with np.errstate(divide="ignore"):
            assert labelling.probabilities is not None and labelling.probabilities.gold is not None
            logs = np.log(labelling.probabilities.gold)
        gold = np.where(np.isnan(logs), -1, gold)
    whole = without_empty(labelling.offsets)
    return units.sums(yardstick.counts(gold, predicted, logs, units.offsets, sequences=whole))


def finite(error: float) -> float | None:
    """Return a standard error for JSON, which has no infinity."""
    return error if math.isfinite(error) else None


def _calibration_of(labelling: Labelling, bins: int) -> Calibration | None:
    """Return the calibration of a labelling; None without probabilities."""
    return None if labelling.probabilities is None else calibrate(labelling.probabilities, labelling.right, bins)


def check_same_data(first: Labelling, second: Labelling) -> None:
    """Refuse a second labelling that has other sequences or other gold labels than the first."""
    if np.array_equal(first.offsets, second.offsets) and list(first.gold) == list(second.gold):
        return
    advice = f"(to be compared, it must have the sequences and gold labels of {first.source})"
    shorter = min(len(first.gold), len(second.gold))
    ends = [np.isin(np.arange(1, shorter + 1), labelling.offsets) for labelling in (first, second)]
    for t in range(shorter):
        here, there = int(second.lines[t]), int(first.lines[t])
        if first.gold[t] != second.gold[t]:
            message = f"gold label {second.gold[t]!r}, but {first.gold[t]!r} in line {there} of the other {advice}"
            raise DataError(message, second.source, here)
        if ends[0][t] != ends[1][t]:
            how = "ends" if ends[1][t] else "goes on"
            message = f"a sequence {how} here, unlike at line {there} of the other {advice}"
            raise DataError(message, second.source, here)
    raise DataError(f"{counted(len(second.gold), 'position')}, expected {len(first.gold):,} {advice}", second.source)


def scores_shown(found: Judgement) -> tuple[Score, ...]:
    """Return scores by type of span, or by label without spans."""
    return found.scores.labels if found.spans is None else found.spans.types
