"""A device: a place for arrays, and all that training may ask to be done there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..chains import Edges, Problem
from ..kernels import Inputs, Kernel
from ..maps import FeatureMap
from ..objective import ObjectiveTerm
from ..system import DOUBLE, Array, Workers, ranges
from .device_engine import DeviceEngine
from .device_maps import BlockMaker, map_on
from .device_pivots import DeviceSource
from .kernel_blocks import DeviceKernel, laid_out
from .place import ArrayPlace

ROWS_AT_ONCE = 4096


class Scorer:
    """Pivots and their dual coefficients, for inputs that come later."""

    def __init__(
        self, pivots: Inputs, form: DeviceKernel[Any, Any], alpha: np.ndarray, dtype: np.dtype, place: ArrayPlace
    ):
        self._place, self._form = place, form
        with place.watched():
            self._frame = form.frame(pivots)
            self._pivots, self._alpha = form.pivots(pivots, self._frame), place.backend.array(alpha, dtype)

    def scores(self, inputs: Inputs) -> np.ndarray:
        """k(x, B) alpha of inputs x, [n, C]."""
        with self._place.watched():
            rows = self._form.rows(inputs, self._frame)
            parts = ranges(len(inputs), ROWS_AT_ONCE)
            found = [self._form.block(rows, part, self._pivots) @ self._alpha for part in parts]
            return np.concatenate([self._place.backend.numpy(each) for each in found])


class Device(ArrayPlace):
    """Where training does its arithmetic."""

    def engine(
        self,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
    ) -> DeviceEngine:
        """P of these terms there."""
        with self.watched():
            return DeviceEngine(problem, terms, workers, self, dtype, forbidden)

    # ------------------------------------------------------------------------- pivots and kernel values

    def source(self, inputs: Inputs, kernel: Kernel, workers: Workers, dtype: np.dtype) -> DeviceSource | None:
        """Return kernel values that pivots are chosen with; None for a kernel that it does not know."""
        form, exact = (laid_out(kernel, each, self.backend) for each in (dtype, DOUBLE))
        return None if form is None or exact is None else DeviceSource(inputs, kernel, workers, self, form, exact)

    def triangle(self, kernel: Kernel, pivots: Inputs) -> np.ndarray | None:
        """Return L [M, M] of pivots, which stays there, too; None for an unknown kernel, or where it finds none."""
        form = laid_out(kernel, DOUBLE, self.backend)
        if form is None:
            return None
        with self.watched():
            frame = form.frame(pivots)
            K = form.block(form.rows(pivots, frame), slice(None), form.pivots(pivots, frame))
            factor = self.backend.cholesky(K) if bool((abs(K) < np.inf).all()) else None
            if factor is None:
                return None
            here = self.backend.numpy(factor)
        self.remember(here, factor)
        return here

    def row_squares(
        self, kernel: Kernel, inputs: Inputs, pivots: Inputs, inverse: np.ndarray, dtype: np.dtype
    ) -> np.ndarray:
        """Return |k(x, B) L^-T|^2 of inputs x and pivots B, for L^-T [M, M], [N]."""
        maker, there = BlockMaker(inputs, kernel, pivots, dtype, self), self.backend.array(inverse, dtype)
        found = [np.empty(0)]
        for part in ranges(len(inputs), ROWS_AT_ONCE):
            phi = self.backend.cast(maker.block(part) @ there, DOUBLE)
            found.append(self.backend.numpy((phi * phi).sum(1)))
        return np.concatenate(found)

    def scorer(self, pivots: Inputs, kernel: Kernel, alpha: np.ndarray, dtype: np.dtype | type) -> Scorer | None:
        """What scores new inputs by k(x, B) alpha; None for a kernel that it does not know."""
        form = laid_out(kernel, np.dtype(dtype), self.backend)
        return None if form is None else Scorer(pivots, form, alpha, np.dtype(dtype), self)

    # ------------------------------------------------------------------------- certificates

    def quadratic_form(self, kernel: Kernel, inputs: Inputs, m: np.ndarray) -> float | None:
        """sum_{t,t'} <m_t, m_t'> k(x_t, x_t') for m [N, C], in double precision; None for another kernel."""
        form = laid_out(kernel, DOUBLE, self.backend)
        if form is None:
            return None
        with self.watched():
            return _quadratic_form(form, inputs, self.backend.array(m, DOUBLE))

    def adjoint(self, feature_map: FeatureMap, errors: np.ndarray) -> np.ndarray:
        """Phi^T m [D, C] of a map and errors m [N, C], products in the precision of these."""
        with self.watched():
            found = map_on(self, feature_map, errors.dtype).adjoint(self.backend.array(errors, DOUBLE))
            return self.backend.numpy(found)


def _quadratic_form(form: DeviceKernel[Any, Any], inputs: Inputs, m: Array) -> float:
    frame, parts, total = form.frame(inputs), ranges(len(inputs), ROWS_AT_ONCE), 0.0
    rows = form.rows(inputs, frame)
    for number, columns in enumerate(parts):
        own = form.pivots(inputs.take(columns), frame)
        for part in parts[number:]:
            value = (m[part] * (form.block(rows, part, own) @ m[columns])).sum()
            total = total + (value if part == columns else 2 * value)  # the kernel matrix is symmetric
    return float(total)
