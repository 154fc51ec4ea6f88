"""Inputs of one encoding translated to another: the same features and values, numbered and scaled differently.

Features are matched by name and meaning, fields by offset, categorical values and attributes by what they are, real
columns through their units. Values that the other encoding lacks are unseen there, as in new data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..config import FeatureConfig, pieces, same_line
from ..kernels import NOTHING, UNSEEN, Inputs
from ..maps import ColumnOrder
from .encoding import Encoding
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, Feature, RealFeature, View
from .template_feature import LineFeature, TemplateFeature

if TYPE_CHECKING:
    import scipy.sparse


# A real column, its column there, and mean and scale of both: x is (x * scale + mean - to_mean) / to_scale there.
RealColumn = tuple[int, int, float, float, float, float]


@dataclass(frozen=True)
class Translation:
    """A translation from inputs of some features of one encoding to those of some features of another."""

    order: ColumnOrder  # of the columns translated from
    like: Inputs  # of no position: the shape that is translated to
    fields: tuple[tuple[int, int, np.ndarray], ...]  # field, its field there, [size] its codes there
    bag: np.ndarray | None  # [A] codes of the attributes there; None where either side has none
    strings: tuple[tuple[int, np.ndarray], ...]  # field, [size] codes of the strings there that its values make
    real: tuple[RealColumn, ...]

    def inputs(self, inputs: Inputs) -> Inputs:
        """Return the same positions as the other encoding has them."""
        N = len(inputs)
        codes = np.full((N, len(self.like.sizes)), NOTHING, dtype=np.int32)
        for field, to_field, table in self.fields:
            column = inputs.codes[:, field]
            known = column >= 0
            codes[:, to_field] = column
            codes[known, to_field] = table[column[known]]
        real = np.zeros((N, self.like.real.shape[1]))
        for at, to_column, mean, scale, to_mean, to_scale in self.real:
            real[:, to_column] = (inputs.real[:, at] * scale + mean - to_mean) / to_scale
        bag, unseen = (None, np.zeros(N)) if self.like.bag is None else self._bag(inputs)
        return Inputs(codes, self.like.sizes, real, bag, unseen)

    def _bag(self, inputs: Inputs) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Return attributes [N, A'] there, and the squared length of those that are unseen."""
        import scipy.sparse

        assert self.like.bag is not None
        N, A = len(inputs), self.like.bag.shape[1]
        if self.bag is None or inputs.bag is None:
            return scipy.sparse.csr_array((N, A)), np.zeros(N)
        given = inputs.bag.tocoo()
        codes = self.bag[given.col]
        known = codes >= 0
        bag = scipy.sparse.csr_array((given.data[known], (given.row[known], codes[known])), shape=(N, A))
        bag.sort_indices()
        strange = np.bincount(given.row, given.data**2 * (codes == UNSEEN), minlength=N)
        return bag, strange

    def explicit_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the column there of each column of an explicit map, or -1, and the ratio of their units: [D] each."""
        own, there = self.order, ColumnOrder.of(self.like)
        columns, units = np.full(own.size, -1, dtype=np.int64), np.ones(own.size)
        placed = [(own.fields[field], codes, there.first_attribute) for field, codes in self.strings]
        for field, to_field, table in self.fields:
            placed.append((own.fields[field], table, there.fields[to_field]))
        if self.bag is not None:
            placed.append((own.first_attribute, self.bag, there.first_attribute))
        for begin, codes, first in placed:
            columns[begin : begin + len(codes)] = np.where(codes >= 0, codes + first, -1)
        for column, to_column, _, scale, _, to_scale in self.real:
            columns[own.first_real + column] = there.first_real + to_column
            units[own.first_real + column] = scale / to_scale
        return columns, units


def translation(source: Encoding, names: Sequence[str], target: Encoding, to_names: Sequence[str]) -> Translation:
    """Make a translation from inputs of the features `names` to those of the features `to_names` elsewhere."""
    given = source.inputs(source.empty_dataset(), names)
    there = {view.feature.config.name: (view, places) for view, places in _placed(target, to_names)}
    fields: list[tuple[int, int, np.ndarray]] = []
    real: list[RealColumn] = []
    bag = None
    strings: list[tuple[int, np.ndarray]] = []
    templates = next((view for view, _ in there.values() if isinstance(view.feature, TemplateFeature)), None)
    lines = None if templates is None else templates.feature
    for view, places in _placed(source, names):
        feature = view.feature
        to_view, to_places = there.get(feature.config.name, (None, []))
        if isinstance(feature, TemplateFeature):
            to_view = to_view or templates
        elif isinstance(lines, TemplateFeature) and not isinstance(feature, RealFeature | AttributeFeature):
            strings += _string_codes(feature, places, lines)
        if to_view is None or not _same_meaning(feature, other := to_view.feature):
            continue
        if isinstance(feature, AttributeFeature) and isinstance(other, AttributeFeature):
            bag = other.vocabulary.encode(feature.vocabulary.values)
            continue
        if isinstance(feature, CategoricalFeature) and isinstance(other, CategoricalFeature):
            table = _categorical_codes(feature, feature.reach, other, other.reach)
        for w, offset in enumerate(view.offsets):
            if offset not in to_view.offsets:
                continue
            to_w = to_view.offsets.index(offset)
            if isinstance(feature, RealFeature) and isinstance(other, RealFeature):
                units = (feature.mean, feature.scale, other.mean, other.scale)
                scales = zip(*(numbers.tolist() for numbers in units), strict=True)
                r = len(feature.mean)
                for i, (mean, scale, to_mean, to_scale) in enumerate(scales):
                    real.append((places[w * r + i], to_places[to_w * r + i], mean, scale, to_mean, to_scale))
            elif isinstance(feature, ConjunctionFeature) and isinstance(other, ConjunctionFeature):
                codes = _conjunction_codes(feature, view.places[w], other, to_view.places[to_w])
                fields.append((places[w], to_places[to_w], codes))
            else:
                fields.append((places[w], to_places[to_w], table))
    like = target.inputs(target.empty_dataset(), to_names)
    return Translation(ColumnOrder.of(given), like, tuple(fields), bag, tuple(strings), tuple(real))


def _string_codes(
    feature: CategoricalFeature | ConjunctionFeature, places: Sequence[int], templates: TemplateFeature
) -> list[tuple[int, np.ndarray]]:
    """Return the codes of strings that a line of templates has for the values of a feature made of that line."""
    if isinstance(feature, LineFeature):
        codes = templates.vocabulary.encode(feature.vocabulary.values)
        beyond = np.full(feature.field_sizes[0] - len(codes), NOTHING, dtype=codes.dtype)
        return [(places[0], np.concatenate([codes, beyond]))]
    line = next((one for one in templates.config.templates if same_line(one, feature.config)), None)
    if line is None:
        return []
    texts = [feature.value(0, code) for code in range(feature.field_sizes[0])]
    parts = pieces(line)
    if isinstance(feature, CategoricalFeature):
        made = ["".join(part if isinstance(part, str) else text for part in parts) for text in texts]
    else:
        made = []
        for code in range(len(texts)):
            values = iter(feature.part_values(0, code))
            made.append("".join(part if isinstance(part, str) else next(values) for part in parts))
    return [(places[0], templates.vocabulary.encode(made))]


def _placed(encoding: Encoding, names: Sequence[str]) -> list[tuple[View, list[int]]]:
    """Return named features in the encoding's order, with the columns of codes or of reals that each has in inputs."""
    groups = encoding.groups(names)
    places = [(view, groups[view.feature.config.name]) for view in encoding.views(names)]
    return [(view, [*at.codes, *at.real]) for view, at in places]


def _same_meaning(a: Feature, b: Feature) -> bool:
    """Return True if both make the same values of the same columns, whatever their vocabularies and windows."""

    def meaning(config: FeatureConfig) -> tuple:
        own = config.columns, config.transform, config.length, config.parts, config.templates, config.vectors
        scale = config.scale if config.scale == "unit" or config.by_group else None
        return *own, config.lookup, config.width, config.quantile, config.missing, scale, config.group

    if isinstance(a, TemplateFeature) and isinstance(b, TemplateFeature):
        return True  # strings are what they are, whichever lines made them
    if type(a) is not type(b) or meaning(a.config) != meaning(b.config):
        return False
    if isinstance(a, RealFeature) and isinstance(b, RealFeature) and a.is_vector:
        # Vectors of the same name may have another width, and tables other rows.
        return len(a.mean) == len(b.mean) and (a.table is None or b.table is None or a.table.digest == b.table.digest)
    if isinstance(a, RealFeature) and isinstance(b, RealFeature) and a.quantiles is not None:
        return b.quantiles is not None and np.array_equal(a.quantiles, b.quantiles)
    if isinstance(a, ConjunctionFeature) and isinstance(b, ConjunctionFeature):
        return all(_same_meaning(*parts) for parts in zip(a.parts, b.parts, strict=True))
    return True


def _categorical_codes(source: CategoricalFeature, reach: int, target: CategoricalFeature, to_reach: int) -> np.ndarray:
    """Return the codes that values and the boundary symbols of one feature have in another."""
    size = len(target.vocabulary.values)
    distance = np.arange(reach)
    before, after = (
        np.where(distance < to_reach, size + side * to_reach + distance, UNSEEN).astype(np.int32) for side in (0, 1)
    )
    return np.concatenate([target.vocabulary.encode(source.vocabulary.values), before, after])


def _conjunction_codes(source: ConjunctionFeature, w: int, target: ConjunctionFeature, to_w: int) -> np.ndarray:
    """Take tuples apart, translate their parts, and number them again."""
    codes = source.part_codes(w, np.arange(len(source.keys[w][-1]), dtype=np.int64))
    translated = [
        _categorical_codes(part, source.reach, to_part, target.reach)[part_codes]
        for part, to_part, part_codes in zip(source.parts, target.parts, codes, strict=True)
    ]
    return target.numbered(translated, to_w)
