"""Polynomial kernels of degree 1 by explicit features, whatever the inputs.

scale (gamma <x, x'> + coef0)  is the inner product of  (sqrt(scale gamma) x, sqrt(scale coef0)) with its like.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..kernels import Inputs, PolynomialKernel
from .feature_maps import ExplicitMap
from .sparse_rows import sparse_block


@dataclass(frozen=True)
class Affine:
    """Factors of the inputs and of the constant column, which is the last."""

    slope: float
    constant: float

    @classmethod
    def of(cls, kernel: PolynomialKernel) -> Affine:
        return cls(sqrt(kernel.scale * kernel.gamma), sqrt(kernel.scale * kernel.coef0))

    def map_of(self, inputs: Inputs, dtype: np.dtype | type) -> ExplicitMap:
        constant = np.full((len(inputs), 1), self.constant)
        return ExplicitMap(self.slope * sparse_block(inputs), np.hstack([self.slope * inputs.real, constant]), dtype)

    def weights(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the inputs themselves and a bias, out of weights of the map's columns."""
        return self.slope * W[:-1], self.constant * W[-1]

    def map_weights(self, inner: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Inverse of `weights`; a column that is zero has no say, and no weight."""
        last = bias / self.constant if self.constant else np.zeros_like(bias)
        return np.concatenate([inner / self.slope, last[None]])
