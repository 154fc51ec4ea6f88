"""Novelty of positions: the part of an input that the pivots of a model do not explain.

For the pivots B of a kernel term with L L^T = K_BB, the relative residual of an input x,

    r(x) / k(x, x),   r(x) = k(x, x) - |L^-1 k(B, x)|^2

is 0 for combinations of pivots, and 1 for an input orthogonal to all. Novelty is the largest over terms with pivots.
"""

from __future__ import annotations

import numpy as np

from ..encoding import Dataset
from ..errors import ConfigError
from ..features import KernelTerm
from ..kernels import Pivots
from ..maps import pivot_triangle
from ..system import SLAB, Workers, linear_algebra, padded, ranges, row_squares
from .model import ROWS_AT_ONCE, Model


class Novelty:
    """Relative residuals of inputs given the pivots of a model."""

    def __init__(self, model: Model):
        self._encoding = model.encoding
        self._terms: list[tuple[KernelTerm, Pivots, np.ndarray]] = []
        with Workers(1, memory=0) as workers:  # SciPy has a BLAS of its own, which came with this module
            for term in model.terms:
                if isinstance(term, KernelTerm):
                    triangle = pivot_triangle(term.kernel, term.pivots, workers)
                    self._terms.append((term, Pivots(term.pivots, term.kernel), triangle))
        if not self._terms:
            raise ConfigError(
                "the model has no pivots, which novelty needs: train with a reduced map", settings=["map"]
            )

    def of(self, dataset: Dataset) -> np.ndarray:
        """Return the relative residual of each position, [N] from 0 to 1."""
        out = np.zeros(dataset.positions)
        for term, pivots, triangle in self._terms:
            inputs = self._encoding.inputs(dataset, term.features)
            for rows in ranges(len(inputs), ROWS_AT_ONCE):
                some = inputs.take(rows)
                diagonal, values = term.kernel.diagonal(some), pivots.gram(some)
                left = diagonal.copy()
                for slab in ranges(len(values), SLAB):  # always for the same number of rows at a time
                    phi = linear_algebra.solve_triangular(
                        triangle, padded(values[slab]).T, lower=True, check_finite=False
                    )  # [M, SLAB]
                    left[slab] -= row_squares(phi.T)[: slab.stop - slab.start]
                # The residual of an input of length zero is 0.
                part = np.divide(left, diagonal, out=np.zeros_like(left), where=diagonal > 0)
                out[rows] = np.maximum(out[rows], np.clip(part, 0.0, 1.0))
        return out
