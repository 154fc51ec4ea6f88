"""Threads over chunks of work, with results in the order of the chunks.

Whole sequences are grouped into chunks whose boundaries depend on the data alone; each chunk is one task on a Python
thread with one BLAS thread inside it, and results are taken in chunk order. So the sums, and the bytes of a model, are
the same for any number of threads.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from enum import Enum
from typing import Any, Final, TypeVar, overload

import numpy as np
from threadpoolctl import ThreadpoolController

from ..errors import ConfigError
from ._row_products import VECTOR_WIDTHS
from .forks import renew_after_fork
from .memory import Budget
from .team import Team


class Pause(Enum):
    """Type of `PAUSE`, an item of `Workers.stream`: the next item may be long in coming."""

    PAUSE = "pause"


PAUSE: Final = Pause.PAUSE

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        return os.cpu_count() or 1


class _OneBlasThread:
    """A limit of one thread for every BLAS of this process, while any thread holds it.

    The limit concerns the whole process: of holders that overlap the first sets it and the last lifts it. Libraries are
    searched for again only after imports, which may have brought another BLAS (SciPy has its own): that takes longer
    than labelling a sentence does.

    No process is forked while a limit is being set, and in the child those threads that are gone hold nothing. If BLAS
    is limited then, the next holder in the child lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._own = threading.local()  # `count`: how often this thread is among the holders
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
                    self._limit(library, 1)
            self._holders += 1
            self._own.count = getattr(self._own, "count", 0) + 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._holders = max(self._holders - 1, 0)
            self._own.count = max(getattr(self._own, "count", 0) - 1, 0)
            while self._before and self._holders == 0:
                library, threads = self._before.pop()
                self._limit(library, threads)
                self._limit(library, None)

    @staticmethod
    def _limit(library: Any, threads: int | None) -> None:
        """Set a limit; later versions of threadpoolctl would allow that only to the first thread that set one."""
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)
        if threads is not None:
            library.set_num_threads(threads)

    def renew(self) -> None:
        self._lock, self._holders = threading.Lock(), getattr(self._own, "count", 0)


ONE_BLAS_THREAD = _OneBlasThread()
renew_after_fork(ONE_BLAS_THREAD)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: ONE_BLAS_THREAD._lock.acquire(), after_in_parent=lambda: ONE_BLAS_THREAD._lock.release()
    )
_ALONE = Team(1)
_HERE = threading.local()  # `in_pool`: True on threads of a pool


def _begin() -> None:
    _HERE.in_pool = True


class Workers:
    """A pool of threads and the memory they may fill. As a context manager it holds BLAS to one thread per task.

    A `device.Device` or an `objective.Executor` may help them.

    >>> from kcrf_core import Workers
    >>> with Workers(threads=2) as workers:
    ...     list(workers.map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def __init__(
        self, threads: int | None = None, memory: int | None = None, *, device: Any = None, executor: Any = None
    ):
        limit = os.environ.get("KCRF_VECTORS")  # the modules in C read it when they are loaded
        if limit and limit not in VECTOR_WIDTHS:
            raise ConfigError(f"KCRF_VECTORS is '{limit}', and must be {', '.join(VECTOR_WIDTHS)} or not set")
        self.threads = threads or available_threads()
        self.memory, self.device, self.executor = Budget(memory), device, executor
        self._pool: ThreadPoolExecutor | None = None
        self._team: Team | None = None
        self._opening = threading.Lock()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start other threads in a process that was forked, where none of these is."""
        self._opening, self._team = threading.Lock(), None
        if self._pool is not None:
            self._pool = ThreadPoolExecutor(self.threads, initializer=_begin)
        self.memory.renew()

    def __enter__(self) -> Workers:
        ONE_BLAS_THREAD.__enter__()
        if self.threads > 1:
            self._pool = ThreadPoolExecutor(self.threads, initializer=_begin)
        return self

    def __exit__(self, *exception: object) -> None:
        pool, team = self._pool, self._team
        self._pool = self._team = None
        # A user may interrupt any of these.
        with ExitStack() as stack:
            stack.callback(ONE_BLAS_THREAD.__exit__)
            if team is not None:
                stack.callback(team.close)
            if pool is not None:
                stack.callback(pool.shutdown, cancel_futures=True)

    @property
    def team(self) -> Team:
        """Threads for work that needs no interpreter; outside of a `with` block there is one."""
        if self._team is None:
            if self._pool is None:
                return _ALONE
            with self._opening:
                if self._team is None:
                    # With fewer cores than threads, one that looks for work would take a core from one that has some.
                    self._team = Team(self.threads, spinning=self.threads <= available_threads())
        return self._team

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield results of `function` in the order of `items`, a bounded number of them ahead of the consumer."""
        yield from map(function, items) if self._works_alone(items) else self.stream(function, items)

    @overload
    def stream(
        self, function: Callable[[Item], Result], items: Iterable[Item], ahead: int | None = None
    ) -> Iterator[Result]: ...
    @overload
    def stream(
        self, function: Callable[[Item], Result], items: Iterable[Item | Pause], ahead: int | None = None
    ) -> Iterator[Result | Pause]: ...
    def stream(
        self, function: Callable[[Item], Result], items: Iterable[Item | Pause], ahead: int | None = None
    ) -> Iterator[Result | Pause]:
        """Yield results like `map`, for items that may be waited for: at a `PAUSE` all results, then the PAUSE itself.

        So stages can follow each other, `function` of each on the same threads, and all requests are answered before
        more is read, also if reading fails. At most `ahead` results wait to be taken.
        """
        ahead = 2 * self.threads if ahead is None else ahead
        waiting: deque[Future[Result]] = deque()
        failure: Exception | None = None
        items = iter(items)
        try:
            while True:
                try:
                    item = next(items)
                except StopIteration:
                    break
                except Exception as error:
                    failure = error
                    break
                if item is PAUSE:
                    while waiting:
                        yield waiting.popleft().result()
                    yield PAUSE
                elif self._pool is None:
                    yield function(item)
                else:
                    waiting.append(self._pool.submit(function, item))
                    if len(waiting) > ahead:
                        yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            if failure is not None:
                raise failure
        finally:
            for future in waiting:
                future.cancel()

    def run(self, function: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call `function` on all items, for its effects. A thread that is done takes the next one itself."""
        if self._works_alone(items):
            for item in items:
                function(item)
            return
        assert self._pool is not None
        source, turn, failures = enumerate(items), threading.Lock(), dict[int, BaseException]()

        def work() -> None:
            nonlocal source
            place = -1
            try:
                while True:
                    with turn:
                        found = next(source, None)
                    if found is None:
                        return
                    place, item = found
                    function(item)
            except BaseException as error:
                source, failures[place] = enumerate(()), error  # no thread takes another one

        threads = min(self.threads, len(items)) if isinstance(items, Sized) else self.threads
        tasks = [self._pool.submit(work) for _ in range(threads)]
        try:
            for task in tasks:
                task.result()
        finally:  # the user may interrupt this
            source = enumerate(())
        if failures:
            raise failures[min(failures)]

    def listed(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return results of `function` in the order of `items`: sooner than `map` where they are many and small."""
        found: list[Any] = [None] * len(items)

        def put(place: int) -> None:
            found[place] = function(items[place])

        self.run(put, range(len(items)))
        return found

    def fold(self, function: Callable[[Item], Result], items: Iterable[Item], take: Callable[[Result], object]) -> None:
        """Call `take` on the results of `function`, one after another in the order of the items."""
        for found in self.map(function, items):
            take(found)

    def _works_alone(self, items: Iterable[Any]) -> bool:
        """Return True where no other thread is to take part.

        One item is done sooner than another thread can be asked to do it. A task must not wait for other tasks.
        """
        alone = isinstance(items, Sized) and len(items) == 1
        return self._pool is None or alone or getattr(_HERE, "in_pool", False)


def ranges(total: int, size: int) -> list[slice]:
    """Return 0..total in slices of `size`."""
    return [slice(first, min(first + size, total)) for first in range(0, total, size)]


def sequence_chunks(offsets: np.ndarray, size: int) -> list[tuple[int, int]]:
    """Return runs of whole sequences (first, last) with about `size` positions each."""
    chunks, first, sequences = [], 0, len(offsets) - 1
    while first < sequences:
        # At least one sequence, and no more than fit: a long sequence is a chunk of its own.
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), sequences)
        chunks.append((first, last))
        first = last
    return chunks
