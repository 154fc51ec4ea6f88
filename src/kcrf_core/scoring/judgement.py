"""A judgement: all figures of one system, and of a second one on the same data if there is one."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np

from ..corpora import CodedColumn
from ..errors import DataError
from ..system import counted
from .blocks import unit_offsets
from .calibration import Calibration, calibrate, calibrate_events
from .evaluation import Evaluation, evaluate
from .labelling import Labelling
from .significance import Difference, Interval, bootstrap, differences, figures
from .spans import SpanMatches, SpanScores
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


@dataclass(frozen=True)
class Headline:
    """The figure that counts, with its standard error over sequences, or over blocks of them."""

    yardstick: Yardstick
    value: float
    error: float  # infinite for a single sequence

    @property
    def text(self) -> str:
        return self.yardstick.text(self.value) + self.yardstick.margin(self.error)

    @property
    def error_text(self) -> str:
        """Explanation of the number after +-."""
        return "one sequence: no standard error" if math.isinf(self.error) else "+- standard error over sequences"

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
class Judgement:
    """The result of `judge`."""

    options: JudgementOptions
    headline: Headline
    decode: str | None  # the decoder that a model gave the labels by; None where they were read
    scores: Evaluation
    calibration: Calibration | None  # None without probabilities
    intervals: dict[str, Interval]  # by figure; empty if not asked for, or of a single sequence
    comparison: Comparison | None
    uncalibrated: Calibration | None = None  # of the same model before its calibration, where it has one
    blocks: int | None = None  # how many were resampled and exchanged; None: whole sequences were

    @property
    def spans(self) -> SpanScores | None:
        """Span scores, strict ones if the options say so."""
        return self.scores.strict_spans if self.options.strict else self.scores.spans

    def to_dict(self) -> dict:
        """Return plain values for JSON, those of `Evaluation` first."""
        options = self.options
        return {
            **self.scores.to_dict(),
            "strict": options.strict,
            "decode": self.decode,
            "metric": self.headline.to_dict(),
            **({} if self.blocks is None else {"blocks": self.blocks}),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            **({} if self.uncalibrated is None else {"uncalibrated": self.uncalibrated.to_dict()}),
            "intervals": None
            if not self.intervals
            else {
                "confidence": options.confidence,
                "resamples": options.resamples,
                "seed": options.seed,
                "figures": {name: asdict(found) for name, found in self.intervals.items()},
            },
            "comparison": None
            if self.comparison is None
            else {"draws": options.draws, "seed": options.seed, **self.comparison.to_dict()},
        }


def judge(first: Labelling, second: Labelling | None, options: JudgementOptions) -> Judgement:
    """Score a labelling and, with a second one, say whether the two differ by more than chance."""
    if second is not None:
        check_same_data(first, second)
    units = unit_offsets(CodedColumn.of(first.gold).codes, np.asarray(first.offsets, dtype=np.int64), options.block)
    scores = _evaluate(first, options.scheme, units)
    if options.strict and scores.scheme is None:
        message = "no spans to count strictly: the labels are of no scheme known"
        raise DataError(message, first.source, settings=["scheme"])
    yardstick = _yardstick(first, scores, options)
    measured = _measured(yardstick, first, units)
    counts = scores.strict_counts if options.strict else scores.unit_counts
    # A single sequence has a single resample, whose interval would look like certainty.
    resamples = options.resamples if len(counts) > 1 else 0
    comparison = None
    if second is not None:
        # The same scheme for both, even if the labels of the second suggest another.
        other = _evaluate(second, scores.scheme, units)
        also = _measured(yardstick, second, units)
        difference, error = yardstick.difference(measured, also)
        ours, theirs = first.right, second.right
        other_counts = other.strict_counts if options.strict else other.unit_counts
        found = differences(counts, other_counts, options.draws, resamples, options.confidence, options.seed)
        p_values = {each.figure: each.p_value for each in found}
        normal = 1.0 if difference == 0 else math.erfc(abs(difference) / (error * math.sqrt(2))) if error else 0.0
        comparison = Comparison(
            headline=Headline(yardstick, yardstick.value(also), yardstick.standard_error(also)),
            difference=difference,
            error=error,
            p_value=p_values.get(yardstick.name, normal),
            decode=second.decode,
            scores=other,
            calibration=calibration_of(second, options.bins, scores.scheme),
            differences=found,
            both_right=int(np.count_nonzero(ours & theirs)),
            only_first=int(np.count_nonzero(ours & ~theirs)),
            only_second=int(np.count_nonzero(theirs & ~ours)),
            both_wrong=int(np.count_nonzero(~ours & ~theirs)),
        )
    return Judgement(
        options=options,
        headline=Headline(yardstick, yardstick.value(measured), yardstick.standard_error(measured)),
        decode=first.decode,
        scores=scores,
        calibration=calibration_of(first, options.bins, scores.scheme),
        intervals=bootstrap(counts, figures, resamples, options.confidence, options.seed) if resamples else {},
        comparison=comparison,
        blocks=len(counts) if len(counts) > scores.sequences else None,
    )


def _evaluate(labelling: Labelling, scheme: str | None, units: np.ndarray) -> Evaluation:
    try:
        return evaluate(labelling.gold, labelling.predicted, labelling.offsets, scheme, labelling.known_labels, units)
    except DataError as error:
        raise DataError(error.message, labelling.source, settings=error.settings) from None


def _yardstick(labelling: Labelling, scores: Evaluation, options: JudgementOptions) -> Yardstick:
    """Return the requested yardstick, else that of the scheme, over all labels of the data."""
    labels = tuple(score.name for score in scores.labels)
    spans = scores.scheme is not None
    name = choose_yardstick(labels, options.metric, spans).name
    if name == "log-loss" and (labelling.probabilities is None or labelling.probabilities.gold is None):
        raise DataError(
            "no probabilities of gold labels for a log-loss: give a model, or columns LABEL:p of all labels",
            labelling.source,
            settings=["model", "metric"],
        )
    return Yardstick(name, labels, spans, scores.scheme if options.strict else None)


def _measured(yardstick: Yardstick, labelling: Labelling, units: np.ndarray) -> np.ndarray:
    """Return the counts of the yardstick for each unit, a sequence or a block."""
    labels = yardstick.labels
    gold, predicted = (
        CodedColumn.of(own).numbered(labels, len(labels)) for own in (labelling.gold, labelling.predicted)
    )
    logs = None
    if yardstick.by_probability:
        with np.errstate(divide="ignore"):
            assert labelling.probabilities is not None and labelling.probabilities.gold is not None
            logs = np.log(labelling.probabilities.gold)
        gold = np.where(np.isnan(logs), -1, gold)
    return yardstick.counts(gold, predicted, logs, units, sequences=np.unique(labelling.offsets))


def finite(error: float) -> float | None:
    """Return a standard error for JSON, which has no infinity."""
    return error if math.isfinite(error) else None


def calibration_of(labelling: Labelling, bins: int, scheme: str | None) -> Calibration | None:
    """Return the calibration of a labelling, of whole spans and sequences, too; None without probabilities."""
    if labelling.probabilities is None:
        return None
    found = calibrate(labelling.probabilities, labelling.right, bins)
    if labelling.wholes is None:
        return found
    offsets = labelling.offsets
    whole = np.add.reduceat(labelling.right, offsets[:-1], dtype=np.int64) == np.diff(offsets)
    spans = None
    if scheme is not None:
        gold, predicted = CodedColumn.of(labelling.gold), CodedColumn.of(labelling.predicted)
        alphabet = list(dict.fromkeys([*gold.values, *predicted.values]))
        own, other = gold.numbered(alphabet), predicted.numbered(alphabet)
        _, (starts, _), (right, _) = SpanMatches.between(alphabet, own, other, offsets).items
        of_spans = labelling.wholes.spans[starts]
        if not np.isnan(of_spans).any():
            spans = calibrate_events(of_spans, np.isin(starts, right), bins)
    return replace(found, spans=spans, sequences=calibrate_events(labelling.wholes.sequences, whole, bins))


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
