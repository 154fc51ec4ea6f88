"""A device: a place for arrays, and all that training may ask to be done there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..chains import Edges, Problem
from ..objective import ObjectiveTerm
from ..system import Workers
from .device_engine import DeviceEngine
from .place import ArrayPlace


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
