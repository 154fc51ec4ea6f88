"""Columns of weights by the type of a term: one for each label, or one for each pair of neighbouring labels.

All that depends on the type of a term with a map, in models and in their training, goes through `over_pairs`.
"""

from __future__ import annotations

import numpy as np

from ..chains import score_columns, spread

MAPPED_TYPES = ("node", "edge-x")


def over_pairs(type_: str) -> bool:
    """Whether a term of this type has weights for pairs of labels instead of single ones."""
    return type_ != MAPPED_TYPES[0]


def weight_columns(type_: str, labels: int) -> int:
    """Columns that W [D, columns] has; two labels share one column of a node term."""
    return labels**2 if over_pairs(type_) else score_columns(labels)


def by_labels(weights: np.ndarray, type_: str, labels: int) -> np.ndarray:
    """Weights [n, columns] laid out by labels, [n, Y], or by pairs of them, [n, Y^2]."""
    return weights if over_pairs(type_) else spread(weights, labels)


def labels_of_column(type_: str, column: int, labels: int) -> tuple[int, ...]:
    """The label, or the two, that a column of such weights is about."""
    return divmod(column, labels) if over_pairs(type_) else (column,)
