"""Names of features: `word[-1]=the`, `f0[0]`, an attribute; and with a value: `f0[0]=0.52`, `attribute:2`.

All that shows features to people or writes them to text files takes their names from here: descriptions of positions,
weights of a model, explanations, and exported data. Names are made one at a time, on demand: a model has hundreds of
thousands of features. A number that no value belongs to, which a damaged file may hold, is its own name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ..kernels import NOTHING, UNSEEN
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, Feature, RealFeature, real_columns
from .views import View

CONSTANT = "constant"
SHOWN = 3  # numbers of a vector

FieldFeature = CategoricalFeature | ConjunctionFeature
# How the code of a value is written, by the number of its place in the window.
ValueText = Callable[[FieldFeature, int, int], str]


def field_value(feature: FieldFeature, w: int, code: int) -> str:
    """The value of a code at the w-th offset of the window."""
    return feature.value(w, code)


def field_name(feature: FieldFeature, w: int, code: int, text: ValueText = field_value) -> str:
    """`word[-1]=the`, for the code of a value at the w-th offset of the window."""
    place = f"{feature.config.name}[{feature.config.seen[w]}]"
    if code == UNSEEN:
        return f"{place}=<unseen>"
    if code == NOTHING:
        return f"{place}=<rare>"
    try:
        return f"{place}={text(feature, w, code)}"
    except IndexError:  # a table that does not lead back to values
        return f"{place}=#{code}"


def attribute_text(name: str, value: float) -> str:
    return name if value == 1 else f"{name}:{value:g}"


def real_names(feature: RealFeature, labels: Sequence[str]) -> list[str]:
    """Names of the columns of a real feature, offset after offset; ratios have one column for each label."""
    config, several = feature.config, len(feature.mean) > 1
    if feature.indicates:
        own = config.columns if len(config.columns) > 1 else (config.name,)
        named = [*own, *(f"{name}.missing" for name in own)]
        return [f"{name}[{offset}]" for offset in config.seen for name in named]
    tails = [f"/{label}" for label in labels] if several and feature.ratios is not None else [""]
    columns = (config.name,) if feature.ratios is not None else real_columns(config, len(feature.mean))
    return [f"{name}[{offset}]{tail}" for offset in config.seen for name in columns for tail in tails]


def vector_texts(feature: RealFeature, numbers: Sequence[float]) -> list[str]:
    """The first few numbers of a vector at each offset, and how many there are: `emb[0]=0.5 -1.2 0.1 ... (100)`."""
    width, out = len(feature.mean), []
    for w, offset in enumerate(feature.config.seen):
        few = " ".join(f"{number:.4g}" for number in numbers[w * width : w * width + min(width, SHOWN)])
        out.append(f"{feature.config.name}[{offset}]={few}" + (f" ... ({width:,})" if width > SHOWN else ""))
    return out


def real_text(name: str, value: float) -> str:
    return f"{name}={value:.4g}"


def _code_text(name: str, value: float) -> str:
    return name  # which has the value in it


class FeatureNames:
    """Names of the columns that some features have in an explicit map, in the order of `maps.ColumnOrder`."""

    def __init__(self, views: Sequence[View], labels: Sequence[str], text: ValueText = field_value):
        fields = [(view.feature, view.places) for view in views if isinstance(view.feature, FieldFeature)]
        bags = [view.feature for view in views if isinstance(view.feature, AttributeFeature)]
        real = [(view.feature, view.columns) for view in views if isinstance(view.feature, RealFeature)]
        # How many columns each part has, the name of the k-th of them, and that name with a value.
        parts: list[tuple[int, Callable[[int], str], Callable[[str, float], str]]] = []
        for feature, places in fields:
            for w in places:
                parts.append((feature.field_sizes[w], partial(_named, feature, w, text), _code_text))
        for bag in bags:
            parts.append((len(bag.vocabulary.values), bag.vocabulary.values.__getitem__, attribute_text))
        for numbers, columns in real:
            every = real_names(numbers, labels)
            names = [every[column] for column in columns]
            parts.append((len(names), names.__getitem__, real_text))
        self._parts = parts
        self._firsts = [0]
        for size, *_ in parts:
            self._firsts.append(self._firsts[-1] + size)

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, column: int) -> str:
        if not 0 <= column < len(self):
            return f"#{column}"
        part = bisect_right(self._firsts, column) - 1
        return self._parts[part][1](column - self._firsts[part])

    def with_value(self, column: int, value: float) -> str:
        """The name of a column, and the value that a position has there."""
        part = bisect_right(self._firsts, column) - 1
        return self._parts[part][2](self[column], value)


def conjunction_name(names: Iterable[str]) -> str:
    """The name of a conjunction of features; that of none is a constant."""
    return " & ".join(names) or CONSTANT


def _named(feature: FieldFeature, w: int, text: ValueText, code: int) -> str:
    return field_name(feature, w, code, text)


def plain_names(features: Sequence[Feature]) -> list[str]:
    """Attributes, or columns and where they are looked at: `c0`, and `c0[-1]` where there is a window."""
    attributes: list[str] = []
    numbers: list[str] = []
    for feature in features:
        if isinstance(feature, AttributeFeature):
            attributes += feature.vocabulary.values
        elif isinstance(feature, RealFeature) and feature.ratios is None:
            offsets = feature.config.seen
            tails = [""] if tuple(offsets) == (0,) else [f"[{offset}]" for offset in offsets]
            columns = feature.config.columns or real_columns(feature.config, len(feature.mean))
            if feature.indicates:
                columns = [*columns, *(f"{column}.missing" for column in columns)]
            numbers += [column + tail for tail in tails for column in columns]
        else:
            raise AttributeError(f"the feature '{feature.config.name}' is neither a number nor an attribute")
    return attributes + numbers
