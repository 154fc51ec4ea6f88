"""Names of features: `word[-1]=the`, `f0[0]`, an attribute; and with a value: `f0[0]=0.52`, `attribute:2`.

Names are made one at a time, on demand: a model has hundreds of thousands of features. A number that no value belongs
to, which a damaged file may hold, is its own name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate

from ..kernels import NOTHING, UNSEEN
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, Feature, RealFeature, View, real_columns

CONSTANT = "constant"
SHOWN = 3  # numbers of a vector
ATTRIBUTE, REAL = "{0}:{1:g}", "{0}={1:.4g}"  # names with values; an attribute of value 1 is its name

FieldFeature = CategoricalFeature | ConjunctionFeature
# Text for the code of a value, by the number of its place in the window; None for the value itself.
ValueText = Callable[[FieldFeature, int, int], str] | None


def field_name(feature: FieldFeature, w: int, text: ValueText, code: int) -> str:
    """Return `word[-1]=the`, for the code of a value at the w-th offset of the window."""
    place = f"{feature.config.name}[{feature.config.seen[w]}]"
    if code == UNSEEN:
        return f"{place}=<unseen>"
    if code == NOTHING:
        return f"{place}=<rare>"
    try:
        return f"{place}={feature.value(w, code) if text is None else text(feature, w, code)}"
    except IndexError:  # a table that does not lead back to values
        return f"{place}=#{code}"


def real_names(feature: RealFeature) -> list[str]:
    """Return names of the columns of a real feature, offset after offset."""
    config = feature.config
    columns: Sequence[str] = config.columns if len(config.columns) > 1 else (config.name,)
    if feature.indicates:
        columns = [*columns, *(f"{name}.missing" for name in columns)]
    else:
        columns = real_columns(config, len(feature.mean))
    return [f"{name}[{offset}]" for offset in config.seen for name in columns]


def vector_texts(feature: RealFeature, numbers: Sequence[float]) -> list[str]:
    """Return the first few numbers of a vector at each offset, and their count: `emb[0]=0.5 -1.2 0.1 ... (100)`."""
    width, out = len(feature.mean), []
    for w, offset in enumerate(feature.config.seen):
        few = " ".join(f"{number:.4g}" for number in numbers[w * width : w * width + min(width, SHOWN)])
        out.append(f"{feature.config.name}[{offset}]={few}" + (f" ... ({width:,})" if width > SHOWN else ""))
    return out


class FeatureNames:
    """Names of the columns that some features have in an explicit map, in the order of `maps.ColumnOrder`."""

    def __init__(self, views: Sequence[View], text: ValueText = None):
        # Number of columns of each part, the name of the k-th of them, and that name with a value, as a pattern.
        fields: list[tuple[int, Callable[[int], str], str]] = []
        bags, real = fields.copy(), fields.copy()
        for view in views:
            feature = view.feature
            if isinstance(feature, RealFeature):
                every = real_names(feature)
                real.append((len(view.columns), [every[column] for column in view.columns].__getitem__, REAL))
            elif isinstance(feature, AttributeFeature):
                bags.append((len(feature.vocabulary.values), feature.vocabulary.values.__getitem__, ATTRIBUTE))
            else:
                for w in view.places:
                    fields.append((feature.field_sizes[w], partial(field_name, feature, w, text), "{0}"))
        self._parts = [*fields, *bags, *real]
        self._firsts = [0, *accumulate(size for size, *_ in self._parts)]

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, column: int) -> str:
        if not 0 <= column < len(self):
            return f"#{column}"
        part = bisect_right(self._firsts, column) - 1
        return self._parts[part][1](column - self._firsts[part])

    def with_value(self, column: int, value: float) -> str:
        """Return the name of a column, and the value that a position has there."""
        pattern = self._parts[bisect_right(self._firsts, column) - 1][2]
        return self[column] if pattern == ATTRIBUTE and value == 1 else pattern.format(self[column], value)


def conjunction_name(names: Iterable[str]) -> str:
    """Return the name of a conjunction of features; that of none is a constant."""
    return " & ".join(names) or CONSTANT


def plain_names(features: Sequence[Feature]) -> list[str]:
    """Return attributes, or columns with offsets: `c0`, and `c0[-1]` where there is a window."""
    attributes: list[str] = []
    numbers: list[str] = []
    for feature in features:
        if isinstance(feature, AttributeFeature):
            attributes += feature.vocabulary.values
        elif isinstance(feature, RealFeature):
            offsets = feature.config.seen
            tails = [""] if tuple(offsets) == (0,) else [f"[{offset}]" for offset in offsets]
            columns = real_columns(feature.config, len(feature.mean)) if not feature.plain else feature.config.columns
            if feature.indicates:
                columns = [*columns, *(f"{column}.missing" for column in columns)]
            numbers += [column + tail for tail in tails for column in columns]
        else:
            raise AttributeError(f"the feature '{feature.config.name}' is neither a number nor an attribute")
    return attributes + numbers
