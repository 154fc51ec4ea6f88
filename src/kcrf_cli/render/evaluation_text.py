"""Results of `evaluate` as tables and lines, for text and for pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kcrf_core.scoring import SMALLEST_PROBABILITY, SPAN_ERRORS
from kcrf_core.system import counted

from .figures import decoder_text, percent, table
from .visible import shortened

if TYPE_CHECKING:
    from kcrf_core.scoring import Calibration, Comparison, ErrorAnalysis, Evaluation, Interval, Judgement, Score

SCORE_HEADER = ("precision", "recall", "F1", "gold", "predicted")

WIDEST_MATRIX = 12  # labels whose confusion fits a terminal or half a page; of more, frequent confusions are listed
MOST_CONFUSIONS = 20
MOST_LABELS = 30  # of a confusion matrix in a page or a plot: others share a row and a column
OTHERS = "(all others)"
LEAST_UNSEEN = 10  # positions whose accuracy says something
LONGEST_WORD = 30  # characters of a word in a table

SPAN_ERRORS_NOTE = (
    "Type, boundary: a gold and a predicted span that overlap and differ in type, in their positions, or in both. "
    "Missed: a gold span, spurious: a predicted span in no such pair. Pairs are counted by the type of the gold one."
)
SIGNIFICANT = 0.05  # the largest p-value of a difference that is called one

FIGURES = {
    "accuracy": "accuracy %",
    "sequence_accuracy": "sequences right %",
    "precision": "span precision %",
    "recall": "span recall %",
    "f1": "span F1",
}


class ResultTable(NamedTuple):
    """A table of results, for text and for pages."""

    title: str
    header: Sequence[str]
    rows: list[list[str]]
    total: bool = False  # the last row is one of all others
    words: Sequence[int] = ()  # columns to the left, as the first one is
    note: str = ""  # in a page


def text(found: Judgement, details: bool) -> str:
    """Return spans if there are any, else labels, then more of both if wanted, then the totals."""
    scores = found.scores
    shown_tables = tables(found)[: None if details else 1]
    parts = [table(one.header, one.rows, one.words) for one in shown_tables]
    if details and len(scores.labels) <= WIDEST_MATRIX:
        names = [score.name for score in scores.labels]
        rows = [[name, *map("{:,}".format, row)] for name, row in zip(names, scores.confusion.tolist(), strict=True)]
        parts.append(table(("gold \\ predicted", *names), rows))
    parts.append("\n".join(totals(found, details)))
    if found.comparison is not None:
        compared = comparison_table(found, found.comparison)
        parts.append("\n".join([table(compared.header, compared.rows), *comparison_lines(found, found.comparison)]))
    return "\n\n".join(parts)


def tables(found: Judgement) -> list[ResultTable]:
    """Return scores, first those of spans if there are any, then errors and calibration."""
    scores, spans, errors = found.scores, found.spans, found.errors
    out = []
    if spans is not None:
        rows = [score_row(score, score.name or "spans") for score in spans.types]
        total = [score_row(spans.total, "all")] if len(rows) > 1 else []
        title = f"Spans{', strictly' * found.options.strict}"
        out.append(ResultTable(title, ("span", *SCORE_HEADER), rows + total, total=bool(total)))
    out.append(ResultTable("Labels", ("label", *SCORE_HEADER), [score_row(score) for score in scores.labels]))
    if len(scores.labels) > WIDEST_MATRIX:
        rows = [[gold, predicted, f"{count:,}"] for gold, predicted, count in confusions(scores)]
        header = ["gold", "predicted", "confusions"]
        out.append(ResultTable("Most frequent confusions", header, rows[:MOST_CONFUSIONS], words=(1,)))
    if found.calibration is not None:
        rows = [
            [f"{100 * b.low:g} to {100 * b.high:g} %", f"{b.positions:,}", percent(b.confidence), percent(b.accuracy)]
            for b in found.calibration.bins
        ]
        note = "Where the accuracy is below the mean probability, the system is too confident."
        out.append(ResultTable("Reliability", ("confidence", "positions", "mean %", "accuracy %"), rows, note=note))
    if errors.spans is not None:
        kinds = ("correct", *SPAN_ERRORS)
        named = [(name or "spans", counts) for name, counts in errors.spans.types.items()]
        named += [("all", errors.spans.total)] if len(named) > 1 else []
        rows = [[name, *(f"{counts[kind]:,}" for kind in kinds)] for name, counts in named]
        header = ["span", *map(_kind_text, kinds)]
        out.append(ResultTable("Errors of spans", header, rows, total=len(rows) > 1, note=SPAN_ERRORS_NOTE))
    if errors.seen is not None and errors.unseen is not None:
        rows = []
        for name, side in (("seen in training", errors.seen), (unseen_text(errors), errors.unseen)):
            own_spans = [] if side.spans is None else score_row(side.spans)[1:-1]
            rows.append([name, f"{side.positions:,}", percent(side.accuracy), *own_spans])
        header = ["words", "positions", "accuracy %", *(f"span {name}" for name in SCORE_HEADER[:3]), "gold spans"]
        out.append(ResultTable("Seen and unseen words", header[: len(rows[0])], rows))
    if errors.words:
        rows = []
        for one in errors.words:
            counts = f"{one.wrong:,}", f"{one.positions:,}"
            rows.append([shortened(one.word, LONGEST_WORD), *counts, one.gold, one.predicted, f"{one.confusions:,}"])
        header = ["word", "wrong", "positions", "most often: gold", "predicted", "times"]
        out.append(ResultTable("Words most often wrong", header, rows, words=(3, 4)))
    return out


def score_row(score: Score, name: str | None = None) -> list[str]:
    """Return the cells of a row under `SCORE_HEADER`, with a name before them."""
    figures = map(percent, (score.precision, score.recall, score.f1))
    return [score.name if name is None else name, *figures, f"{score.gold:,}", f"{score.predicted:,}"]


def _kind_text(kind: str) -> str:
    return kind.replace("_", " ")


def unseen_text(errors: ErrorAnalysis) -> str:
    return "unseen or rare" if errors.rare else "unseen"


def confusions(scores: Evaluation) -> list[tuple[str, str, int]]:
    """Return pairs of different labels, the most frequent first, else in order of the labels."""
    names = [score.name for score in scores.labels]
    cells = zip(*(axis.tolist() for axis in scores.confusion.nonzero()), strict=True)
    pairs = [(names[row], names[column], int(scores.confusion[row, column])) for row, column in cells if row != column]
    return sorted(pairs, key=lambda pair: -pair[2])


def gathered(names: Sequence[str], counts: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return names and counts of at most `MOST_LABELS` rows: those with most errors in their order, others as one."""
    if len(names) <= MOST_LABELS:
        return list(names), counts
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diagonal(counts)
    kept = np.sort(np.argsort(-wrong, kind="stable")[: MOST_LABELS - 1])
    place = np.full(len(names), MOST_LABELS - 1)
    place[kept] = np.arange(MOST_LABELS - 1)
    small = np.zeros((MOST_LABELS, MOST_LABELS), dtype=np.int64)
    np.add.at(small, (place[:, None], place[None, :]), counts)
    return [*(names[y] for y in kept.tolist()), OTHERS], small


def totals(found: Judgement, details: bool = False) -> list[str]:
    """Return lines with the figures over everything; the metric comes last."""
    scores, spans = found.scores, found.spans
    lines = [] if found.decode is None else [f"decoder: {decoder_text(found.decode, found.span_bonus)}"]
    name, each = ("labels", scores.labels) if spans is None else ("types of spans", spans.types)
    if len(each) > 1:
        means = scores if spans is None else spans
        lines.append(f"F1 of {name}: macro {percent(means.macro_f1)}, weighted {percent(means.weighted_f1)}")
    errors = found.errors
    least = 1 if details else LEAST_UNSEEN
    if errors.seen is not None and errors.unseen is not None and errors.unseen.positions >= least:
        sides = (("seen in training", errors.seen), (unseen_text(errors), errors.unseen))
        parts = [f"{name} {percent(side.accuracy)} % right of {side.positions:,}" for name, side in sides]
        lines.append(f"words: {'; '.join(parts)}")
    if errors.spans is not None:
        kinds = ", ".join(f"{errors.spans.total[kind]:,} {_kind_text(kind)}" for kind in SPAN_ERRORS)
        lines.append(f"errors of spans: {kinds}")
    lines += [
        f"accuracy {percent(scores.accuracy)} % ({scores.correct:,} of {counted(scores.positions, 'position')})"
        + interval_text(found, "accuracy"),
        f"whole sequences right {percent(scores.sequence_accuracy)} % "
        f"({scores.correct_sequences:,} of {scores.sequences:,})" + interval_text(found, "sequence_accuracy"),
    ]
    if found.options.resamples and not found.intervals:
        lines.append(f"no confidence intervals: they need more than one {found.units.kind}")
    if found.calibration is not None:
        lines.append(f"probabilities: {calibration_text(found.calibration)}")
    if scores.spans is not None:
        how = f"{scores.scheme}{', detected' * scores.scheme_detected}"
        modes = {f"spans ({how})": scores.spans, f"spans ({how}, strict)": scores.strict_spans}
        if found.options.strict:
            modes = dict(reversed(modes.items()))
        told = [
            f"{name}: precision {percent(each.total.precision)} %, recall {percent(each.total.recall)} %, "
            f"F1 {percent(each.total.f1)}"
            for name, each in modes.items()
            if each is not None
        ]
        told[0] += interval_text(found, "f1")
        malformed = malformed_text(scores)
        # The mode asked for stands last, the other one only where it tells something else.
        lines += ([malformed, told[1]] if malformed else []) + told[:1]
    if scores.unknown_gold:
        lines.append(
            f"{counted(scores.unknown_gold, 'gold label is', 'gold labels are')} unknown to the model and counted wrong"
        )
    if found.options.metric is not None:
        lines.append(f"{found.headline.text} ({found.headline.error_text})")
    return lines


def malformed_text(scores: Evaluation) -> str | None:
    """Return a message about spans that are not written as the scheme demands, if there are any."""
    assert scores.spans is not None and scores.strict_spans is not None
    loose, strict = scores.spans.total, scores.strict_spans.total
    gold, predicted = loose.gold - strict.gold, loose.predicted - strict.predicted
    if not gold and not predicted:
        return None
    return f"{gold:,} gold and {predicted:,} predicted spans are not written as {scores.scheme} demands"


def calibration_text(calibration: Calibration) -> str:
    parts = []
    if calibration.log_loss is not None:
        parts.append(f"log-loss {calibration.log_loss:.4f}")
    if calibration.brier is not None:
        parts.append(f"Brier score {calibration.brier:.4f}")
    parts.append(f"expected calibration error {percent(calibration.calibration_error)} %")
    line, notes = ", ".join(parts), []
    if calibration.impossible:
        impossible = counted(calibration.impossible, "gold label has", "gold labels have")
        notes.append(f"{impossible} probability 0, taken for {SMALLEST_PROBABILITY:g}")
    if calibration.left_out and calibration.log_loss is not None:
        left_out = counted(calibration.left_out, "gold label that has", "gold labels that have")
        notes.append(f"log-loss without {left_out} no probability")
    return f"{line} ({'; '.join(notes)})" if notes else line


def interval_text(found: Judgement, figure: str) -> str:
    if figure not in found.intervals:
        return ""
    return f", {interval_name(found)} {range_text(found.intervals[figure])}"


def interval_name(found: Judgement) -> str:
    over = "" if found.units.kind == "sequence" else f" over {found.units.text}"
    return f"{100 * found.options.confidence:.6g} % interval{over}"


def range_text(interval: Interval, sign: str = "") -> str:
    low, high = (format(100 * value, f"{sign}.2f") for value in (interval.low, interval.high))
    return f"{low} to {high}"


def comparison_table(found: Judgement, compared: Comparison) -> ResultTable:
    """Return a row for each figure, with the interval of the difference if there are intervals."""
    header, rows = ["figure", "this", "other", "difference", "p"], []
    for entry in compared.differences:
        figures = percent(entry.first), percent(entry.second), f"{100 * entry.difference:+.2f}"
        rows.append([FIGURES[entry.figure], *figures, f"{entry.p_value:.2g}"])
        if entry.interval is not None:
            rows[-1].append(range_text(entry.interval, "+"))
    if len(rows[0]) > len(header):
        header.append(interval_name(found))
    return ResultTable("Comparison", header, rows)


def comparison_lines(found: Judgement, compared: Comparison) -> list[str]:
    """Return the test behind the table, the difference by the metric if one is given, and counts of positions."""
    lines = [f"p: paired randomisation over {found.units.text}, {counted(found.options.draws, 'draw')}, two-sided"]
    if compared.decode is not None and (compared.decode, compared.span_bonus) != (found.decode, found.span_bonus):
        lines.append(f"the other: {decoder_text(compared.decode, compared.span_bonus)}")
    if found.options.metric is not None:
        headline, yardstick = found.headline, found.headline.yardstick
        scale, by = ("", compared.difference) if yardstick.by_probability else (" points", 100 * compared.difference)
        margin, p = f"{yardstick.margin(compared.error)}{scale}", f"p = {compared.p_value:.2g}"
        better = f"this is {'better' if by > 0 else 'worse'} by {abs(by):.4g}{margin}"
        if compared.p_value > SIGNIFICANT:
            better = f"the difference of {by:+.4g}{margin} is not significant"
        values = f"{yardstick.number(headline.value)} against {yardstick.number(compared.headline.value)}"
        lines.append(f"by {yardstick.title} {better} ({headline.error_text}, {p}): {values}")
    lines.append(
        f"right in both {compared.both_right:,}, only in this {compared.only_first:,}, "
        f"only in the other {compared.only_second:,}, in neither {compared.both_wrong:,}"
    )
    return lines
