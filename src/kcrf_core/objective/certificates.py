"""What P could still lose outside the span of the pivots (Corollary 10).

Leaving the span gains at most (sigma^2 / 2) |g_perp|^2, the part of the gradient that no pivot reaches:

    |g_perp|^2 = sum_{t,t'} <m_t, m_t'> r(x_t, x_t'),    m_t = p_t - e_{y_t},   r = k - <Phi, Phi>

`bound` computes it exactly, by a blocked pass over all N^2 kernel values. `inside` is the part that pivots or explicit
features do reach: the bound for a term that has no weights yet. `estimate` takes the diagonal of r alone: it is free
once the residuals d_t = r(x_t, x_t) are known, was within a few per cent on OCR, and proves nothing.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Inputs, Kernel, Pivots
from ..maps import FeatureMap
from ..system import Workers, ranges

BLOCK = 2048


def estimate(errors: np.ndarray, feature_map: FeatureMap, sigma2: float, workers: Workers) -> float:
    """(sigma^2 / 2) sum_t d_t |m_t|^2, for errors m [N, C]."""
    residual = feature_map.residual(workers)
    if residual is None:
        return 0.0
    return float(sigma2 / 2 * (residual @ np.square(errors, dtype=np.float64).sum(axis=1)))


def bound(
    errors: np.ndarray, feature_map: FeatureMap, inputs: Inputs, kernel: Kernel, sigma2: float, workers: Workers
) -> float:
    """(sigma^2 / 2) |g_perp|^2, for errors m [N, C], in double precision."""
    m = errors.astype(np.float64)
    parts = ranges(len(inputs), BLOCK)
    whole = 0.0
    for number, columns in enumerate(parts):
        pivots = Pivots(inputs.take(columns), kernel)

        def task(rows: slice, pivots: Pivots = pivots, columns: slice = columns) -> float:
            value = float(np.sum(m[rows] * (pivots.gram(inputs.take(rows)) @ m[columns])))
            return value if rows == columns else 2 * value  # the kernel matrix is symmetric

        whole += sum(workers.map(task, parts[number:]))
    return max(sigma2 / 2 * whole - inside(m, feature_map, sigma2, workers), 0.0)


def inside(errors: np.ndarray, feature_map: FeatureMap, sigma2: float, workers: Workers) -> float:
    """(sigma^2 / 2) |Phi^T m|^2: what a term that is not there could gain by its map."""
    found = gradient(errors, feature_map, workers)
    return float(sigma2 / 2 * np.sum(found * found))


def gradient(errors: np.ndarray, feature_map: FeatureMap, workers: Workers) -> np.ndarray:
    """Phi^T m [D, C], summed in double precision; products in that of m."""
    summed: np.ndarray | None = None
    for part in workers.map(lambda rows: feature_map.adjoint_rows(errors[rows], rows), ranges(len(errors), BLOCK)):
        if part is not None:
            summed = part.astype(np.float64) if summed is None else summed + part
    return feature_map.adjoint(summed, errors, workers)
