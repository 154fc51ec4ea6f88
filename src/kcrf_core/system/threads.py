"""What a run may use: threads over chunks of work, with results in the order of the chunks, and memory.

Whole sequences are grouped into chunks whose boundaries depend on the data alone; each chunk is one task
on a Python thread with one BLAS thread inside it, and results are taken up in chunk order. So the sums,
and the bytes of a model, are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from .memory import Budget

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


class Workers:
    """A pool of threads and the memory they may fill. As a context manager it holds BLAS to one thread per task.

    >>> from kcrf_core import Workers
    >>> with Workers(threads=2) as workers:
    ...     list(workers.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(self, threads: int | None = None, memory: int | None = None):
        self.threads = threads or available_threads()
        self.memory = Budget(memory)
        self._pool: ThreadPoolExecutor | None = None
        self._limits = None

    def __enter__(self) -> Workers:
        self._limits = threadpool_limits(1)
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._limits.restore_original_limits()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `function` in the order of `items`, a bounded number of them ahead of the consumer."""
        if self._pool is None:
            yield from map(function, items)
            return
        waiting: deque = deque()
        try:
            for item in items:
                waiting.append(self._pool.submit(function, item))
                if len(waiting) > 2 * self.threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def run(self, function: Callable[[Item], object], items: Iterable[Item]) -> None:
        """`function` over all items, for its effects."""
        for _ in self.map(function, items):
            pass


def ranges(total: int, size: int) -> list[slice]:
    """0..total in slices of `size`."""
    return [slice(first, min(first + size, total)) for first in range(0, total, size)]


def sequence_chunks(offsets: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Runs of whole sequences (first, last) with about `size` positions each."""
    chunks, first, sequences = [], 0, len(offsets) - 1
    while first < sequences:
        # At least one sequence, and no more than fit: a long sequence is a chunk of its own.
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), sequences)
        chunks.append((first, last))
        first = last
    return chunks
