"""Sources of kernel values for a factorisation: threads of this process, or a device beside them.

A source works on arrays of its backend. `DeviceWorkers` are threads with a device, which takes over kernel values and
products with maps from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from ..kernels import Inputs, Kernel, Pivots, gram
from ..system import Array, Backend, Budget, Workers, in_place, ranges
from .feature_map import FeatureMap
from .triangles import ROWS_AT_ONCE, factorise, square_gram

ROWS_PER_TASK = 1024
CANDIDATES_PER_TASK = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Candidates:
    """Positions that may become pivots, and how they stand to the pivots there are."""

    rows: np.ndarray  # [c] positions
    mine: Array  # [c, m] float64, their rows of G
    left: np.ndarray  # [c, c] float64, K - G G^T among them

    def take(self, which: np.ndarray) -> Candidates:
        return Candidates(self.rows[which], self.mine[which], self.left[np.ix_(which, which)])


class KernelSource(ABC):
    """Kernel values of inputs with some of them, in the precision of a factorisation and in double precision."""

    def __init__(self, inputs: Inputs, kernel: Kernel, workers: Workers):
        self.inputs, self.kernel, self.workers = inputs, kernel, workers

    backend: Backend
    memory: Budget  # for rows of G
    rows_at_once: int  # of a task

    def run(self, task: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call a task for its effects."""
        for item in items:
            task(item)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Return results in the order of items."""
        return map(task, items)

    @abstractmethod
    def values(self, rows: np.ndarray) -> Callable[[slice], Array]:
        """Return a function to k(x, x') of a part of the inputs with those at some positions, [n, c]."""

    @abstractmethod
    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: Array) -> Candidates:
        """Return what is left among some positions, for pivots with a triangle L [m, m]; in double precision."""

    def independent(self, rows: np.ndarray, floor: float) -> np.ndarray:
        """Return the numbers of those rows that are no mixture of rows before them."""
        pivots = self.inputs.take(rows)
        K = square_gram(self.kernel, pivots, self.workers)
        if factorise(K, self.workers) and (np.diagonal(K) ** 2 > floor).all():
            return np.arange(len(pivots))
        K = square_gram(self.kernel, pivots, self.workers)
        kept: list[int] = []
        G = np.zeros_like(K)  # [M, kept]
        for i in range(len(K)):
            column = K[:, i] - G[:, : len(kept)] @ G[i, : len(kept)]
            if column[i] > floor:
                G[:, len(kept)] = column / np.sqrt(column[i])
                kept.append(i)
        return np.array(kept, dtype=np.int64)


class ThreadSource(KernelSource):
    """Kernel values by threads of this process."""

    rows_at_once = ROWS_PER_TASK

    def __init__(self, inputs: Inputs, kernel: Kernel, workers: Workers, dtype: np.dtype):
        super().__init__(inputs, kernel, workers)
        self.backend, self.memory, self._dtype = Backend(), workers.memory, dtype

    def run(self, task: Callable[[Item], object], items: Iterable[Item]) -> None:
        self.workers.run(task, items)

    def map(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return self.workers.map(task, items)

    def values(self, rows: np.ndarray) -> Callable[[slice], np.ndarray]:
        pivots = Pivots(self.inputs.take(rows), self.kernel, self._dtype)
        return lambda part: pivots.gram(self.inputs.take(part))

    def candidates(self, rows: np.ndarray, chosen: Sequence[int], triangle: np.ndarray) -> Candidates:
        part, m = self.inputs.take(rows), len(chosen)
        left = gram(self.kernel, part, part)
        mine = np.zeros((len(rows), m))
        if not m:
            return Candidates(rows, mine, left)
        pivots = self.inputs.take(np.array(chosen))

        def substitute(some: slice) -> None:
            cross = gram(self.kernel, pivots, part.take(some))  # [m, n]
            mine[some] = _forward_substituted(triangle, cross).T

        def subtract(some: slice) -> None:
            left[some] -= mine[some] @ mine.T

        parts = ranges(len(rows), CANDIDATES_PER_TASK)
        self.workers.run(substitute, parts)
        self.workers.run(subtract, parts)
        return Candidates(rows, mine, left)


def _forward_substituted(triangle: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Put L^-1 R into the place of R [m, c]; LAPACK would copy an L [m, m] that is part of a larger matrix."""
    for part in ranges(len(right), ROWS_AT_ONCE):
        right[part] -= triangle[part, : part.start] @ right[: part.start]
        in_place.substitute(triangle[part, part], right[part])
    return right


class KernelDevice(Protocol):
    """A device as maps know it. Where it does not know a kernel, threads have to do the work."""

    def source(self, inputs: Inputs, kernel: Kernel, workers: Workers, dtype: np.dtype) -> KernelSource | None:
        """Return kernel values for a factorisation; None for a kernel that it does not know."""

    def triangle(self, kernel: Kernel, pivots: Inputs) -> np.ndarray | None:
        """Return L [M, M] of pivots; None for a kernel that it does not know, or where it finds none."""

    def row_squares(
        self, kernel: Kernel, inputs: Inputs, pivots: Inputs, inverse: np.ndarray, dtype: np.dtype
    ) -> np.ndarray:
        """Return |k(x, B) L^-T|^2 of inputs x and pivots B, for L^-T [M, M], [N]."""

    def quadratic_form(self, kernel: Kernel, inputs: Inputs, m: np.ndarray) -> float | None:
        """Return sum_{t,t'} <m_t, m_t'> k(x_t, x_t') for m [N, C]; None for a kernel that it does not know."""

    def adjoint(self, feature_map: FeatureMap, errors: np.ndarray) -> np.ndarray:
        """Return Phi^T m [D, C] of a map and errors m [N, C], products in the precision of these."""


class DeviceWorkers(Workers):
    """Threads of this process, and a device."""

    def __init__(self, device: KernelDevice, threads: int | None = None, memory: int | None = None):
        super().__init__(threads, memory)
        self.device = device


def kernel_device(workers: Workers) -> KernelDevice | None:
    """Return the device beside threads; None where there is none."""
    return workers.device if isinstance(workers, DeviceWorkers) else None


def kernel_source(inputs: Inputs, kernel: Kernel, workers: Workers, dtype: np.dtype) -> KernelSource:
    """Return kernel values of a device, where there is one that knows the kernel, or of threads."""
    device = kernel_device(workers)
    found = None if device is None else device.source(inputs, kernel, workers, dtype)
    return ThreadSource(inputs, kernel, workers, dtype) if found is None else found
