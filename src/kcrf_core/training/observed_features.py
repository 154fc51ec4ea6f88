"""Weights for those pairs of a feature and a label alone that stand together in the training data.

So does CRFsuite unless told otherwise. The weight of any other pair is fixed at zero: a feature may speak for the
labels that it was seen with, and against them, but of others it says nothing. P over what is left is as convex as
before and has its own optimum, no lower than that over all weights.

A pair of a feature and a label is a place in W [D, C] of an explicit map, for edge-x terms [D, Y^2] of a feature and
two labels. With two labels there is one column for both, so that all features stay that are there at all. Pivots are
inputs, not features of them, and keep all their coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..chains import NODE, Problem, positions_within, score_columns
from ..errors import ConfigError
from .fitted_terms import FittedTerm
from .observer import Observer


def observed_only(fitted: Sequence[FittedTerm], problem: Problem, observer: Observer) -> list[FittedTerm]:
    """The same terms; those with explicit maps have weights for pairs that the problem has."""
    if not any(term.map is not None and term.basis is None for term in fitted):
        raise ConfigError("--observed-features is for explicit maps, such as that of the linear kernel: there is none")
    out = []
    for term in fitted:
        if term.basis is not None:
            observer.note(f"term {term.name}: pivots keep all coefficients, features that are observed have none here")
        elif term.map is not None:
            rows, columns = _cliques(term.config.type, problem)
            width = _width(term, problem.label_count)
            kept = term.map.seen_with(rows, columns, width)
            observer.note(f"term {term.name}: {len(kept):,} weights of {term.map.size * width:,}, those of pairs seen")
            term = replace(term, kept=kept)
        out.append(term)
    return out


def _width(term: FittedTerm, label_count: int) -> int:
    """Columns of W."""
    return score_columns(label_count) if term.config.type == NODE.name else label_count**2


def _cliques(kind: str, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Positions [n] with the column of W [n] that their label, or pair of labels, has; labels may be missing."""
    labels, Y = problem.labels.astype(np.int64), problem.label_count
    known = labels >= 0
    if kind == NODE.name:
        rows = np.flatnonzero(known)
        return rows, labels[rows] if score_columns(Y) == Y else np.zeros(len(rows), dtype=np.int64)
    rows = np.flatnonzero((positions_within(problem.offsets) > 0) & known & np.roll(known, 1))
    return rows, labels[rows - 1] * Y + labels[rows]


def kept_in(term: FittedTerm, columns: np.ndarray, label_count: int) -> np.ndarray | None:
    """The places of a term that have weights, where its map is narrowed to columns, given in ascending order."""
    if term.kept is None:
        return None
    width = _width(term, label_count)
    features = term.kept // width
    there = np.isin(features, columns)
    return np.searchsorted(columns, features[there]) * width + term.kept[there] % width
