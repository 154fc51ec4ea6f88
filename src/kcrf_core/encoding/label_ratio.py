"""The transform `label-ratio`: the share of each label among the occurrences of a value.

With c_y(v) occurrences of the value v under the label y, c(v) in all, and p_y the share of y in the training data,

    ratio_y(v) = (c_y(v) + p_y) / (c(v) + 1),

so that a value never seen has the shares of all. A training position must not see its own label in it, nor those of
its sequence: each part of the training sequences is given the ratios of the others, as new data is. Leaving out the
single position would give its label away: the ratio would be lower wherever the label is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

PARTS = 10


@dataclass(frozen=True)
class LabelRatios:
    """Occurrences of values by label. Two labels make one column, the second's; more make one each."""

    values: tuple[str, ...]
    counts: np.ndarray  # [V, Y] int64, labels in their sorted order

    @cached_property
    def _index(self) -> dict[str, int]:
        return {value: number for number, value in enumerate(self.values)}

    def of(self, values: Sequence[str]) -> np.ndarray:
        """Return ratios of some values, [n, r]."""
        none = np.zeros(self.counts.shape[1], dtype=np.int64)
        counts = [self.counts[self._index[value]] if value in self._index else none for value in values]
        return ratios(np.array(counts).reshape(-1, len(none)), self.counts.sum(axis=0))


def ratios(counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return ratios [n, r] by occurrences [n, Y] and those of all values together, [Y]."""
    shares = totals / totals.sum() if totals.any() else np.full(len(totals), 1 / len(totals))
    found = (counts + shares) / (counts.sum(axis=1, keepdims=True) + 1)
    return found[:, -1:] if found.shape[1] <= 2 else found


def fit_ratios(
    values: Sequence[str], inverse: np.ndarray, labels: np.ndarray, label_count: int, offsets: np.ndarray, seed: int
) -> tuple[LabelRatios, np.ndarray]:
    """Return occurrences in the training data, and the ratios of its own positions, [N, r], each from other parts.

    `inverse` [N] numbers the distinct `values`, `labels` [N] the labels.
    """
    V, sequences = len(values), len(offsets) - 1
    pairs = inverse.astype(np.int64) * label_count + labels

    def count(which: np.ndarray) -> np.ndarray:
        return np.bincount(pairs[which], minlength=V * label_count).reshape(V, label_count)

    everything = count(np.arange(len(pairs)))
    part_of = np.empty(sequences, dtype=np.int64)
    order = np.random.default_rng([seed, 4]).permutation(sequences)
    part_of[order] = np.arange(sequences) % min(PARTS, sequences)
    parts = np.repeat(part_of, np.diff(offsets))  # [N]
    own = np.empty((len(pairs), 1 if label_count <= 2 else label_count))
    for part in range(min(PARTS, sequences)):
        inside = np.flatnonzero(parts == part)
        others = everything - count(inside)
        own[inside] = ratios(others[inverse[inside]], others.sum(axis=0))
    return LabelRatios(tuple(values), everything), own
