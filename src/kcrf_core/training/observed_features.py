"""Weights for those pairs of a feature and a label alone that stand together in the training data.

CRFsuite does the same by default. The weight of any other pair is fixed at zero: a feature may speak for the
labels that it was seen with, and against them, but of others it says nothing. P over what is left is as convex as
before and has its own optimum, no lower than that over all weights.

A pair of a feature and a label is a place in W [D, C] of an explicit map, for edge-x terms [D, Y^2] of a feature and
two labels. With two labels there is one column for both, so that all features stay that are there at all. Pivots are
inputs, not features of them, and keep all their coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..chains import Problem, positions_within, score_columns
from ..errors import ConfigError
from ..maps import FeatureMap
from ..model import over_pairs, weight_columns
from .observer import Observer
from .terms import FittedTerm


def observed_only(fitted: Sequence[FittedTerm], problem: Problem, observer: Observer) -> list[FittedTerm]:
    """The same terms; those with explicit maps have weights for pairs that the problem has."""
    if not any(term.has_features for term in fitted):
        raise ConfigError("--observed-features is for explicit maps, such as that of the linear kernel: there is none")
    return [term.observed(problem, observer) for term in fitted]


def places_seen(feature_map: FeatureMap, type_: str, problem: Problem) -> tuple[np.ndarray, int]:
    """Places [K] in W [D, columns] of a map whose pairs the problem has, ascending, and how many places there are."""
    rows, columns = _cliques(type_, problem)
    width = weight_columns(type_, problem.label_count)
    return feature_map.seen_with(rows, columns, width), feature_map.size * width


def _cliques(type_: str, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Positions [n] with the column of W [n] that their label, or pair of labels, has; labels may be missing."""
    labels, Y = problem.labels.astype(np.int64), problem.label_count
    known = labels >= 0
    if over_pairs(type_):
        rows = np.flatnonzero((positions_within(problem.offsets) > 0) & known & np.roll(known, 1))
        return rows, labels[rows - 1] * Y + labels[rows]
    rows = np.flatnonzero(known)
    return rows, labels[rows] if score_columns(Y) == Y else np.zeros(len(rows), dtype=np.int64)


def kept_in(term: FittedTerm, columns: np.ndarray, label_count: int) -> np.ndarray | None:
    """The places of a term that have weights, where its map is narrowed to columns, given in ascending order."""
    if term.kept is None:
        return None
    width = weight_columns(term.config.type, label_count)
    features = term.kept // width
    there = np.isin(features, columns)
    return np.searchsorted(columns, features[there]) * width + term.kept[there] % width
