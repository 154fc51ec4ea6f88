"""Which label of an earlier model is which label here, by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..chains import gathered, spread
from ..model import over_pairs, weight_columns


@dataclass(frozen=True)
class LabelMatch:
    """The labels of an earlier model, and those of a new one."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the labels that both have: among the new ones, and among the old ones."""
        number = {label: y for y, label in enumerate(self.old)}
        pairs = [(y, number[label]) for y, label in enumerate(self.new) if label in number]
        return tuple(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)

    def summary(self) -> str:
        return f"{len(self._places[0])} of {len(self.new)} labels"

    def columns(self, type_: str) -> int:
        """Columns of weights that a term of the old model has."""
        return weight_columns(type_, len(self.old))

    def chosen(self, values: np.ndarray, axes: int) -> np.ndarray:
        """Values whose last `axes` axes are old labels, laid out by new ones; zero where one is new."""
        lead = values.shape[: values.ndim - axes]
        out = np.zeros(lead + (len(self.new),) * axes)
        to, at = self._places
        out[(..., *np.ix_(*[to] * axes))] = values[(..., *np.ix_(*[at] * axes))]
        return out

    def weights(self, weights: np.ndarray, type_: str, centred: bool = True) -> np.ndarray:
        """Weights [D, columns] of the old model in the columns of the new one."""
        if over_pairs(type_):
            pairs = weights.reshape(len(weights), len(self.old), len(self.old))
            return self.chosen(pairs, 2).reshape(len(weights), -1)
        by_label = self.chosen(spread(weights, len(self.old)), 1)
        # What all labels share changes no probability and only costs in the prior (Lemma 12): where all have weights.
        if centred:
            by_label -= by_label.mean(axis=1, keepdims=True)
        return gathered(by_label, len(self.new))
