"""Results of `evaluate` and `audit` as one page that needs nothing else: no font, script or other file."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

import click
import numpy as np

from kcrf_core._version import __version__
from kcrf_core.files import file_digest
from kcrf_core.scoring import readable_column
from kcrf_core.system import without_empty

from ..options import ARGUMENTS
from ..render import evaluation_text as plain
from ..render.audit_text import shown_probability, summary
from ..render.visible import replaced, shortened

if TYPE_CHECKING:
    from kcrf_core.scoring import Evaluation, Judgement, Labelling
    from kcrf_core.selection import Audit, DoubtfulPosition

WORST = 20  # sequences with most errors
# Of a long sequence only what stands beside errors is shown, and not more than so many positions.
SHOWN_WHOLE = 50  # positions
BESIDE = 8  # positions on each side of an error
MOST_SHOWN = 400
SHADES = 8  # of cells of a matrix
LONGEST_WORD = 60  # characters
LONGEST_TABLE = 40  # rows; longer tables are folded away
GAP = '<span class="t gap">… {:,} right …</span>'


def worst_sequences(labelling: Labelling) -> str:
    """Return some sequences: most errors first, of equal ones the shortest, then as in the data."""
    wrong = ~labelling.right
    offsets = without_empty(labelling.offsets)
    errors = np.add.reduceat(wrong, offsets[:-1], dtype=np.int64)  # [S]
    order = np.lexsort((np.arange(len(errors)), np.diff(offsets), -errors))[:WORST]
    order = order[errors[order] > 0]
    if not len(order):
        return _note("None: every sequence is right.")
    legend = "Under a wrong word its gold label, the label it got"
    if labelling.words is None:
        legend = "The gold labels; where a position is wrong, its gold label, the label it got"
    legend += " and its line." if labelling.probabilities is None else " with its probability, and its line."
    parts = [_note(legend)]
    for s in order.tolist():
        begin, end = int(offsets[s]), int(offsets[s + 1])
        head = f"sequence {s + 1:,}, line {int(labelling.lines[begin]):,}: {int(errors[s]):,} of {end - begin:,} wrong"
        tokens = "\n".join(_tokens(labelling, wrong, begin, end))
        parts.append(f'<div class="sequence"><p class="head">{head}</p>\n{tokens}\n</div>')
    return "\n".join(parts)


def _tokens(labelling: Labelling, wrong: np.ndarray, begin: int, end: int) -> Iterator[str]:
    near = np.ones(end - begin, dtype=bool)  # [T]
    if end - begin > SHOWN_WHOLE:
        near = np.convolve(wrong[begin:end], np.ones(2 * BESIDE + 1), mode="same") > 0
    shown = np.flatnonzero(near) + begin
    last = begin - 1
    for t in shown[:MOST_SHOWN].tolist():
        if t > last + 1:
            yield GAP.format(t - last - 1)
        yield _token(labelling, t, bool(wrong[t]))
        last = t
    if len(shown) > MOST_SHOWN:
        errors = int(np.count_nonzero(wrong[last + 1 : end]))
        yield f'<span class="t gap">… {end - last - 1:,} more, {errors:,} of them wrong</span>'
    elif last + 1 < end:
        yield GAP.format(end - last - 1)


def _token(labelling: Labelling, t: int, wrong: bool) -> str:
    shown = labelling.gold if labelling.words is None else labelling.words
    word, gold, predicted = (
        safe(shortened(texts[t], LONGEST_WORD)) for texts in (shown, labelling.gold, labelling.predicted)
    )
    if not wrong:
        return f'<span class="t">{word}</span>'
    sure = "" if labelling.probabilities is None else f" {labelling.probabilities.predicted[t]:.2f}"
    line = f"<small><i>line {int(labelling.lines[t]):,}</i></small>"
    under = f"<small><i>gold</i> {gold}</small><small><i>got</i> {predicted}{sure}</small>{line}"
    return f'<span class="t e">{"" if labelling.words is None else word}{under}</span>'


STYLE = (
    """\
:root { color-scheme: light dark; --back: #fff; --text: #1c1c1c; --dim: #5c5c5c; --line: #d5d5d5; --good: #2f7ed8;
  --bad: #d9622b; --soft: #f4f4f2; }
@media (prefers-color-scheme: dark) { :root { --back: #16181b; --text: #e8e8e6; --dim: #a3a6aa; --line: #3a3e44;
  --good: #5a9ded; --bad: #f0824d; --soft: #202327; } }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 0 0 .6rem; } section { margin: 0 0 2.2rem; }
ul { padding-left: 1.1rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; margin: 0 0 1.6rem; padding: .4rem 0;
  border: solid var(--line); border-width: 1px 0; }
a { color: var(--good); }
@media (min-width: 1000px) { .two { columns: 2; column-gap: 3rem; } .two > * { break-inside: avoid; }
  .two > .whole { column-span: all; padding-top: 1rem; }
  .pairs { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 0 3rem; } }
p.note, footer { color: var(--dim); font-size: .87rem; max-width: 50rem; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .18rem .45rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th.name, td.name { text-align: left; }
th { color: var(--dim); font-weight: 500; white-space: normal; vertical-align: bottom; line-height: 1.25; }
tfoot td { font-weight: 600; }
summary { cursor: pointer; color: var(--dim); }
.wide, .sequence { overflow-x: auto;  /* a shadow where there is more: some scroll bars show only while scrolling */
  background: linear-gradient(90deg, var(--back) 30%, transparent) 0 / 3rem 100% local,
    linear-gradient(270deg, var(--back) 30%, transparent) 100% / 3rem 100% local,
    linear-gradient(90deg, #8888, transparent) 0 / .8rem 100% scroll,
    linear-gradient(270deg, #8888, transparent) 100% / .8rem 100% scroll; background-repeat: no-repeat; }
footer code { overflow-wrap: anywhere; }
@media (max-width: 600px) { body { margin: 1rem auto; padding: 0 .6rem; font-size: 14px; }
  th, td { padding: .15rem .3rem; font-size: .78rem; } }
.matrix td { text-align: center; padding: .25rem .3rem; min-width: 1.4rem; border: 1px solid var(--line);
  background: color-mix(in srgb, var(--of) var(--share), var(--back)); }
.matrix tbody th { padding-right: .5rem; white-space: nowrap; vertical-align: middle; }
.matrix .upright { padding: 0 0 .3rem; }
.matrix .upright span { writing-mode: vertical-rl; transform: rotate(180deg); white-space: nowrap; }
.matrix .right { --of: var(--good); } .matrix .wrong { --of: var(--bad); } .matrix .mixed { --of: var(--dim); }
.many td { font-size: .74rem; padding: .1rem; }
.sequence { border-top: 1px solid var(--line); padding: .5rem 0; line-height: 1.35; }
.sequence p.head { margin: 0 0 .3rem; color: var(--dim); font-size: .87rem; }
.sequence span.t { display: inline-block; vertical-align: top; margin: 0 .32em .35em 0; unicode-bidi: isolate;
  max-width: 100%; overflow-wrap: anywhere; }
.sequence span.e { background: color-mix(in srgb, var(--bad) 22%, var(--back)); border-bottom: 2px solid var(--bad);
  border-radius: 3px 3px 0 0; padding: 0 .25em; }
.sequence small { display: block; font-size: .74rem; }
.sequence small i { color: var(--dim); }
.sequence span.gap { color: var(--dim); }
"""
    + "".join(f".d{n} {{ --share: {70 * n // SHADES}%; }}\n" for n in range(1, SHADES + 1))
).strip()


def safe(text: str) -> str:
    """Return text for a page: markup is escaped, characters that cannot be shown are replaced."""
    return escape(replaced(text), quote=True)


class Section(NamedTuple):
    """A part of a page; `whole` ones take its whole width."""

    name: str
    text: str
    whole: bool = False


def document(title: str, sections: Sequence[Section], origin: Sequence[str], about: str = "") -> str:
    """Return a whole page: its title, a contents list and sections, and in the footer where they come from."""
    lines = [f"kcrf {safe(__version__)}", *(f"<code>{safe(line)}</code>" for line in origin)]
    entries = "\n".join(f'<li><a href="#s{n}">{safe(each.name)}</a></li>' for n, each in enumerate(sections, start=1))
    contents = f'<nav aria-label="Contents"><ul>\n{entries}\n</ul></nav>\n' if len(sections) > 1 else ""
    body = "\n".join(
        f'<section id="s{n}"{" class=whole" * each.whole}>\n<h2>{safe(each.name)}</h2>\n{each.text}\n</section>'
        for n, each in enumerate(sections, start=1)
    )
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
{about}{contents}<main class="two">
{body}
</main>
<footer><p>{"<br>".join(lines)}</p></footer>
</body>
</html>
"""


def page(found: Judgement, labelling: Labelling, system: str, other: str | None, origin: Sequence[str]) -> str:
    """Return the page of an evaluation; the same judgement of the same files gives the same text.

    `system` and `other` are the files, models or tagged ones, that the labels come from; `origin` has the lines of the
    footer.
    """
    title = f"Evaluation of {os.path.basename(system)}"
    if system != labelling.source:
        title += f" on {os.path.basename(labelling.source)}"
    sections = [Section("Summary", _lines(plain.totals(found, details=True)))]
    if found.comparison is not None and other is not None:
        named = f"this is {os.path.basename(system)}, the other is {os.path.basename(other)}"
        lines = [named, *plain.comparison_lines(found, found.comparison)]
        sections.append(_section(plain.comparison_table(found, found.comparison), _lines(lines)))
    sections += map(_section, plain.tables(found))
    wide = len(found.scores.labels) > plain.WIDEST_MATRIX
    sections.append(Section("Confusion", _confusion(found.scores), whole=wide))
    sections.append(Section("Worst sequences", worst_sequences(labelling), whole=True))
    return document(title, sorted(sections, key=lambda section: section.whole), origin)  # columns are not cut


def origin_of(data: str) -> list[str]:
    """Return the command as it was typed, without folders; versions; and the digest of the data, if it is a file."""
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


def _section(table: plain.ResultTable, more: str = "") -> Section:
    """Return a table with its heading and note; a long one is folded away."""
    text = _table(table)
    if len(table.rows) > LONGEST_TABLE:
        text = f"<details><summary>{len(table.rows):,} rows</summary>\n{text}</details>\n"
    return Section(table.title, _note(table.note) + text + more)


def _table(table: plain.ResultTable) -> str:
    def row(cells: Sequence[str], kind: str = "td") -> str:
        looks = (' class="name"' if place in table.words else "" for place in range(len(cells)))
        marked = (f"<{kind}{look}>{safe(cell)}</{kind}>" for look, cell in zip(looks, cells, strict=True))
        return f"<tr>{''.join(marked)}</tr>"

    rows = list(map(row, table.rows))
    foot = f"<tfoot>\n{rows.pop()}\n</tfoot>\n" if table.total else ""
    body = "\n".join(rows)
    head = f'<div class="wide"><table>\n<thead>\n{row(table.header, "th")}\n</thead>'
    return f"{head}\n<tbody>\n{body}\n</tbody>\n{foot}</table></div>\n"


def _note(text: str) -> str:
    return f'<p class="note">{safe(text)}</p>\n' if text else ""


def _lines(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{safe(line)}</li>\n" for line in lines) + "</ul>\n"


def _confusion(scores: Evaluation) -> str:
    names = [score.name for score in scores.labels]
    notes = ["Rows are gold labels, columns predicted ones; the shade is the share of the row."]
    if len(names) > plain.MOST_LABELS:
        notes.append(f"Of {len(names):,} labels, the {plain.MOST_LABELS - 1} with most errors; all others in one row.")
    return _note(" ".join(notes)) + _matrix(names, scores.confusion)


def _matrix(names: Sequence[str], counts: np.ndarray) -> str:
    """Return a confusion matrix as a table, rows gold, columns predicted; pointing at a cell shows its share."""
    names, counts = plain.gathered(names, counts)
    totals = counts.sum(axis=1)

    def cell(row: int, column: int) -> str:
        count, gold, predicted = int(counts[row, column]), names[row], names[column]
        if not count:
            return "<td></td>"
        # Among others there may be right ones and wrong ones.
        kind, share = "wrong" if row != column else "mixed" if gold == plain.OTHERS else "right", count / totals[row]
        title = f"gold {gold}, predicted {predicted}: {count:,} ({100 * share:.1f} % of {gold})"
        shade = int(np.ceil(SHADES * share**0.5))  # the root makes rare confusions visible beside frequent ones
        return f'<td class="{kind} d{shade}" title="{safe(title)}">{count:,}</td>'

    shown = [safe(shortened(name)) for name in names]
    upright = ' class="upright"' if max(map(len, shown)) > 4 else ""
    heads = "".join(f"<th{upright}><span>{name}</span></th>" for name in shown)
    rows = (
        f"<tr><th>{name}</th>{''.join(cell(row, column) for column in range(len(names)))}</tr>"
        for row, name in enumerate(shown)
    )
    look = "matrix many" if len(names) > plain.WIDEST_MATRIX else "matrix"
    head = f"<thead>\n<tr><th>gold \\ predicted</th>{heads}</tr>\n</thead>"
    body = "\n".join(rows)
    return f'<div class="wide"><table class="{look}">\n{head}\n<tbody>\n{body}\n</tbody>\n</table></div>\n'


def audit_page(found: Audit, most: int, origin: Sequence[str]) -> str:
    """Return a page of doubtful labels with the text around them; the same data gives the same text."""
    shown = found.positions(most)
    note = "Under each word its label; under the doubtful one what stands there (gold) and what is suggested (better)."
    note += f" The {len(shown):,} most doubtful ones, the worst first."
    body = "\n".join(_doubtful(found, one, number) for number, one in enumerate(shown, start=1))
    title = f"Doubtful labels of {os.path.basename(found.corpus.source)}"
    listed = Section("Most doubtful first", f'<div class="pairs">\n{body}\n</div>', whole=True)
    return document(title, [listed], origin, _lines(summary(found)) + _note(note))


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
        f"doubt {one.doubt:.1f}: {safe(one.reason)}"
    )
    return f'<div class="sequence"><p class="head">{head}</p>\n' + "\n".join(tokens) + "\n</div>"
