"""Results of `KernelCRF.audit`: doubtful labels by their places in X and y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..corpora import LabelValue
from ..selection import Audit, DoubtfulPosition


@dataclass(frozen=True, eq=False)
class LabelAudit(Audit):
    """Labels of y that are doubtful.

    In what it lists, `sequence` is the number of a sequence of X, from 0 on, and `position` is within it: a label is
    y[sequence][position].
    """

    lengths: np.ndarray  # [S] of the sequences of X
    values: Sequence[LabelValue]  # labels as y has them, in the order of `labels`

    @property
    def doubts(self) -> list[np.ndarray]:
        """Doubts of all labels, an array [T] for each sequence; NaN where it was not judged."""
        return np.split(self.evidence.doubt, np.cumsum(self.lengths)[:-1]) if len(self.lengths) else []

    def positions(self, most: int | None = None) -> list[DoubtfulPosition]:
        """List labels that were judged, the worst first."""
        names, out = self._names(), []
        for one in super().positions(most):
            sequence, position = self._place(one.position)
            gold, suggested = names[one.gold], names[one.suggested]
            out.append(replace(one, sequence=sequence, position=position, gold=gold, suggested=suggested))
        return out

    def _names(self) -> dict[str, Any]:
        """Return labels as y has them by their texts."""
        return dict(zip(self.labels, self.values, strict=True))

    def _place(self, t: int) -> tuple[int, int]:
        """Return the sequence of X, and the position in it, of a position among all."""
        ends = np.cumsum(self.lengths)
        sequence = int(np.searchsorted(ends, t, side="right"))
        return sequence, t - int(ends[sequence] - self.lengths[sequence])
