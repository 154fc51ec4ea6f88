"""Tasks on several processes; an error names the task of a process that died."""

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


class TaskFailed(Exception):
    """An error in a worker, and its task."""

    def __init__(self, task: Any, error: Exception):
        super().__init__(task, error)
        self.task, self.error = task, error


class Processes:
    """Up to `count` processes that call `work`, which is sent to each of them once, for every task.

    They are spawned, not forked: a fork of a process with BLAS threads may hang. Ctrl-C is for the parent alone.
    """

    def __init__(self, count: int, work: Callable[[Any], Any]):
        self._count, self._work = count, work
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
        """Yield each task with its result, as they come; the first failure ends it."""
        waiting = deque(tasks)
        while len(self._workers) < min(self._count, len(waiting)):
            self._start()
        busy: dict[Connection, Item] = {}

        def give(connection: Connection) -> None:
            if waiting:
                busy[connection] = waiting.popleft()
                with contextlib.suppress(OSError):  # it is dead, which `recv` will find
                    connection.send(busy[connection])

        for connection in self._workers:
            give(connection)
        while busy:
            for connection in cast("list[Connection]", wait(list(busy))):  # those of Windows are of another class
                task = busy.pop(connection)
                try:
                    good, result = connection.recv()
                except (EOFError, OSError):  # it ended without an answer
                    process = self._workers.pop(connection)
                    process.join()
                    connection.close()
                    code = process.exitcode or 0
                    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {process.exitcode}"
                    message = f"its process {how}, perhaps for lack of memory: try fewer jobs at a time"
                    good, result = False, KcrfError(message, settings=["jobs"])
                if not good:
                    raise TaskFailed(task, result)
                give(connection)
                yield task, result

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        # A blocked signal stays blocked in what is started: no moment is left in which Ctrl-C could reach a worker.
        with _without_interrupts():
            process.start()
            self._workers[ours] = process
        theirs.close()


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


def _serve(connection: Connection, work: Callable[[Any], Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):  # the parent is gone: so is the reason to work
        while True:
            task = connection.recv()
            outcome: tuple[bool, Any]
            try:
                outcome = True, work(task)
            except (KcrfError, OSError, MemoryError) as error:
                outcome = False, error
            except Exception:  # a bug: its traceback would end at the pipe
                outcome = False, RuntimeError(traceback.format_exc())
            connection.send(outcome)
