"""Labels of an earlier model and those here, matched by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..chains import MappedClique
from ..system import counted


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
        return f"{len(self._places[0])} of {counted(len(self.new), 'label')}"

    def chosen(self, values: np.ndarray, axes: int) -> np.ndarray:
        """Values whose last `axes` axes are old labels, laid out by new ones; zero where one is new."""
        lead = values.shape[: values.ndim - axes]
        out = np.zeros(lead + (len(self.new),) * axes)
        to, at = self._places
        there: Any = (..., *np.ix_(*[to] * axes))
        here: Any = (..., *np.ix_(*[at] * axes))
        out[there] = values[here]
        return out

    def weights(self, weights: np.ndarray, old: MappedClique, clique: MappedClique, centred: bool = True) -> np.ndarray:
        """Weights [D, columns] of cliques of the old model in the columns of those of the new one."""
        by_labels = self.chosen(old.by_labels(weights, len(self.old)), old.axes)
        # What all labels share changes no probability and only costs in the prior (Lemma 12): where all have weights.
        if centred and clique.axes == 1:
            by_labels -= by_labels.mean(axis=1, keepdims=True)
        return clique.from_labels(by_labels, len(self.new))
