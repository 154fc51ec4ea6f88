"""The weights of a linear model by the names of its features and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..corpora import LabelValue
from ..encoding import Encoding, plain_names
from ..features import FeatureTerm
from ..maps import as_dense, matrix_of
from .model import Model


class NamedWeights(Mapping[tuple[str, LabelValue], float]):
    """Weights by (feature, label). Like a dictionary, and no larger than the array behind it."""

    def __init__(self, names: Sequence[str], labels: Sequence[LabelValue], values: np.ndarray):
        self._rows = {name: row for row, name in enumerate(names)}
        self._columns = {label: column for column, label in enumerate(labels)}
        self._values = values  # [D, Y]

    def __getitem__(self, key: tuple[str, LabelValue]) -> float:
        try:
            name, label = key
            return float(self._values[self._rows[name], self._columns[label]])
        except (TypeError, ValueError):
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[tuple[str, LabelValue]]:
        return ((name, label) for name in self._rows for label in self._columns)

    def __len__(self) -> int:
        return self._values.size

    def __repr__(self) -> str:
        return f"<{len(self):,} weights of {len(self._rows):,} features and {len(self._columns)} labels>"


def state_weights(model: Model, labels: Sequence[LabelValue]) -> NamedWeights:
    """The weights of the only term of a linear model, with the labels as they are to be called."""
    if len(model.terms) != 1:
        raise AttributeError("there are weights of features only where the model has one term")
    term = model.terms[0]
    if not isinstance(term, FeatureTerm) or not term.is_linear or term.clique.axes > 1:
        raise AttributeError("there are weights of features only where the kernel is linear")
    weights = term.by_labels(as_dense(matrix_of(term.weights)), len(model.labels))
    return NamedWeights(feature_names(model.encoding), labels, weights)


def feature_names(encoding: Encoding) -> list[str]:
    """Attributes, or columns and where they are looked at: `c0`, and `c0[-1]` where there is a window."""
    return plain_names(encoding.features)


def transition_weights(model: Model, labels: Sequence[LabelValue]) -> dict[tuple[LabelValue, LabelValue], float]:
    """Scores of neighbouring labels; those that cannot be neighbours are left out."""
    scores = model.edges.transitions
    return {
        (one, other): float(scores[i, j])
        for i, one in enumerate(labels)
        for j, other in enumerate(labels)
        if np.isfinite(scores[i, j])
    }


def end_weights(scores: np.ndarray, labels: Sequence[LabelValue]) -> dict[LabelValue, float]:
    """Scores of first or of last labels."""
    return {label: score for label, score in zip(labels, scores.tolist(), strict=True) if np.isfinite(score)}
