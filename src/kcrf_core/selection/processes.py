"""Tasks on several processes.

Processes are spawned, not forked: a fork of a process with BLAS threads may hang. Ctrl-C is for the parent alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

from ..system import PLUGINS, Plugin

Item = TypeVar("Item")

_work: Callable[[Any], Any]  # of a process


@contextlib.contextmanager
def process_pool(count: int, work: Callable[[Any], Any]) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of up to `count` processes that get `work` once; an error in the block ends them at once."""
    before = set(multiprocessing.active_children())
    # Plug-ins come first: they are loaded where they are unpickled.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin, ([*PLUGINS.values()], work))
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def submit(pool: ProcessPoolExecutor, tasks: Sequence[Item]) -> dict[Future[Any], Item]:
    """Give tasks to a pool, and return them by their futures."""
    # A blocked signal stays blocked in processes that are started: Ctrl-C never reaches them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        return {pool.submit(_work_on, task): task for task in tasks}
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(plugins: Sequence[Plugin], work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process once its parent is gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work_on(task: Any) -> Any:
    return _work(task)
