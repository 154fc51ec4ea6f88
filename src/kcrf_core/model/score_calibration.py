"""Calibration of a model's probabilities: its scores times a number, plus a number for each label.

    p(y | x) proportional to exp( s (scores of positions and of neighbouring labels) + sum_t o[y_t] )

s is below 1 where a model is too sure. Weights and their certificate stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..chains import Edges


@dataclass(frozen=True)
class ScoreCalibration:
    """What scores are multiplied with, and what labels get on top."""

    sharpness: float  # s
    offsets: np.ndarray  # [Y] o

    def scores(self, scores: np.ndarray) -> np.ndarray:
        """Those of positions, [n, Y]."""
        return self.sharpness * scores + self.offsets

    def edges(self, edges: Edges) -> Edges:
        """Those of neighbouring labels."""
        return edges.times(self.sharpness)
