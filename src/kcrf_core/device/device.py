"""A device: a place for arrays, and the computations of training that are done there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..chains import Edges, Problem
from ..kernels import Inputs, Kernel
from ..maps import Candidates, FeatureMap, KernelSource
from ..objective import Engine, ObjectiveTerm
from ..system import DOUBLE, Array, Workers, ranges
from .device_engine import DeviceEngine, DevicePartition
from .device_maps import ArrayPlace, BlockMaker, map_on
from .kernel_blocks import DeviceKernel, laid_out

ROWS_AT_ONCE = 4096
BLOCKS_OF_A_GROUP = 16  # of pivots
EVERY = slice(None)


class DeviceSource(KernelSource):
    """Kernel values of inputs that are laid out on a device."""

    rows_at_once = 1 << 14

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        workers: Workers,
        place: ArrayPlace,
        form: DeviceKernel[Any, Any],  # in the precision of G
        exact: DeviceKernel[Any, Any],  # in double precision
    ):
        super().__init__(inputs, kernel, workers)
        self.backend, self.memory, self._form, self._exact = place.backend, place.memory, form, exact
        self._frame = form.frame(inputs)
        self._rows = form.side(inputs, self._frame)
        # Rows of pivots in double precision: in groups, and those since as they were added.
        self._groups: list[Any] = []
        self._newest: list[Any] = []
        self._grouped = self._laid = 0

    def values(self, rows: np.ndarray) -> Callable[[slice], Array]:
        pivots = self._form.side(self.inputs.take(rows), self._frame, pivots=True)
        return lambda part: self._form.block(self._rows, part, pivots)

    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: Array) -> Candidates:
        part, backend = self.inputs.take(rows), self.backend
        own = self._exact.side(part, self._frame, pivots=True)
        left = self._exact.block(self._exact.side(part, self._frame), EVERY, own)
        if not len(chosen):
            return Candidates(rows, backend.zeros((len(rows), 0)), np.array(backend.numpy(left)))
        blocks = [self._exact.block(each, EVERY, own) for each in self._laid_out(chosen)]
        mine = backend.solve_lower(triangle, backend.xp.concatenate(blocks))  # [m, c]
        left = left - mine.T @ mine
        return Candidates(rows, mine.T, np.array(backend.numpy(left)))

    def _laid_out(self, chosen: Sequence[int]) -> list[Any]:
        """Lay new pivots out, for blocks with them; many small blocks take longer than a few large ones."""
        if len(chosen) > self._laid:
            self._newest.append(self._rows_at(chosen[self._laid :]))
            self._laid = len(chosen)
        if len(self._newest) == BLOCKS_OF_A_GROUP:
            self._groups.append(self._rows_at(chosen[self._grouped :]))
            self._newest, self._grouped = [], len(chosen)
        return [*self._groups, *self._newest]

    def _rows_at(self, positions: Sequence[int]) -> Any:
        return self._exact.side(self.inputs.take(np.array(positions, dtype=np.int64)), self._frame)

    def independent(self, rows: np.ndarray, floor: float) -> np.ndarray:
        part = self.inputs.take(rows)
        own = self._exact.side(part, self._frame, pivots=True)
        factor = self.backend.cholesky(self._exact.block(self._exact.side(part, self._frame), EVERY, own))
        if factor is not None and (np.diagonal(self.backend.numpy(factor)) ** 2 > floor).all():
            return np.arange(len(rows))
        return super().independent(rows, floor)


class Scorer:
    """Pivots and their dual coefficients, for inputs that come later."""

    def __init__(
        self, pivots: Inputs, form: DeviceKernel[Any, Any], alpha: np.ndarray, dtype: np.dtype, place: ArrayPlace
    ):
        self._place, self._form = place, form
        with place.watched():
            self._frame = form.frame(pivots)
            self._pivots = form.side(pivots, self._frame, pivots=True)
            self._alpha = place.backend.array(alpha, dtype)

    def scores(self, inputs: Inputs) -> np.ndarray:
        """Return k(x, B) alpha of inputs x, [n, C]."""
        with self._place.watched():
            rows = self._form.side(inputs, self._frame)
            parts = ranges(len(inputs), ROWS_AT_ONCE)
            found = [self._form.block(rows, part, self._pivots) @ self._alpha for part in parts]
            return np.concatenate([self._place.backend.numpy(each) for each in found])


class Device(ArrayPlace):
    """A device that computes for training."""

    def engine(
        self,
        problem: Problem,
        terms: Sequence[ObjectiveTerm],
        workers: Workers,
        dtype: np.dtype | type = np.float64,
        forbidden: Edges | None = None,
    ) -> Engine:
        """Return an engine for P of these terms there."""
        with self.watched():
            return DeviceEngine.of(DevicePartition(problem, terms, workers, self, dtype, forbidden))

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
            K = form.block(form.side(pivots, frame), EVERY, form.side(pivots, frame, pivots=True))
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
        """Return what scores new inputs by k(x, B) alpha; None for a kernel that it does not know."""
        form = laid_out(kernel, np.dtype(dtype), self.backend)
        return None if form is None else Scorer(pivots, form, alpha, np.dtype(dtype), self)

    def quadratic_form(self, kernel: Kernel, inputs: Inputs, m: np.ndarray) -> float | None:
        """Return sum_{t,t'} <m_t, m_t'> k(x_t, x_t') for m [N, C], in double precision; None for an unknown kernel."""
        form = laid_out(kernel, DOUBLE, self.backend)
        if form is None:
            return None
        with self.watched():
            there, parts, total = self.backend.array(m, DOUBLE), ranges(len(inputs), ROWS_AT_ONCE), 0.0
            frame = form.frame(inputs)
            rows = form.side(inputs, frame)
            for number, columns in enumerate(parts):
                own = form.side(inputs.take(columns), frame, pivots=True)
                for part in parts[number:]:
                    value = (there[part] * (form.block(rows, part, own) @ there[columns])).sum()
                    total = total + (value if part == columns else 2 * value)  # the kernel matrix is symmetric
            return float(total)

    def adjoint(self, feature_map: FeatureMap, errors: np.ndarray) -> np.ndarray:
        """Return Phi^T m [D, C] of a map and errors m [N, C], products in the precision of these."""
        with self.watched():
            found = map_on(self, feature_map, errors.dtype).adjoint(self.backend.array(errors, DOUBLE))
            return self.backend.numpy(found)
