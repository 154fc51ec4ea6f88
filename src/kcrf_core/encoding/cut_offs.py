"""Values that are too rare in a part of the data for their cut-offs, but not in all of it.

A fold has the vocabulary of all data. Training on its training part alone would have left these
values out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..corpora import NONE, Lexicon
from ..kernels import NOTHING
from ..system import offsets_of
from .features import AttributeFeature, CategoricalFeature, ConjunctionFeature, RealFeature
from .lookup_feature import LookupFeature
from .template_feature import TemplateFeature

if TYPE_CHECKING:
    import scipy.sparse

    from .dataset import Dataset
    from .encoding import Encoding


@dataclass(frozen=True, eq=False)
class RareValues:
    """Values of an encoding that some data has too rarely."""

    fields: tuple[np.ndarray, ...]  # [codes] bool, for each column of codes
    attributes: np.ndarray | None  # [A] bool; None without attributes

    @classmethod
    def of(cls, encoding: Encoding, dataset: Dataset, rows: np.ndarray, min_count: int) -> RareValues | None:
        """Return values that some rows have less often than their cut-offs; None without any cut-off.

        `min_count` is the cut-off of features that have none of their own. Values are counted at the
        positions themselves, or, where a feature does not look there, at the offset next to it.
        """
        configs = [feature.config for feature in encoding.features]
        limits = {config.name: config.min_count or min_count for config in configs}
        if max(limits.values(), default=1) == 1:
            return None
        fields: list[np.ndarray] = []
        rare: dict[str, np.ndarray] = {}  # [V] bool by the names of categorical features
        attributes = None
        for feature in encoding.features:
            least = limits[feature.config.name]
            if isinstance(feature, AttributeFeature):
                attributes = _attribute_counts(feature, dataset.own_bag[rows]) < least
            elif isinstance(feature, ConjunctionFeature):
                for w in range(len(feature.config.seen)):
                    codes = dataset.codes[rows, len(fields)]
                    fields.append(_rare_tuples(feature, w, codes, least, rare))
            elif not isinstance(feature, RealFeature):
                nearest = len(fields) + int(np.argmin(np.abs(feature.config.seen)))
                rare_codes = _rare_codes(feature, dataset.codes[rows, nearest], least)
                rare[feature.config.name] = rare_codes
                beyond_ends = np.zeros(2 * feature.reach, dtype=bool)
                fields += [np.append(rare_codes, beyond_ends)] * len(feature.config.seen)
        return cls(tuple(fields), attributes)

    def left_out_of(self, dataset: Dataset) -> Dataset:
        """Return a dataset of the same encoding without these values."""
        codes, bag = dataset.codes.copy(), dataset.bag
        for column, rare in zip(codes.T, self.fields, strict=True):
            known = np.flatnonzero(column >= 0)
            column[known[rare[column[known]]]] = NOTHING
        if bag is not None and self.attributes is not None:
            kept = ~self.attributes[bag.indices]
            ends = offsets_of(kept)[bag.indptr].astype(bag.indptr.dtype)
            bag = type(bag)((bag.data[kept], bag.indices[kept], ends), shape=bag.shape)
        return replace(dataset, codes=codes, bag=bag)


def _counts(codes: np.ndarray, size: int) -> np.ndarray:
    """Return the number of rows with each code below `size`."""
    return np.bincount(codes[(codes >= 0) & (codes < size)], minlength=size)


def _rare_codes(feature: CategoricalFeature, codes: np.ndarray, least: int) -> np.ndarray:
    """Return True for values that are too rare among some codes, [V]."""
    values, table = feature.vocabulary.values, feature.table if isinstance(feature, LookupFeature) else None
    if least == 1 or isinstance(table, Lexicon):  # values are those that the lexicon can give
        return np.zeros(len(values), dtype=bool)
    rare = _counts(codes, len(values)) < least
    if table is not None:
        rare[feature.vocabulary.index[NONE]] = False
    return rare


def _rare_tuples(
    feature: ConjunctionFeature, w: int, codes: np.ndarray, least: int, rare: dict[str, np.ndarray]
) -> np.ndarray:
    """Return True for tuples of the w-th offset that are too rare or have such a part, [tuples]."""
    size = feature.field_sizes[w]
    out = _counts(codes, size) < least if least > 1 else np.zeros(size, dtype=bool)
    for part, of_tuples in zip(feature.parts, feature.part_codes(w, np.arange(size)), strict=True):
        rare_part = rare.get(part.config.name)
        if rare_part is not None:  # else a column without a cut-off
            out |= np.append(rare_part, False)[np.minimum(of_tuples, len(rare_part))]
    return out


def _attribute_counts(feature: AttributeFeature, bag: scipy.sparse.csr_array) -> np.ndarray:
    """Return the number of occurrences of each attribute, [A]."""
    if isinstance(feature, TemplateFeature):  # two lines may give the same string at a position
        return np.bincount(bag.indices, bag.data, minlength=bag.shape[1])
    return np.bincount(bag.indices, minlength=bag.shape[1])
