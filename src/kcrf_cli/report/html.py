"""Results of `evaluate` and `audit` as one page that needs nothing else: no script, no font, no other file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click
import numpy as np

from kcrf_core._version import __version__
from kcrf_core.files import file_digest
from kcrf_core.scoring import WHOLES, readable_column
from kcrf_core.system import counted

from ..options import ARGUMENTS
from ..render import evaluation_text as plain
from ..render.audit_text import shown_probability, summary
from ..render.figures import DECODERS, percent
from ..render.visible import shortened
from . import svg, timeline
from .svg import safe

if TYPE_CHECKING:
    from kcrf_core.scoring import Calibration, Evaluation, Judgement, Labelling
    from kcrf_core.selection import Audit, DoubtfulPosition

# Of a long sequence only what stands beside errors is shown, and not more than so many positions.
SHOWN_WHOLE = 50  # positions
BESIDE = 8  # positions on each side of an error
MOST_SHOWN = 400
# Longer sequences are strips: those of numbers, which have nothing to read, and any that would fill the page.
STRIP_OF_NUMBERS = SHOWN_WHOLE
STRIP = 1000
LONGEST_WORD = 60  # characters
LONGEST_TABLE = 40  # rows; longer tables are folded away
GAP = '<span class="t gap">… {:,} right …</span>'


def worst_sequences(labelling: Labelling, number: int) -> str:
    """Return at most `number` sequences: most errors first, of equal ones the shortest, then as in the data."""
    from kcrf_core.corpora import CodedColumn

    wrong = ~labelling.right
    offsets = np.unique(labelling.offsets)
    errors = np.add.reduceat(wrong, offsets[:-1], dtype=np.int64)  # [S]
    lengths = np.diff(offsets)
    order = np.lexsort((np.arange(len(errors)), lengths, -errors))[:number]
    order = order[errors[order] > 0]
    if not len(order):
        return '<p class="note">None: every sequence is right.</p>'
    as_strips = lengths > (STRIP_OF_NUMBERS if labelling.words is None else STRIP)
    parts = []
    if not as_strips[order].all():
        legend = "Under a wrong word its gold label, the label it got"
        if labelling.words is None:
            legend = "The gold labels; where a position is wrong, its gold label, the label it got"
        legend += " and its line." if labelling.probabilities is None else " with its probability, and its line."
        parts.append(f'<p class="note">{legend}</p>')
    if as_strips[order].any():
        gold, predicted = CodedColumn.of(labelling.gold), CodedColumn.of(labelling.predicted)
        names = sorted(gold.present | predicted.present)
        numbers = {name: number for number, name in enumerate(names)}
        right, said = (
            np.array([numbers.get(name, 0) for name in each.values])[each.codes] for each in (gold, predicted)
        )
        sure = None if labelling.probabilities is None else labelling.probabilities.predicted
        drawn = timeline.Stretch(right, said, wrong, sure, labelling.lines)
        palette = timeline.palette_of(names, np.bincount(np.append(right, said), minlength=len(names)))
        strips = "gold labels above predicted ones, errors, and the probability of the predicted ones, from 0 to 1"
        legend = (
            f"Strips of long sequences: {strips}. The part in a frame, with the most errors, is shown larger below."
        )
        parts.append(f'<p class="note">{legend}</p>\n<p>{timeline.legend(palette)}</p>')
    for s in order.tolist():
        begin, end = int(offsets[s]), int(offsets[s + 1])
        head = f"sequence {s + 1:,}, line {int(labelling.lines[begin]):,}: {int(errors[s]):,} of {end - begin:,} wrong"
        if as_strips[s]:
            shown = f'<div class="wide">\n{timeline.strips(drawn.part(begin, end), palette)}\n</div>'
        else:
            shown = "\n".join(_tokens(labelling, wrong, begin, end))
        parts.append(f'<div class="sequence"><p class="head">{head}</p>\n{shown}\n</div>')
    return "\n".join(parts)


def _tokens(labelling: Labelling, wrong: np.ndarray, begin: int, end: int) -> list[str]:
    near = np.ones(end - begin, dtype=bool)  # [T]
    if end - begin > SHOWN_WHOLE:
        near = np.convolve(wrong[begin:end], np.ones(2 * BESIDE + 1), mode="same") > 0
    out, left_out, shown = [], 0, 0
    for t in range(begin, end):
        if not near[t - begin]:
            left_out += 1
            continue
        if shown == MOST_SHOWN:
            rest = int(np.count_nonzero(wrong[t:end]))
            out.append(f'<span class="t gap">… {end - t + left_out:,} more, {rest:,} of them wrong</span>')
            return out
        if left_out:
            out.append(GAP.format(left_out))
            left_out = 0
        shown += 1
        gold, predicted = (safe(shortened(labels[t], LONGEST_WORD)) for labels in (labelling.gold, labelling.predicted))
        word = gold if labelling.words is None else safe(shortened(labelling.words[t], LONGEST_WORD))
        if not wrong[t]:
            out.append(f'<span class="t">{word}</span>')
            continue
        sure = "" if labelling.probabilities is None else f" {labelling.probabilities.predicted[t]:.2f}"
        line = f"<small><i>line {int(labelling.lines[t]):,}</i></small>"
        under = f"<small><i>gold</i> {gold}</small><small><i>got</i> {predicted}{sure}</small>{line}"
        out.append(f'<span class="t e">{"" if labelling.words is None else word}{under}</span>')
    return [*out, GAP.format(left_out)] if left_out else out


STYLE = """\
:root { color-scheme: light dark; --back: #fff; --text: #1c1c1c; --dim: #5c5c5c; --line: #d5d5d5; --good: #2f7ed8;
  --bad: #d9622b; --soft: #f4f4f2; }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #e8e8e6; --dim: #a3a6aa; --line: #3a3e44;
  --good: #5a9ded; --bad: #f0824d; --soft: #202327; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p.note, footer { color: var(--dim); font-size: .87rem; max-width: 50rem; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .18rem .8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.name { text-align: left; }
th { color: var(--dim); font-weight: 500; } tr.all td { font-weight: 600; }
summary { cursor: pointer; color: var(--dim); }
.wide { overflow-x: auto; }
footer code { overflow-wrap: anywhere; }
@media (max-width: 600px) { body { margin: 1rem auto; padding: 0 .6rem; font-size: 14px; }
  th, td { padding: .15rem .3rem; font-size: .78rem; } td:last-child { white-space: normal; }
  .figure svg { max-width: 100%; height: auto; } }
svg { max-width: none; font-family: system-ui, sans-serif; }
svg text { fill: var(--text); text-anchor: middle; } svg .axis, svg .tick { fill: var(--dim); }
svg .end { text-anchor: end; } svg .start { text-anchor: start; }
svg .right, svg .bar { fill: var(--good); } svg .wrong { fill: var(--bad); }
svg .mixed { fill: var(--dim); } svg .bar { fill-opacity: .45; }
svg .grid { stroke: var(--line); fill: none; } svg .line { stroke: var(--dim); }
svg .ideal { stroke: var(--dim); stroke-dasharray: 5 4; fill: none; }
svg .curve { stroke: var(--good); stroke-width: 2; fill: none; } svg .point { fill: var(--good); }
.sequence { border-top: 1px solid var(--line); padding: .5rem 0; line-height: 1.35; }
.sequence p.head { margin: 0 0 .3rem; color: var(--dim); font-size: .87rem; }
.sequence span.t { display: inline-block; vertical-align: top; margin: 0 .32em .35em 0; unicode-bidi: isolate;
  max-width: 100%; overflow-wrap: anywhere; }
.sequence span.e { background: color-mix(in srgb, var(--bad) 22%, var(--back)); border-bottom: 2px solid var(--bad);
  border-radius: 3px 3px 0 0; padding: 0 .25em; }
.sequence small { display: block; font-size: .74rem; }
.sequence small i { color: var(--dim); }
.sequence span.gap { color: var(--dim); }
""" + timeline.STYLE.rstrip()


def document(title: str, body: str, origin: Sequence[str]) -> str:
    """Return a whole page: its title and contents, and in the footer where they come from."""
    lines = [f"kcrf {safe(__version__)}", *(f"<code>{safe(line)}</code>" for line in origin)]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{safe(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<h1>{safe(title)}</h1>
{body}
<footer><p>{"<br>".join(lines)}</p></footer>
</body>
</html>
"""


def page(
    found: Judgement, labelling: Labelling, system: str, other: str | None, worst: int, origin: Sequence[str]
) -> str:
    """Return the page of an evaluation; the same judgement of the same files gives the same text.

    `system` and `other` are the files, models or tagged ones, that the labels come from; `origin` has the lines of the
    footer.
    """
    title = f"Evaluation of {os.path.basename(system)}"
    if system != labelling.source:
        title += f" on {os.path.basename(labelling.source)}"
    sections = [
        ("Summary", _summary(found)),
        ("Comparison", None if other is None else _comparison(found, system, other)),
        (f"Spans{', strictly' * found.options.strict}", None if found.spans is None else _spans(found)),
        ("Labels", _scores("label", map(plain.score_row, found.scores.labels))),
        ("Confusion", _confusion(found.scores)),
        ("Reliability", None if found.calibration is None else _reliability(found)),
        ("Worst sequences", worst_sequences(labelling, worst) if worst else None),
    ]
    body = "\n".join(f"<section>\n<h2>{name}</h2>\n{text}\n</section>" for name, text in sections if text is not None)
    return document(title, body, origin)


def origin_of(data: str) -> list[str]:
    """Return the command as it was typed, without folders; versions; and the digest of the data, if it is a file."""
    import platform
    import shlex

    words, context = list[str](), click.get_current_context()
    for word in (context.info_name or "", *context.meta.get(ARGUMENTS, ())):
        if words and words[-1] == "--html":  # the page's own name is no part of what it says
            words.pop()
        elif not word.startswith("--html="):
            words.append(os.path.basename(word) if os.sep in word and not word.startswith("-") else word)
    lines = [f"kcrf {shlex.join(words)}", f"Python {platform.python_version()}, NumPy {np.__version__}"]
    if os.path.isfile(data):
        lines.append(f"{os.path.basename(data)}: SHA-256 {file_digest(data)}")
    return lines


def _summary(found: Judgement) -> str:
    scores = found.scores
    figures = {
        "accuracy": (scores.accuracy, f"{scores.correct:,} of {counted(scores.positions, 'position')}"),
        "sequence_accuracy": (scores.sequence_accuracy, f"{scores.correct_sequences:,} of {scores.sequences:,}"),
    }
    if found.spans is not None:
        total = found.spans.total
        figures |= {
            "precision": (total.precision, f"{total.correct:,} of {counted(total.predicted, 'predicted span')}"),
            "recall": (total.recall, f"{total.correct:,} of {counted(total.gold, 'gold span')}"),
            "f1": (total.f1, f"{plain.scheme_text(scores)}{', strict' * found.options.strict}"),
        }
    header = ["figure", "value", *([plain.interval_name(found)] if found.intervals else []), ""]
    rows = []
    for figure, (value, note) in figures.items():
        interval = [plain.range_text(found.intervals[figure])] if found.intervals else []
        rows.append([plain.FIGURES[figure], percent(value), *interval, note])
    notes = []
    if found.decode is not None:
        notes.append(f"Labels by {DECODERS[found.decode]}.")
    if found.options.metric is not None:
        notes.append(f"By {found.headline.text} ({found.headline.error_text}).")
    if found.intervals:
        notes.append(f"Intervals by the bootstrap over sequences, {counted(found.options.resamples, 'resample')}.")
    elif found.options.resamples:
        notes.append("No confidence intervals: they need more than one sequence.")
    if scores.unknown_gold:
        unknown = counted(scores.unknown_gold, "gold label is", "gold labels are")
        notes.append(f"{unknown} unknown to the model and counted wrong.")
    return _table(header, rows) + _note(notes)


def _comparison(found: Judgement, system: str, other: str) -> str:
    compared = found.comparison
    assert compared is not None
    header, *rows = plain.comparison_rows(found, compared)
    counts = [
        ["right in both", f"{compared.both_right:,}"],
        ["only in this", f"{compared.only_first:,}"],
        ["only in the other", f"{compared.only_second:,}"],
        ["in neither", f"{compared.both_wrong:,}"],
    ]
    notes = [
        f"This is {os.path.basename(system)}, the other is {os.path.basename(other)}"
        + ("." if compared.decode in (None, found.decode) else f", by {DECODERS[compared.decode]}."),
        f"p by paired randomisation over sequences, {counted(found.options.draws, 'draw')}, two-sided.",
    ]
    return _table(header, rows) + _note(notes) + _table(["positions", ""], counts)


def _spans(found: Judgement) -> str:
    scores, strict = found.scores, found.options.strict
    assert found.spans is not None
    rows = [plain.score_row(score, score.name or "spans") for score in found.spans.types]
    table = _scores("span", rows, plain.score_row(found.spans.total, "all"))
    notes = []
    if (malformed := plain.malformed_text(scores)) is not None:
        other = scores.spans if strict else scores.strict_spans
        assert other is not None
        how = "Counted as conlleval does it" if strict else "Without them"
        notes = [f"{malformed}.", f"{how}, F1 is {percent(other.total.f1)}."]
    return table + _note(notes)


def _confusion(scores: Evaluation) -> str:
    names = [score.name for score in scores.labels]
    notes = ["Rows are gold labels, columns predicted ones; the shade is the share of the row."]
    if len(names) > svg.MOST_LABELS:
        notes.append(f"Of {len(names):,} labels, the {svg.MOST_LABELS - 1} with most errors; all others in one row.")
    out = f'{_note(notes)}<div class="wide figure">\n{svg.confusion_matrix(names, scores.confusion)}\n</div>'
    pairs = plain.confusions(scores)[: plain.MOST_CONFUSIONS]
    if not pairs:
        return out
    rows = "".join(
        f'<tr><td>{safe(gold)}</td><td class="name">{safe(predicted)}</td><td>{count:,}</td></tr>\n'
        for gold, predicted, count in pairs
    )
    header = "<tr><th>gold</th><th>predicted</th><th>positions</th></tr>"
    return f"{out}\n<details><summary>Most frequent confusions</summary>\n<table>\n{header}\n{rows}</table></details>"


def _reliability(found: Judgement) -> str:
    lines = [f"{line.strip()[0].upper()}{line.strip()[1:]}." for line in plain.calibration_lines(found, False)][:1]
    assert found.calibration is not None
    wholes = [what for what in WHOLES if getattr(found.calibration, what) is not None]
    rows = [(f"whole {what}", *_calibration_cells(getattr(found.calibration, what))) for what in wholes]
    table = ""
    if rows or found.uncalibrated is not None:
        rows.insert(0, ("labels", *_calibration_cells(found.calibration)))
        if found.uncalibrated is not None:
            before = {"labels": found.uncalibrated}
            before |= {f"whole {what}": getattr(found.uncalibrated, what) for what in WHOLES}
            rows = [
                row for after in rows for row in (after, ("before calibration", *_calibration_cells(before[after[0]])))
            ]
        table = _table(("probabilities of", "log-loss", "Brier score", "calibration error %"), rows)
        lines = [line for line in lines if "(" in line]  # what is remarkable about them
    note = "The dashed line is perfect calibration; below it, the system is too confident."
    plot = svg.reliability(found.calibration.bins)
    return table + _note(lines) + _note([note]) + f'<div class="wide">\n{plot}\n</div>'


def _calibration_cells(one: Calibration) -> tuple[str, ...]:
    figures = ("" if value is None else f"{value:.4f}" for value in (one.log_loss, one.brier))
    return (*figures, percent(one.calibration_error))


def audit_page(found: Audit, most: int, origin: Sequence[str]) -> str:
    """Return a page of doubtful labels with the text around them; the same data gives the same text."""
    shown = found.positions(most)
    note = "Under each word its label; under the doubtful one what stands there (gold) and what is suggested (better)."
    body = "\n".join(_doubtful(found, one, number) for number, one in enumerate(shown, start=1))
    about = ". ".join(line[0].upper() + line[1:] for line in summary(found))
    note = f'<p class="note">{safe(note)} The {len(shown):,} most doubtful ones, the worst first.</p>'
    return document(
        f"Doubtful labels of {os.path.basename(found.corpus.source)}", f"<p>{safe(about)}.</p>\n{note}\n{body}", origin
    )


def _doubtful(found: Audit, one: DoubtfulPosition, number: int) -> str:
    corpus, t = found.corpus, one.position
    words, labels = readable_column(corpus.columns[:-1]), corpus.columns[-1]
    s = int(np.searchsorted(corpus.offsets, t, side="right")) - 1
    first, last = int(corpus.offsets[s]), int(corpus.offsets[s + 1])
    begin, end = max(first, t - BESIDE), min(last, t + BESIDE + 1)
    tokens = ['<span class="t gap">…</span>'] if begin > first else []
    for each in range(begin, end):
        label = safe(shortened(labels[each], LONGEST_WORD))
        word = label if words is None else safe(shortened(words[each], LONGEST_WORD))
        if each == t:
            better = f"<small><i>gold</i> {label}</small><small><i>better</i> {safe(one.suggested)}</small>"
            tokens.append(f'<span class="t e">{word}{better}</span>')
        else:
            under = "" if words is None else f"<small><i>{label}</i></small>"
            tokens.append(f'<span class="t">{word}{under}</span>')
    if end < last:
        tokens.append('<span class="t gap">…</span>')
    p = shown_probability(found, one)
    head = (
        f"{number}. line {one.line:,}, sequence {one.sequence:,}: p({safe(one.gold)}) {p:.2g}, "
        f"{f'wrong with probability {one.wrong:.2f}: ' if found.held_out else ''}{safe(one.reason)}"
    )
    return f'<div class="sequence"><p class="head">{head}</p>\n' + "\n".join(tokens) + "\n</div>"


def _scores(kind: str, rows: Iterable[Sequence[str]], total: Sequence[str] | None = None) -> str:
    rows = list(rows)
    table = _table((kind, *plain.SCORE_HEADER), rows, total if len(rows) > 1 else None)
    if len(rows) <= LONGEST_TABLE:
        return table
    return f"<details><summary>{len(rows):,} {kind}s</summary>\n{table}</details>\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], total: Sequence[str] | None = None) -> str:
    lines = [f"<tr>{''.join(f'<th>{safe(cell)}</th>' for cell in header)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{safe(cell)}</td>' for cell in row)}</tr>" for row in rows]
    if total is not None:
        lines.append(f'<tr class="all">{"".join(f"<td>{safe(cell)}</td>" for cell in total)}</tr>')
    return '<div class="wide"><table>\n' + "\n".join(lines) + "\n</table></div>\n"


def _note(sentences: Sequence[str]) -> str:
    return f'<p class="note">{safe(" ".join(sentences))}</p>\n' if sentences else ""
