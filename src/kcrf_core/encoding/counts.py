"""Counts of the distinct values of the features of a term, as CRF++ counts its features.

A value is a string of a template, a value of a categorical field, an attribute, or a real column. A linear model has a
weight for each of them and each label, or, in a term over edges, each pair of labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..system import positions_within
from .dataset import Dataset
from .encoding import Encoding


@dataclass(frozen=True)
class TermCount:
    name: str
    type: str
    values: int  # distinct ones
    weights: int  # of a linear kernel


class TermCounter:
    """Counts the values that terms have in data which comes in parts."""

    def __init__(self, encoding: Encoding, config: Config):
        self._encoding, self._config = encoding, config
        self._seen: dict[str, list[np.ndarray]] = {}  # by term: of each column and of attributes, which were there
        self._real: dict[str, int] = {}

    def add(self, dataset: Dataset) -> None:
        later = positions_within(dataset.offsets) > 0  # nothing comes before the first position: it has no edge
        for term in self._config.mapped_terms:
            inputs = self._encoding.inputs(dataset, self._encoding.term_features(term))
            if term.clique.axes != 1:
                inputs = inputs.take(later)
            sizes, columns = inputs.sizes.tolist(), [*inputs.codes.T]
            if inputs.bag is not None:
                sizes, columns = [*sizes, inputs.bag.shape[1]], [*columns, inputs.bag.indices]
            seen = self._seen.setdefault(term.name, [np.zeros(size, dtype=bool) for size in sizes])
            for there, column in zip(seen, columns, strict=True):
                there[column[column >= 0]] = True
            self._real[term.name] = inputs.real.shape[1]

    def counts(self) -> list[TermCount]:
        """Return the counts of all terms that see the input, and of the edge term its pairs of labels."""
        Y = len(self._encoding.labels)
        out = []
        for term in self._config.terms:
            if term in self._config.mapped_terms:
                count = int(sum(map(np.count_nonzero, self._seen[term.name]))) + self._real[term.name]
                out.append(TermCount(term.name, term.type, count, count * term.clique.states(Y)))
            elif not term.clique.second_order:
                out.append(TermCount(term.name, term.type, 1, term.clique.states(Y)))
        return out
