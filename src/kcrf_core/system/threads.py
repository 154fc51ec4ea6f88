"""What a run may use: threads over chunks of work, with results in the order of the chunks, and memory.

Whole sequences are grouped into chunks whose boundaries depend on the data alone; each chunk is one task
on a Python thread with one BLAS thread inside it, and results are taken up in chunk order. So the sums,
and the bytes of a model, are the same for any number of threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .memory import Budget

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


class _OneBlasThread:
    """Holds every BLAS of this process to one thread for as long as anybody in it asks for that.

    How many threads BLAS uses is a matter of the whole process: of several that overlap the first to come sets the
    limit and the last to go lifts it, or one would lift it while another is at work, and the other would then "restore"
    one thread for ever. Libraries are searched for again only when modules have been imported since, which may have
    brought another BLAS (SciPy has its own): that takes longer than labelling a sentence does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._modules = -1  # imported when libraries were last searched for
        self._libraries: list[Any] = []
        self._before: list[tuple[Any, int]] = []  # limited libraries, and the threads they had

    def __enter__(self) -> None:
        with self._lock:
            if len(sys.modules) != self._modules:
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
                self._modules = len(sys.modules)
            for library in self._libraries:
                threads = library.get_num_threads()
                if threads is not None and threads > 1:
                    self._before.append((library, threads))
                    _set_threads(library, 1)
            self._holders += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                while self._before:
                    library, threads = self._before.pop()
                    _set_threads(library, threads)
                    _release(library)


def _set_threads(library: Any, threads: int) -> None:
    _release(library)
    library.set_num_threads(threads)


def _release(library: Any) -> None:
    """Let this thread set a limit: later versions of threadpoolctl let only that one which was the first to set one."""
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


_ONE_BLAS_THREAD = _OneBlasThread()


class _Helpers:
    """Threads that wait for calls, without what it takes to know the state of each."""

    def __init__(self, count: int):
        self._calls: SimpleQueue = SimpleQueue()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # it refers to what the items are worked on with

    def share(self, function: Callable[[Item], object], items: Collection[Item]) -> None:
        left, ended = deque(items), SimpleQueue()

        def work() -> None:
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread was faster
                    return
                error = None
                try:
                    function(item)
                except BaseException as raised:
                    error = raised
                ended.put(error)

        for _ in range(min(len(self._threads), len(items) - 1)):
            self._calls.put(work)
        work()
        # Of items, not of helpers: one that has not come to its call yet will find nothing left to do.
        errors = [ended.get() for _ in items]
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()


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
        self._helpers: _Helpers | None = None

    def __enter__(self) -> Workers:
        _ONE_BLAS_THREAD.__enter__()
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._helpers is not None:
            self._helpers.close()
            self._helpers = None
        _ONE_BLAS_THREAD.__exit__()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Results of `function` in the order of `items`, a bounded number of them ahead of the consumer."""
        # One item is done sooner than another thread can be asked to do it.
        if self._pool is None or (isinstance(items, Sized) and len(items) == 1):
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

    def share(self, function: Callable[[Item], object], items: Collection[Item]) -> None:
        """The same for a few items that take well under a millisecond each, mostly without the interpreter's lock.

        The calling thread works too, and with 16 threads it takes 30 microseconds to hand the items out; `run` takes
        200.
        """
        if self._pool is None or len(items) <= 1:
            for item in items:
                function(item)
            return
        if self._helpers is None:
            self._helpers = _Helpers(self.threads - 1)
        self._helpers.share(function, items)


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
