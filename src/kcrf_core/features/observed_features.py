"""Weights for those pairs of a feature and a label alone that stand together in the training data.

CRFsuite does the same by default. The weight of any other pair is fixed at zero: a feature may speak for the
labels that it was seen with, and against them, but of others it says nothing. P over what is left is as convex as
before and has its own optimum, no lower than that over all weights.

A pair of a feature and a label is a place in W [D, C] of an explicit map, for edge-x terms [D, Y^2] of a feature and
two labels. A `node` term has one column for both where there are two labels: it becomes a `state` term, which has one
for each. Pivots are inputs, not features of them, and keep all their coefficients. CRFsuite counts how often a
pair is there by the sum of the feature's values, and leaves out pairs below a limit, zero by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..chains import NODE, STATE, Problem
from ..errors import ConfigError
from ..objective.solvers import Observer
from ..system import Workers
from .fitted import FittedTerm, MappedTerm


def observed_only(
    fitted: Sequence[FittedTerm], problem: Problem, workers: Workers, observer: Observer
) -> list[FittedTerm]:
    """Return the terms; those with explicit maps have weights for pairs that the problem has.

    Terms that are not in memory have the partitions of the problem.
    """
    if not any(term.has_features for term in fitted):
        raise ConfigError(
            "'observed_features' is for explicit maps, such as that of the linear kernel: there is none",
            settings=["observed_features"],
        )
    return [by_label(term, problem).observed(problem, workers, observer) for term in fitted]


def by_label(term: FittedTerm, problem: Problem) -> FittedTerm:
    """Return the term with a column of weights for each label."""
    if term.config.clique is not NODE or NODE.columns(problem.label_count) == problem.label_count:
        return term
    return replace(term, config=replace(term.config, type=STATE.name))


def frequent_only(fitted: Sequence[FittedTerm], problem: Problem, least: float, workers: Workers) -> list[FittedTerm]:
    """Return the terms without weights of pairs of a feature and a label whose values sum to less than `least`."""
    return [_frequent(by_label(term, problem), problem, least, workers) for term in fitted]


def _frequent(term: FittedTerm, problem: Problem, least: float, workers: Workers) -> FittedTerm:
    if not isinstance(term, MappedTerm) or not term.has_features:
        return term
    clique, own = term.clique, term.map
    rows, columns = clique.observed_columns(problem)
    labels = np.zeros((problem.positions, clique.columns(problem.label_count)))
    labels[rows, columns] = 1
    found = own.adjoint(own.adjoint_rows(labels, slice(0, len(labels)), None), labels, workers)
    assert isinstance(found, np.ndarray)
    sums = found.ravel()
    kept = np.arange(len(sums)) if term.kept is None else term.kept
    return replace(term, kept=kept[sums[kept] >= least])


def kept_in(term: FittedTerm, columns: np.ndarray, label_count: int) -> np.ndarray | None:
    """The places of a term that have weights, where its map is narrowed to columns, given in ascending order."""
    if term.kept is None:
        return None
    width = term.config.clique.columns(label_count)
    features = term.kept // width
    there = np.isin(features, columns)
    return np.searchsorted(columns, features[there]) * width + term.kept[there] % width
