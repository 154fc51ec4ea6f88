"""What the columns of an explicit map are called, as positions are described: `word[-1]=the`, `f0[0]`, an attribute.

Names are made one at a time, when they are asked for: a model has hundreds of thousands of features. What a damaged
file may hold that no value belongs to is called by its number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial

from .conjunctions import Conjunctions
from .encoding import Encoding
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, RealFeature

CONSTANT = "constant"


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
            names = encoding.real_names_of(feature)
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


def _field_names(feature: CategoricalFeature | ConjunctionFeature) -> list[Callable[[int], str]]:
    """For each offset of the window, what its codes are called."""

    def named(w: int, code: int) -> str:
        place = f"{feature.config.name}[{feature.config.window[w]}]"
        if isinstance(feature, CategoricalFeature):
            return f"{place}={feature.value(code)}"
        try:
            return f"{place}={feature.value(w, code)}"
        except IndexError:  # a table that does not lead back to values
            return f"{place}=#{code}"

    return [partial(named, w) for w in range(len(feature.config.window))]
