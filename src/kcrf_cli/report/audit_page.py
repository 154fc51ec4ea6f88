"""What `audit` found as one page that needs nothing else: doubtful labels with the text around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kcrf_core.scoring import readable_column

from ..render.audit_text import shown_probability, summary
from .html import LONGEST_WORD, document, shown_name
from .svg import safe, shortened

if TYPE_CHECKING:
    from kcrf_core.selection import Audit, DoubtfulPosition

BESIDE = 8  # positions on each side


def page(found: Audit, most: int, origin: Sequence[str] = ()) -> str:
    """The whole document; the same data gives the same text."""
    title = f"Doubtful labels of {shown_name(found.corpus.source)}"
    lines = summary(found)
    shown = found.positions(most)
    note = "Under each word its label; under the doubtful one what stands there (gold) and what is suggested (better)."
    body = "\n".join(_doubtful(found, one, number) for number, one in enumerate(shown, start=1))
    about = ". ".join(line[0].upper() + line[1:] for line in lines)
    head = f"<p>{safe(about)}.</p>\n"
    head += f'<p class="note">{safe(note)} The {len(shown):,} most doubtful ones, the worst first.</p>\n'
    return document(title, head + body, origin)


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
