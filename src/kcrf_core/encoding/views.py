"""Features as terms see them: `word` is a feature with its whole window, `word[-1..1]` some of its offsets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .features import AttributeFeature, Feature, RealFeature

_PART = re.compile(r"(.+)\[([^\[\]]+)\]", re.DOTALL)


def window_text(offsets: Sequence[int]) -> str:
    """Return `-1..1`, `0`, or `-2,0,2` where offsets between them are left out.

    >>> window_text([-1, 0, 1]), window_text([0]), window_text([-2, 0, 2])
    ('-1..1', '0', '-2,0,2')
    """
    if len(offsets) > 1 and list(offsets) == list(range(offsets[0], offsets[-1] + 1)):
        return f"{offsets[0]}..{offsets[-1]}"
    return ",".join(map(str, offsets))


@dataclass(frozen=True)
class View:
    """Some offsets of a feature, by their places in its window."""

    feature: Feature
    places: tuple[int, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self.feature.config.seen[place] for place in self.places)

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Columns of the feature that belong to it; none of attributes, which stand apart."""
        if isinstance(self.feature, AttributeFeature):
            return ()
        width = len(self.feature.mean) if isinstance(self.feature, RealFeature) else 1
        return tuple(place * width + column for place in self.places for column in range(width))

    @property
    def name(self) -> str:
        name = self.feature.config.name
        return name if len(self.places) == len(self.feature.config.seen) else f"{name}[{window_text(self.offsets)}]"

    @classmethod
    def of(cls, feature: Feature, offsets: Sequence[int] | None = None) -> View:
        """Return a view of the given offsets of a feature's window, which has them; None for all."""
        window = feature.config.seen
        return cls(feature, tuple(range(len(window)) if offsets is None else map(window.index, offsets)))


def view_called(name: str, features: dict[str, Feature]) -> View | None:
    """Return the view of that name; None where there is no such feature or offset."""
    if name in features:
        return View.of(features[name])
    found = _PART.fullmatch(name)
    if found is None or found[1] not in features:
        return None
    feature = features[found[1]]
    first, dots, last = found[2].partition("..")
    try:
        offsets = range(int(first), int(last) + 1) if dots else [int(offset) for offset in found[2].split(",")]
        view = View.of(feature, offsets)
    except ValueError:  # no number, or none of the window
        return None
    return view if view.places and view.name == name else None
