"""Plots as SVG text to stand inside a page, whose classes give colours; the same data gives the same text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

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
