"""Bounds on what P could still lose outside the span of the pivots (Corollary 10): (sigma^2 / 2) |g_perp|^2.

    |g_perp|^2 = sum_{t,t'} <m_t, m_t'> r(x_t, x_t'),    m_t = p_t - e_{y_t},   r = k - <Phi, Phi>

`bound` computes it exactly, by a blocked pass over all N^2 kernel values. `inside` is the part that pivots or explicit
features do reach: the bound for a term that has no weights yet. `estimate` takes the diagonal of r alone: it is free
once the residuals d_t = r(x_t, x_t) are known, was within a few per cent on OCR, and proves nothing.
"""

from __future__ import annotations

import numpy as np

from ..kernels import Inputs, Kernel, Pivots
from ..maps import Evaluated, FeatureMap, summation_error, sums_of_rows
from ..system import Workers, ranges

BLOCK = 2048


def estimate(errors: np.ndarray, feature_map: FeatureMap, sigma2: float, workers: Workers) -> float:
    """Return (sigma^2 / 2) sum_t d_t |m_t|^2, for errors m [N, C]."""
    residual = feature_map.residual(workers)
    if residual is None:
        return 0.0
    return float(sigma2 / 2 * (residual @ np.square(errors, dtype=np.float64).sum(axis=1)))


def bound(
    errors: np.ndarray, feature_map: FeatureMap, inputs: Inputs, kernel: Kernel, sigma2: float, workers: Workers
) -> float:
    """Return (sigma^2 / 2) |g_perp|^2, for errors m [N, C], in double precision, with the rounding error added."""
    m, feature_map = errors.astype(np.float64), feature_map.in_double(held=False)
    whole = None if workers.device is None else workers.device.quadratic_form(kernel, inputs, m)
    whole = _quadratic_form(kernel, inputs, m, workers) if whole is None else whole
    lengths = np.linalg.norm(m, axis=1)
    extent = feature_map.extent(feature_map.head.scale)
    about = Evaluated(float(lengths.sum()), len(m), extent, lambda gram: feature_map.outside_roots(gram, m))
    rounding = feature_map.head.rounding(np.zeros((feature_map.size, m.shape[1])), about)
    reached = max(float(np.linalg.norm(gradient(m, feature_map, workers))) - rounding.gradient, 0.0) ** 2
    size = float(np.sqrt(kernel.diagonal(inputs)) @ lengths) ** 2
    value_error = float(kernel.value_errors(inputs, inputs).max(initial=0.0))
    whole += size * (summation_error(len(m)) + value_error)
    return max(float(sigma2 / 2 * (whole - reached * max(1 - rounding.factor, 0.0))), 0.0)


def _quadratic_form(kernel: Kernel, inputs: Inputs, m: np.ndarray, workers: Workers) -> float:
    """Return sum_{t,t'} <m_t, m_t'> k(x_t, x_t')."""
    parts = ranges(len(inputs), BLOCK)
    whole = 0.0
    for number, columns in enumerate(parts):
        pivots = Pivots(inputs.take(columns), kernel)

        def task(rows: slice, pivots: Pivots = pivots, columns: slice = columns) -> float:
            value = float(np.sum(m[rows] * (pivots.gram(inputs.take(rows)) @ m[columns])))
            return value if rows == columns else 2 * value  # the kernel matrix is symmetric

        whole += float(np.sum(list(workers.map(task, parts[number:]))))
    return whole


def inside(errors: np.ndarray, feature_map: FeatureMap, sigma2: float, workers: Workers) -> float:
    """Return (sigma^2 / 2) |Phi^T m|^2, a bound on the gain of a term that is not there."""
    found = gradient(errors, feature_map, workers)
    return float(sigma2 / 2 * np.sum(found * found))


def gradient(errors: np.ndarray, feature_map: FeatureMap, workers: Workers) -> np.ndarray:
    """Return Phi^T m [D, C], summed in double precision; products in that of m."""
    if workers.device is not None:
        return workers.device.adjoint(feature_map, errors)
    found = feature_map.adjoint(sums_of_rows(feature_map, errors, workers), errors, workers, None, None)
    assert isinstance(found, np.ndarray)
    return found
