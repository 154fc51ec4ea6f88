"""Values that a part of the data has too rarely for their cut-offs, though all of the data has them often enough.

A fold of the data has the vocabulary of all data. Training on its training part alone would have left these values out.
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
        """Return values that some rows of a dataset have less often than their cut-offs; None if there is no cut-off.

        `min_count` is the cut-off of features that have none of their own. Values are counted at the positions
        themselves, or, where a feature does not look there, at the offset next to it.
        """
        limits = {one.config.name: one.config.min_count or min_count for one in encoding.features}
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
                own = _rare_codes(feature, dataset.codes[rows, nearest], least)
                rare[feature.config.name] = own
                fields += [np.append(own, np.zeros(2 * feature.reach, dtype=bool))] * len(feature.config.seen)
        return cls(tuple(fields), attributes)

    def left_out_of(self, dataset: Dataset) -> Dataset:
        """Return a dataset of the same encoding without these values."""
        codes, bag = dataset.codes.copy(), dataset.bag
        for column, rare in zip(codes.T, self.fields, strict=True):
            known = np.flatnonzero(column >= 0)
            column[known[rare[column[known]]]] = NOTHING
        if bag is not None and self.attributes is not None:
            there = ~self.attributes[bag.indices]
            ends = offsets_of(there)[bag.indptr].astype(bag.indptr.dtype)
            bag = type(bag)((bag.data[there], bag.indices[there], ends), shape=bag.shape)
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
    """Return True for tuples of the w-th offset that are too rare, or have a part that is, [tuples]."""
    size = feature.field_sizes[w]
    out = _counts(codes, size) < least if least > 1 else np.zeros(size, dtype=bool)
    for part, of_tuples in zip(feature.parts, feature.part_codes(w, np.arange(size)), strict=True):
        own = rare.get(part.config.name)
        if own is not None:  # else a column without a cut-off
            out |= np.append(own, False)[np.minimum(of_tuples, len(own))]
    return out


def _attribute_counts(feature: AttributeFeature, bag: scipy.sparse.csr_array) -> np.ndarray:
    """Return the number of occurrences of each attribute, [A]."""
    if isinstance(feature, TemplateFeature):  # two lines may give the same string at a position
        return np.bincount(bag.indices, bag.data, minlength=bag.shape[1])
    return np.bincount(bag.indices, minlength=bag.shape[1])
