"""Long sequences as strips: gold labels above predicted ones, below them errors and probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..render.visible import shortened
from .svg import opened, rounded, safe, text_at

WIDTH = 1000  # pixels that positions share
LEFT = 84
BAND, ERRORS, CURVE, BETWEEN = 20, 7, 44, 5  # heights
COLOURS = 9  # labels with a colour of their own; the most frequent one is pale, all others share a grey
CLOSE = 250  # positions of a close-up

STYLE = """
.key { display: inline-block; margin: 0 1em .2em 0; font-size: .87rem; white-space: nowrap; }
.key svg { vertical-align: -2px; margin-right: .35em; }
svg .k0 { fill: var(--line); } svg .k1 { fill: #e69f00; } svg .k2 { fill: #0072b2; } svg .k3 { fill: #009e73; }
svg .k4 { fill: #d55e00; } svg .k5 { fill: #56b4e9; } svg .k6 { fill: #cc79a7; } svg .k7 { fill: #b5a900; }
svg .k8 { fill: #8a5a2b; } svg .others { fill: var(--dim); }
svg .run { fill: #000; } svg .pale { fill: var(--text); }
svg .area { fill: var(--good); fill-opacity: .3; } svg .frame { fill: none; stroke: var(--text); stroke-width: 1.5; }
"""


def palette_of(names: list[str], counts: np.ndarray) -> dict[str, str]:
    """Return colours of labels, by frequency, as classes of the page."""
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable").tolist()
    return {name: f"k{r}" if r < COLOURS else "others" for name, r in zip(names, rank, strict=True)}


def legend(palette: dict[str, str]) -> str:
    """Return the names of labels beside their colours."""
    known = sorted((kind, name) for name, kind in palette.items() if kind != "others")
    entries = [*known, *([("others", "all others")] if "others" in palette.values() else [])]
    size = 'width="14" height="14"'
    return "\n".join(
        f'<span class="key"><svg {size} viewBox="0 0 14 14" aria-hidden="true"><rect class="{kind}" {size}/></svg>'
        f"{safe(name)}</span>"
        for kind, name in entries
    )


@dataclass(frozen=True, eq=False)
class Stretch:
    """Consecutive positions to draw."""

    gold: np.ndarray  # [T] numbers of labels
    predicted: np.ndarray  # [T]
    wrong: np.ndarray  # [T] bool
    confidence: np.ndarray | None  # [T] probabilities of the predicted labels
    lines: np.ndarray  # [T]

    def part(self, first: int, last: int) -> Stretch:
        rows = slice(first, last)
        sure = None if self.confidence is None else self.confidence[rows]
        return Stretch(self.gold[rows], self.predicted[rows], self.wrong[rows], sure, self.lines[rows])


def strips(stretch: Stretch, palette: dict[str, str]) -> str:
    """Draw all positions and, where they are too many to be told apart, those with the most errors once more."""
    if len(stretch.gold) <= WIDTH:
        return _strip(stretch, palette, None)
    sums = np.concatenate([[0], np.cumsum(stretch.wrong)])
    errors = sums[CLOSE:] - sums[:-CLOSE]
    first = int(np.argmax(errors))
    fewer = np.flatnonzero(errors[first:] < errors[first])
    first += (int(fewer[0]) if len(fewer) else len(errors) - first) // 2  # with the errors in the middle if possible
    close = stretch.part(first, first + CLOSE)
    return f"{_strip(stretch, palette, (first, first + CLOSE))}\n{_strip(close, palette, None)}"


def _strip(stretch: Stretch, palette: dict[str, str], framed: tuple[int, int] | None) -> str:
    T = len(stretch.gold)
    columns = min(T, WIDTH)
    bounds = np.linspace(0, T, columns + 1).round().astype(np.int64)
    counts, wide = np.diff(bounds), WIDTH / columns
    errors_at = 4 + 2 * (BAND + BETWEEN)
    curve_at = errors_at + ERRORS + BETWEEN
    bottom = curve_at + (CURVE if stretch.confidence is not None else -BETWEEN)
    first, last = int(stretch.lines[0]), int(stretch.lines[-1])
    out = [opened(LEFT + WIDTH + 8, bottom + 20, f"Gold and predicted labels of lines {first} to {last}")]
    for number, (title, labels) in enumerate((("gold", stretch.gold), ("predicted", stretch.predicted))):
        y = 4 + number * (BAND + BETWEEN)
        out.append(text_at(LEFT - 8, y + BAND / 2 + 4, title, "tick end", 12))
        out += _band(labels, bounds, palette, y, wide)
        if columns == T:
            out += _names(labels, palette, y, wide)
    out.append(text_at(LEFT - 8, errors_at + ERRORS, "wrong", "tick end", 12))
    levels = np.ceil(4 * np.add.reduceat(stretch.wrong, bounds[:-1], dtype=np.float64) / counts)  # [columns] 0 to 4
    for level in (1, 2, 3, 4):  # the more of a column is wrong, the stronger
        look = f'class="wrong" fill-opacity="{0.4 + 0.15 * level:.2f}"'
        marks = _bars(look, np.full(columns, errors_at), np.where(levels == level, ERRORS, 0), wide)
        out += [marks] if marks else []
    if stretch.confidence is not None:
        out.append(text_at(LEFT - 8, curve_at + CURVE / 2 + 4, "probability", "tick end", 12))
        means = np.add.reduceat(stretch.confidence, bounds[:-1]) / counts
        tops = curve_at + CURVE * (1 - means)
        steps = "".join(f"V{rounded(y)}H{rounded(LEFT + wide * n)}" for n, y in enumerate(tops.tolist(), start=1))
        out.append(f'<path class="area" d="M{LEFT} {curve_at + CURVE}{steps}V{curve_at + CURVE}z"/>')
        out.append(f'<path class="grid" d="M{LEFT} {curve_at}h{WIDTH}M{LEFT} {curve_at + CURVE}h{WIDTH}"/>')
    if framed is not None:
        a, b = (LEFT + WIDTH * place / T for place in framed)
        size = f'width="{rounded(max(b - a, 3))}" height="{errors_at - 2}"'
        out.append(f'<rect class="frame" x="{rounded(a)}" y="1" {size}><title>shown below</title></rect>')
    for share, kind in ((0, "tick start"), (0.25, "tick"), (0.5, "tick"), (0.75, "tick"), (1, "tick end")):
        line = int(stretch.lines[min(int(share * T), T - 1)])
        title = f"line {line:,}" if share == 0 else f"{line:,}"
        out.append(text_at(LEFT + share * WIDTH, bottom + 15, title, kind, 11))
    return "\n".join([*out, "</svg>"])


def _band(labels: np.ndarray, bounds: np.ndarray, palette: dict[str, str], y: float, wide: float) -> list[str]:
    """Draw one path for each colour: labels share a column by frequency, a pixel at least for each."""
    columns, Y = len(bounds) - 1, len(palette)
    column = np.repeat(np.arange(columns), np.diff(bounds))
    counts = np.bincount(column * Y + labels, minlength=columns * Y).reshape(columns, Y)
    shares = counts / counts.sum(axis=1, keepdims=True)  # [columns, Y]
    classes = sorted(set(palette.values()))
    together = np.zeros((columns, len(classes)))
    for number, kind in enumerate(palette.values()):
        together[:, classes.index(kind)] += shares[:, number]
    heights = np.where(together > 0, np.maximum(np.rint(BAND * together), 1), 0)
    heights[np.arange(columns), together.argmax(axis=1)] += BAND - heights.sum(axis=1)
    tops = y + np.cumsum(heights, axis=1) - heights
    paths = (_bars(f'class="{kind}"', tops[:, c], heights[:, c], wide) for c, kind in enumerate(classes))
    return [path for path in paths if path]


def _names(labels: np.ndarray, palette: dict[str, str], y: float, wide: float) -> list[str]:
    """Return the names of labels in runs that are wide enough for them."""
    changes, named = np.flatnonzero(np.diff(labels)) + 1, list(palette.items())
    out = []
    for first, last in pairwise([0, *changes.tolist(), len(labels)]):
        name, kind = named[labels[first]]
        if (last - first) * wide > 7 * len(shortened(name)) + 6:
            look = "run pale" if kind == "k0" else "run"
            out.append(text_at(LEFT + (first + last) / 2 * wide, y + BAND / 2 + 4, name, look, 11))
    return out


def _bars(look: str, tops: np.ndarray, heights: np.ndarray, wide: float) -> str:
    """Return a path of the bars of all columns, equal neighbours as one; nothing if there are none."""
    bars = np.stack([tops, heights], axis=1)
    changes = np.flatnonzero((bars[1:] != bars[:-1]).any(axis=1)) + 1
    drawn = ""
    for first, last in pairwise([0, *changes.tolist(), len(bars)]):
        top, height = bars[first]
        if height > 0:
            across = (last - first) * wide
            drawn += f"M{rounded(LEFT + first * wide)} {rounded(top)}"
            drawn += f"h{rounded(across)}v{rounded(height)}h{rounded(-across)}z"
    return f'<path {look} d="{drawn}"/>' if drawn else ""
