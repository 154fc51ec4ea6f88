"""Kernel values on a device for the choice of pivots: G and all products of `maps.Factorisation` are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..kernels import Inputs, Kernel
from ..maps import Candidates, KernelSource
from ..system import Array, Workers
from .kernel_blocks import DeviceKernel
from .place import ArrayPlace

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
        self._rows = form.rows(inputs, self._frame)
        # Rows of pivots in double precision: in groups, and those since as they were added.
        self._groups: list[Any] = []
        self._newest: list[Any] = []
        self._grouped = self._laid = 0

    def values(self, rows: np.ndarray) -> Callable[[slice], Array]:
        pivots = self._form.pivots(self.inputs.take(rows), self._frame)
        return lambda part: self._form.block(self._rows, part, pivots)

    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: Array) -> Candidates:
        part, backend = self.inputs.take(rows), self.backend
        own = self._exact.pivots(part, self._frame)
        left = self._exact.block(self._exact.rows(part, self._frame), EVERY, own)
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
        return self._exact.rows(self.inputs.take(np.array(positions, dtype=np.int64)), self._frame)

    def independent(self, rows: np.ndarray, floor: float) -> np.ndarray:
        part = self.inputs.take(rows)
        own = self._exact.pivots(part, self._frame)
        factor = self.backend.cholesky(self._exact.block(self._exact.rows(part, self._frame), EVERY, own))
        if factor is not None and (np.diagonal(self.backend.numpy(factor)) ** 2 > floor).all():
            return np.arange(len(rows))
        return super().independent(rows, floor)
