"""What the columns of an explicit map are called, as positions are described: `word[-1]=the`, `f0[0]`, an attribute.

Names are made one at a time, when they are asked for: a model has hundreds of thousands of features. What a damaged
file may hold that no value belongs to is called by its number.

How many distinct values the features of a term have in some data, as CRF++ counts its features.

A value is a string of a template, a value of a categorical field, an attribute, or a real column. A linear model has a
weight for each of them and each label, or, in a term over edges, each pair of labels.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..config import Config
from ..kernels import Inputs
from ..maps import Conjunctions
from .dataset import Dataset
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


@dataclass(frozen=True)
class TermCount:
    name: str
    type: str
    values: int  # distinct ones
    weights: int  # of a linear kernel


def term_counts(encoding: Encoding, dataset: Dataset, config: Config) -> list[TermCount]:
    """Of all terms that look at the input, and of the edge term its pairs of labels."""
    Y = len(encoding.labels)
    later = np.ones(dataset.positions, dtype=bool)
    later[dataset.offsets[:-1]] = False  # nothing comes before the first position: it has no edge
    out = []
    for term in config.terms:
        if term in config.mapped_terms:
            inputs = encoding.inputs(dataset, encoding.term_features(term))
            edges = term.type == "edge-x"
            count = distinct_values(inputs.take(later) if edges else inputs)
            out.append(TermCount(term.name, term.type, count, count * Y ** (1 + edges)))
        elif term.type == "edge":
            out.append(TermCount(term.name, term.type, 1, Y * Y))
    return out


def distinct_values(inputs: Inputs) -> int:
    """Distinct values of all columns, each column's its own."""
    count = sum(len(np.unique(column[column >= 0])) for column in inputs.codes.T) + inputs.real.shape[1]
    return count + (0 if inputs.bag is None else len(np.unique(inputs.bag.indices)))
