"""The sequences with most errors, as HTML: their words, and under a wrong one what it should be and not be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .svg import safe, shortened

if TYPE_CHECKING:
    from kcrf_core.labelling import Labelling

# Of a long sequence only what stands beside errors is shown, and not more than so many positions.
SHOWN_WHOLE = 50  # positions
BESIDE = 8
MOST_SHOWN = 400
LONGEST_WORD = 60  # characters

SEQUENCE_STYLE = """
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


def worst_sequences(labelling: Labelling, number: int) -> str:
    """At most `number` sequences: most errors first, of equal ones the shortest, then as in the data."""
    wrong = ~labelling.right
    offsets = np.unique(labelling.offsets)
    errors = np.add.reduceat(wrong, offsets[:-1], dtype=np.int64)  # [S]
    lengths = np.diff(offsets)
    order = np.lexsort((np.arange(len(errors)), lengths, -errors))[:number]
    order = order[errors[order] > 0]
    if not len(order):
        return '<p class="note">None: every sequence is right.</p>'
    legend = "Under a wrong word what it should be, and not the label it got."
    if labelling.words is None:
        legend = "The gold labels; under a position that is wrong, the label it got instead."
    parts = [f'<p class="note">{legend}</p>']
    for s in order.tolist():
        begin, end = int(offsets[s]), int(offsets[s + 1])
        head = f"sequence {s + 1:,}, line {int(labelling.lines[begin]):,}: {int(errors[s]):,} of {end - begin:,} wrong"
        tokens = _tokens(labelling, wrong, begin, end)
        parts.append(f'<div class="sequence"><p class="head">{head}</p>\n' + "\n".join(tokens) + "\n</div>")
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
            out.append(_gap(left_out))
            left_out = 0
        out.append(_token(labelling, t, bool(wrong[t])))
        shown += 1
    if left_out:
        out.append(_gap(left_out))
    return out


def _gap(count: int) -> str:
    return f'<span class="t gap">… {count:,} right …</span>'


def _token(labelling: Labelling, t: int, wrong: bool) -> str:
    gold, predicted = (safe(shortened(labels[t], LONGEST_WORD)) for labels in (labelling.gold, labelling.predicted))
    word = gold if labelling.words is None else safe(shortened(labelling.words[t], LONGEST_WORD))
    if not wrong:
        return f'<span class="t">{word}</span>'
    should = "" if labelling.words is None else f"<small>{gold}</small>"
    return f'<span class="t e">{word}{should}<small><i>not</i> {predicted}</small></span>'
