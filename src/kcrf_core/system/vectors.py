"""Long vectors in slices: millions of parameters, worked on by threads while a slice is in cache.

Slices depend on the data alone and sums over them are taken in their order, so that results are the same for any number
of threads. A slice never crosses the border of a block.

Large arrays that are used again once nobody holds them.

Fresh memory is handed out page by page by the system, and for vectors of millions of parameters that costs more than
what is done with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from .threads import Workers, ranges

LEAST_BYTES = 1 << 20  # smaller ones come from memory that the process has already


def _references(buffers: list[np.ndarray], number: int) -> int:
    return sys.getrefcount(buffers[number])


def _references_held_by_nobody() -> int:
    """What an array counts that only its list holds: interpreters differ. Zero where nothing can be counted."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return _references([np.empty(0)], 0) if gil and hasattr(sys, "getrefcount") else 0


HELD_BY_NOBODY = _references_held_by_nobody()


class Buffers:
    """A store of arrays. Every view of an array holds it, so none is handed out while a part of it is in use."""

    def __init__(self) -> None:
        self._held: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...] | int, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """Like np.empty."""
        size, dtype = int(np.prod(shape)), np.dtype(dtype)
        if size * dtype.itemsize < LEAST_BYTES or not HELD_BY_NOBODY:
            return np.empty(shape, dtype=dtype)
        for number in range(len(self._held)):
            fits = self._held[number].size == size and self._held[number].dtype == dtype
            if fits and _references(self._held, number) <= HELD_BY_NOBODY:
                return self._held[number].reshape(shape)
        fresh = np.empty(size, dtype=dtype)
        self._held.append(fresh)
        return fresh.reshape(shape)


SLICE = 1 << 15  # values: a dozen slices of as many vectors stay in cache
FEWEST_SLICES = 4  # fewer are not worth a thread
SLICES_PER_TASK = 8  # to hand a task to a thread takes as long as to work on a slice


class Slices:
    """How the vectors of one problem are cut."""

    def __init__(self, blocks: Sequence[slice], workers: Workers):
        self._workers, self.buffers = workers, Buffers()
        self.size = max((block.stop for block in blocks), default=0)
        # With the number of its block each.
        self.parts = [
            (slice(block.start + part.start, block.start + part.stop), number)
            for number, block in enumerate(blocks)
            for part in ranges(block.stop - block.start, SLICE)
        ]
        self._tasks = [self.parts[some] for some in ranges(len(self.parts), SLICES_PER_TASK)]

    def run(self, work: Callable[[slice], object]) -> None:
        """`work` on every slice, for its effects."""
        for _ in self._each(lambda part: work(part[0])):
            pass

    def total(self, work: Callable[[slice], np.ndarray | float]) -> np.ndarray | float:
        """What `work` makes of the slices, summed in double precision."""
        return self.total_of_blocks(lambda part, _: work(part))

    def total_of_blocks(self, work: Callable[[slice, int], np.ndarray | float]) -> np.ndarray | float:
        """The same, with the number of the slice's block."""
        total = 0.0
        for part in self._each(lambda part: work(*part)):
            total = total + np.asarray(part, dtype=np.float64)
        return total

    def _each(self, work: Callable[[tuple[slice, int]], object]) -> Iterator:
        if self.size < FEWEST_SLICES * SLICE:
            return map(work, self.parts)
        return chain.from_iterable(self._workers.map(lambda some: [work(part) for part in some], self._tasks))

    def empty(self, dtype: np.dtype | type = np.float64) -> np.ndarray:
        """A vector whose values are not set."""
        return self.buffers.empty(self.size, dtype)

    def dot(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(self.total(lambda part: float(a[part] @ b[part])))

    def stepped(self, start: np.ndarray, step: float, direction: np.ndarray) -> np.ndarray:
        """start + step * direction, in double precision."""
        out = self.empty()

        def work(part: slice) -> None:
            np.multiply(direction[part], step, out=out[part], dtype=np.float64)
            out[part] += start[part]

        self.run(work)
        return out
