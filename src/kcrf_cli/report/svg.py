"""Plots as SVG text to stand inside a page, whose classes give colours; the same data gives the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from kcrf_core.scoring import Bin
from kcrf_core.system import counted

from ..render.visible import shortened

MOST_LABELS = 40  # more would be too small to read: the rest share a row and a column
OTHERS = "(all others)"

# Characters that no document may contain, and that would end up as errors in a reader.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def safe(text: str) -> str:
    """Return text for a page: markup is escaped, characters that cannot be shown are replaced."""
    return escape(replaced(text), quote=True)


def replaced(text: str) -> str:
    """Return text without characters that cannot be shown."""
    return _CONTROL.sub("\ufffd", text)


def compact(count: int) -> str:
    """Return a count in at most four characters."""
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 9.95 * size else f"{round(count / size)}{unit}"
    return str(count)


def gathered(names: Sequence[str], counts: np.ndarray, most: int = MOST_LABELS) -> tuple[list[str], np.ndarray]:
    """Return names and counts of at most `most` rows: those with most errors in their order, then all others as one."""
    if len(names) <= most:
        return list(names), counts
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diagonal(counts)
    kept = np.sort(np.argsort(-wrong, kind="stable")[: most - 1])
    place = np.full(len(names), most - 1)
    place[kept] = np.arange(most - 1)
    small = np.zeros((most, most), dtype=np.int64)
    np.add.at(small, (place[:, None], place[None, :]), counts)
    return [*(names[y] for y in kept.tolist()), OTHERS], small


def confusion_matrix(names: Sequence[str], counts: np.ndarray) -> str:
    """Draw a confusion matrix, rows gold, columns predicted; the shade of a cell is its share of its row."""
    names, counts = gathered(names, counts)
    Y = len(names)
    cell, font = (56, 13) if Y <= 4 else (42, 12) if Y <= 12 else (26, 9)
    label_font = 13 if Y <= 12 else 11
    longest = max(len(shortened(name)) for name in names)
    upright = 0.62 * label_font * longest > cell - 2  # too wide to stand above a column
    left = 34 + 0.62 * label_font * longest
    top = left if upright else 30 + label_font
    side = cell * Y
    out = [opened(left + side + 8, top + side + 8, "Confusion matrix: rows gold, columns predicted")]
    out.append(text_at(left + side / 2, 14, "predicted", "axis", label_font))
    out.append(text_at(14, top + side / 2, "gold", "axis", label_font, upright=True))
    for y, name in enumerate(names):
        middle = cell * (y + 0.5)
        out.append(text_at(left - 6, top + middle + label_font / 3, name, "tick end", label_font))
        x, kind = (left + middle + label_font / 3, "tick start") if upright else (left + middle, "tick")
        out.append(text_at(x, top - 6, name, kind, label_font, upright))
    for row, column in zip(*(axis.tolist() for axis in counts.nonzero()), strict=True):
        x, y = left + cell * column, top + cell * row
        count, total = int(counts[row, column]), int(counts[row].sum())
        gold, predicted, share, whole = names[row], names[column], count / total, f"{count:,}"
        # Among others there may be right ones and wrong ones.
        kind = "wrong" if gold != predicted else "mixed" if gold == OTHERS else "right"
        told = f"gold {gold}, predicted {predicted}: {count:,} ({100 * share:.1f} % of {gold})"
        shown = whole if 0.6 * font * len(whole) <= cell - 4 else compact(count)
        shade = 0.08 + 0.62 * share**0.5  # the root makes rare confusions visible beside frequent ones
        out.append(
            f'<rect class="{kind}" x="{rounded(x)}" y="{rounded(y)}" width="{cell}" height="{cell}" '
            f'fill-opacity="{shade:.2f}"><title>{safe(told)}</title></rect>'
        )
        out.append(text_at(x + cell / 2, y + cell / 2 + font / 3, shown, "count", font))
    grid = "".join(
        f"M{rounded(left)} {rounded(top + cell * k)}H{rounded(left + side)}"
        f"M{rounded(left + cell * k)} {rounded(top)}V{rounded(top + side)}"
        for k in range(Y + 1)
    )
    out.append(f'<path class="grid" d="{grid}"/>')
    return "\n".join([*out, "</svg>"])


def reliability(bins: Sequence[Bin]) -> str:
    """Draw accuracy against confidence, above a histogram of the confidences."""
    left, top, side, below, bars = 62, 12, 360, 24, 80
    base = top + side + below + bars
    out = [opened(left + side + 18, base + 56, "Reliability: accuracy against confidence")]

    def x(value: float) -> float:
        return left + side * value

    def y(value: float) -> float:
        return top + side * (1 - value)

    ticks = [k / 5 for k in range(6)]
    grid = "".join(f"M{rounded(x(v))} {top}V{top + side}M{left} {rounded(y(v))}H{left + side}" for v in ticks)
    out.append(f'<path class="grid" d="{grid}"/>')
    out.append(f'<path class="ideal" d="M{rounded(x(0))} {rounded(y(0))}L{rounded(x(1))} {rounded(y(1))}"/>')
    most, total = max(b.positions for b in bins), sum(b.positions for b in bins)
    for b in bins:
        high = bars * b.positions / most
        wide = max(side * (b.high - b.low) - 2, 0.5)
        told = (
            f"confidence {b.low:g} to {b.high:g}: {counted(b.positions, 'position')} "
            f"({100 * b.positions / total:.1f} %), mean confidence {100 * b.confidence:.1f} %, "
            f"accuracy {100 * b.accuracy:.1f} %"
        )
        out.append(
            f'<rect class="bar" x="{rounded(x(b.low) + 1)}" y="{rounded(base - high)}" '
            f'width="{rounded(wide)}" height="{rounded(high)}"><title>{safe(told)}</title></rect>'
        )
    points = " ".join(f"{rounded(x(b.confidence))},{rounded(y(b.accuracy))}" for b in bins)
    out.append(f'<polyline class="curve" points="{points}"/>')
    out += [
        f'<circle class="point" cx="{rounded(x(b.confidence))}" cy="{rounded(y(b.accuracy))}" r="4.5">'
        f"<title>{safe(f'{100 * b.confidence:.1f} % sure, {100 * b.accuracy:.1f} % right')}</title></circle>"
        for b in bins
    ]
    out.append(f'<path class="line" d="M{left} {base}H{left + side}"/>')
    for v in ticks:
        out.append(text_at(x(v), base + 18, f"{100 * v:g}", "tick", 12))
        out.append(text_at(left - 8, y(v) + 4, f"{100 * v:g}", "tick end", 12))
    out.append(text_at(left - 8, base - bars + 10, compact(most), "tick end", 12))
    out.append(text_at(left - 8, base + 2, "0", "tick end", 12))
    out.append(text_at(x(0.5), base + 42, "confidence, %", "axis", 13))
    for label, middle in (("accuracy, %", top + side / 2), ("positions", base - bars / 2)):
        out.append(text_at(16, middle, label, "axis", 13, upright=True))
    return "\n".join([*out, "</svg>"])


def opened(width: float, height: float, title: str) -> str:
    return (
        f'<svg role="img" aria-label="{title}" viewBox="0 0 {rounded(width)} {rounded(height)}" '
        f'width="{rounded(width)}" height="{rounded(height)}" xmlns="http://www.w3.org/2000/svg">'
    )


def text_at(x: float, y: float, text: str, kind: str, size: int, upright: bool = False) -> str:
    """Return a text at a place, shortened if need be; then pointing at it shows all of it."""
    place = f'x="{rounded(x)}" y="{rounded(y)}"'
    if upright:
        place = f'transform="translate({rounded(x)} {rounded(y)}) rotate(-90)"'
    title = "" if shortened(text) == text else f"<title>{safe(text)}</title>"
    return f'<text class="{kind}" font-size="{size}" {place}>{title}{safe(shortened(text))}</text>'


def rounded(value: float) -> str:
    """Return a coordinate to a tenth of a pixel."""
    return f"{value:.1f}".rstrip("0").rstrip(".")
