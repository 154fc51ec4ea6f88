"""Processes that are forked while other threads label: none of them hangs, and they label as their parent does."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import pytest
from threadpoolctl import threadpool_info

from kcrf_core import KernelCRF, Workers
from kcrf_core.corpora.tables import CodedColumn, LateColumn
from kcrf_core.system.threads import ONE_BLAS_THREAD

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]

# Were locks not renewed, a fifth to a half of them would hang: 20 are enough. KCRF_FORKS=200 takes a dozen seconds.
FORKS = int(os.environ.get("KCRF_FORKS", "20"))
PATIENCE = 600.0  # seconds for what takes milliseconds: a fork that waits for ever


def forked(work):
    """The number of a forked process that ends with what `work` returns, a byte."""
    number = os.fork()
    if number == 0:
        code = 255
        with contextlib.suppress(BaseException):
            code = int(work())
        os._exit(code)
    return number


def ended_with(number):
    """The exit code of a process; -1 where it had to be killed."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, status = os.waitpid(number, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(number, signal.SIGKILL)
    os.waitpid(number, 0)
    return -1


def child_says(work):
    return ended_with(forked(work))


@contextlib.contextmanager
def busy(*works):
    """Threads that repeat each of these for as long as the block lasts."""
    ended = threading.Event()

    def repeat(work):
        while not ended.is_set():
            work()

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@contextlib.contextmanager
def held(lock):
    """A lock that another thread holds."""
    taken, ended = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            ended.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def lock_of(thing):
    """The one lock that a thing has."""
    (found,) = (value for value in vars(thing).values() if isinstance(value, type(threading.Lock())))
    return found


def blas_threads():
    return max((own["num_threads"] for own in threadpool_info() if own["user_api"] == "blas"), default=1)


def test_forks_of_a_process_whose_threads_label():
    X = [[[f"w{i % 7}", f"p{i % 3}"] for i in range(j, j + 5)] for j in range(6)]
    crf = KernelCRF(sigma2=1.0, n_jobs=1).fit(X, [["a" if row[1] == "p0" else "b" for row in own] for own in X])
    expected, found = crf.predict(X), []
    with busy(*[lambda: crf.predict(X)] * 2):
        for _ in range(FORKS // 10):
            children = [forked(lambda: crf.predict(X) == expected) for _ in range(10)]
            found += map(ended_with, children)
    assert found == [1] * len(found)


def test_threads_are_started_anew():
    """Those of a pool, those that fold, and the team, while all of them are open and at work in the parent."""
    with Workers(2) as workers:
        numbers = list(range(50))

        def right():
            total = []
            workers.fold(abs, numbers, total.append)
            return total == numbers == list(workers.map(abs, iter(numbers))) and workers.team.threads == 2

        assert right()
        with busy(right):
            assert [child_says(right) for _ in range(3)] == [1] * 3


def test_locks_of_what_threads_share_are_renewed():
    workers = Workers(1, memory=100)
    with held(lock_of(workers.memory)):
        assert child_says(lambda: workers.memory.reserve(workers, 60, 1) == 60) == 1


def test_kept_properties_that_another_thread_computes():
    """They have no lock, which the child could not get."""
    column, begun, ended = CodedColumn.of(["a"]), threading.Event(), threading.Event()

    def slowly():
        begun.set()
        ended.wait()
        return column

    thread = threading.Thread(target=lambda: LateColumn(1, slowly).values)
    thread.start()
    begun.wait()
    try:
        assert child_says(lambda: LateColumn(1, lambda: column).values == ["a"]) == 1
    finally:
        ended.set()
        thread.join()


def test_blas_is_held_by_those_alone_that_are_still_there():
    """The thread that forks may be among them; others are gone, and what they held is lifted by the next."""
    before = blas_threads()

    def after_one_more():
        with ONE_BLAS_THREAD:
            pass
        return blas_threads()

    def after_leaving():
        ONE_BLAS_THREAD.__exit__()
        return blas_threads()

    with held(ONE_BLAS_THREAD):
        assert child_says(after_one_more) == before
        with ONE_BLAS_THREAD:
            assert child_says(after_one_more) == 1
            assert child_says(after_leaving) == before
    assert blas_threads() == before
