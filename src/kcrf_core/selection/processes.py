"""Tasks on several processes, each of which tells which task it was at when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from ..errors import KcrfError

Item = TypeVar("Item")


class ProcessDied(KcrfError):
    """A worker ended without an answer."""


class TaskFailed(Exception):
    """What went wrong in a worker, and at which task."""

    def __init__(self, task: Any, error: Exception):
        super().__init__(task, error)
        self.task, self.error = task, error


class Processes:
    """Up to `count` processes that each call `make(*arguments)` once and then the function it gives for every task.

    They are spawned, not forked: a fork of a process with BLAS threads may hang. Ctrl-C is for the parent alone.
    """

    def __init__(self, count: int, make: Callable[..., Callable[[Any], Any]], *arguments: Any):
        self._count, self._make, self._arguments = count, make, arguments
        self._workers: dict[Connection, BaseProcess] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._workers.values():  # nothing to do for them any more, or too late
            process.terminate()
        for connection, process in self._workers.items():
            process.join()
            connection.close()
        self._workers = {}

    def results(self, tasks: Sequence[Item]) -> Iterator[tuple[Item, Any]]:
        """Each task with its result, as they come; the first failure ends it."""
        waiting = deque(tasks)
        while len(self._workers) < min(self._count, len(waiting)):
            self._start()
        busy: dict[Connection, Item] = {}
        for connection in self._workers:
            if waiting:
                self._give(connection, waiting.popleft(), busy)
        while busy:
            for connection in cast("list[Connection]", wait(list(busy))):  # those of Windows are of another class
                task = busy.pop(connection)
                good, result = self._take(connection, task)
                if not good:
                    raise TaskFailed(task, result)
                if waiting:
                    self._give(connection, waiting.popleft(), busy)
                yield task, result

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._make, self._arguments), daemon=True)
        # A blocked signal stays blocked in what is started: no moment is left in which Ctrl-C could reach a worker.
        with _without_interrupts():
            process.start()
            self._workers[ours] = process
        theirs.close()

    def _give(self, connection: Connection, task: Item, busy: dict[Connection, Item]) -> None:
        busy[connection] = task
        with contextlib.suppress(OSError):  # it is dead, which `_take` will tell
            connection.send(task)

    def _take(self, connection: Connection, task: Item) -> tuple[bool, Any]:
        try:
            return connection.recv()
        except (EOFError, OSError):
            process = self._workers.pop(connection)
            process.join()
            connection.close()
            code = process.exitcode
            how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
            return False, ProcessDied(
                f"its process {how}, perhaps for lack of memory: try fewer jobs at a time", settings=["jobs"]
            )


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Put off Ctrl-C until the end of the block, and keep it for good from processes started inside."""
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    from multiprocessing import resource_tracker  # POSIX only, like signal masks

    resource_tracker.ensure_running()  # it would be started with the first process, and unblock the signal
    came: list[int] = []
    # What is blocked here is blocked in new processes. In this one another thread may still catch it, and SIGTERM,
    # which ends them, cannot be blocked: hence the handlers.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, lambda number, frame: came.append(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if came:
        signal.raise_signal(came[0])


def _serve(connection: Connection, make: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work = make(*arguments)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so is the reason to work
        while True:
            task = connection.recv()
            connection.send(_outcome(work, task))


def _outcome(work: Callable[[Any], Any], task: Any) -> tuple[bool, Any]:
    try:
        return True, work(task)
    except (KcrfError, OSError, MemoryError) as error:
        return False, error
    except Exception:  # a bug: its traceback would end at the pipe
        return False, RuntimeError(traceback.format_exc())
