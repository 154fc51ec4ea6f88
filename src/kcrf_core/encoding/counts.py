"""How many distinct values the features of a term have in some data, as CRF++ counts its features.

A value is a string of a template, a value of a categorical field, an attribute, or a real column. A linear model has a
weight for each of them and each label, or, in a term over edges, each pair of labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..config import Config
from ..kernels import Inputs
from .dataset import Dataset
from .encoding import Encoding


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
            count = distinct_values(inputs if term.clique.axes == 1 else inputs.take(later))
            out.append(TermCount(term.name, term.type, count, count * term.clique.states(Y)))
        elif not term.clique.second_order:
            out.append(TermCount(term.name, term.type, 1, term.clique.states(Y)))
    return out


def distinct_values(inputs: Inputs) -> int:
    """Distinct values of all columns, each column's its own."""
    count = sum(len(np.unique(column[column >= 0])) for column in inputs.codes.T) + inputs.real.shape[1]
    return count + (0 if inputs.bag is None else len(np.unique(inputs.bag.indices)))
