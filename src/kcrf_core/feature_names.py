"""What the columns of an explicit map are called: `word[-1]=the`, `pos[0]/pos[1]=DT/NN`, `f0[0]`, an attribute.

Names are made one at a time, when they are asked for: a model has hundreds of thousands of features. What a damaged
file may hold that no value belongs to is called by its number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from .conjunctions import Conjunctions
from .encoding import Encoding
from .features import (
    AttributeFeature,
    ConjunctionFeature,
    Feature,
    RealFeature,
    boundary_or,
    part_reach,
    part_size,
)

CONSTANT = "<constant>"


class FeatureNames:
    """Names of the columns of some features of an encoding: fields of codes first, then attributes, then real ones."""

    def __init__(self, encoding: Encoding, features: Sequence[str]):
        chosen = [feature for feature in encoding.features if feature.config.name in features]
        real = [feature for feature in chosen if isinstance(feature, RealFeature)]
        bags = [feature for feature in chosen if isinstance(feature, AttributeFeature)]
        fields = [feature for feature in chosen if feature not in real and feature not in bags]
        # How many columns each part has, and the name of the k-th of them.
        parts: list[tuple[int, Callable[[int], str]]] = []
        for feature in fields:
            parts += zip(feature.field_sizes, _field_names(feature), strict=True)
        parts += [(len(bag.vocabulary.values), bag.vocabulary.values.__getitem__) for bag in bags]
        for feature in real:
            names = _real_names(feature, encoding.labels)
            parts.append((len(names), names.__getitem__))
        self._names = [name for _, name in parts]
        self._firsts = [0]
        for size, _ in parts:
            self._firsts.append(self._firsts[-1] + size)

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, column: int) -> str:
        if not 0 <= column < len(self):
            return f"#{column}"
        part = bisect_right(self._firsts, column) - 1
        return self._names[part](column - self._firsts[part])

    def conjunction(self, key: int, conjunctions: Conjunctions) -> str:
        """The name of a conjunction of columns, whose numbers, plus one, are the digits of its key."""
        columns = []
        while key > 0:
            key, digit = divmod(key, conjunctions.base)
            columns.append(digit - 1)
        return " & ".join(self[column] for column in reversed(columns)) or CONSTANT


def _field_names(feature: Feature) -> list[Callable[[int], str]]:
    """For each offset of the window, what its codes are called."""
    if isinstance(feature, ConjunctionFeature):
        return [_conjunction_names(feature, w) for w in range(len(feature.config.window))]
    name = feature.config.name
    return [lambda code, offset=offset: f"{name}[{offset}]={feature.value(code)}" for offset in feature.config.window]


def _conjunction_names(feature: ConjunctionFeature, w: int) -> Callable[[int], str]:
    config, stages = feature.config, feature.keys[w]
    places = "/".join(f"{name}[{offset + config.window[w]}]" for name, offset in config.parts)
    reach = part_reach(config)

    def named(code: int) -> str:
        codes = []
        for part, keys in zip(reversed(feature.parts[1:]), reversed(stages), strict=True):
            if not 0 <= code < len(keys) or keys[code] < 0:
                return f"{places}=#{code}"
            code, last = divmod(int(keys[code]), part_size(part, config))
            codes.append(last)
        values = zip(feature.parts, [code, *reversed(codes)], strict=True)
        return f"{places}={'/'.join(boundary_or(c, part.vocabulary.values, reach) for part, c in values)}"

    return named


def _real_names(feature: RealFeature, labels: Sequence[str]) -> list[str]:
    names, config = [], feature.config
    for offset in config.window:
        for r in range(len(feature.mean)):
            if len(feature.mean) == 1:
                names.append(f"{config.name}[{offset}]")
            elif feature.ratios is not None:
                names.append(f"{config.name}[{offset}]/{labels[r] if r < len(labels) else f'#{r}'}")
            else:
                names.append(f"{config.columns[r]}[{offset}]")
    return names
