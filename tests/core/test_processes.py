"""Work on several processes: results of all tasks, errors, and no process that is left over."""

from __future__ import annotations

import multiprocessing
import os
import signal
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pytest

from kcrf_core.errors import DataError
from kcrf_core.selection.processes import process_pool, submit


def squares(base, task):
    if task == 13:
        raise DataError("unlucky", "data", 7)
    if task == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    return base + task * task, os.getpid()


def results(pool, tasks):
    futures = submit(pool, tasks)
    return {futures[future]: future.result() for future in as_completed(futures)}


def test_all_tasks_are_done_by_no_more_processes_than_asked_for():
    with process_pool(2, partial(squares, 100)) as pool:
        found = results(pool, list(range(7))) | results(pool, [20, 21, 22])
    assert {task: value for task, (value, _) in found.items()} == {
        task: 100 + task**2 for task in [*range(7), 20, 21, 22]
    }
    pids = {pid for _, pid in found.values()}
    assert len(pids) <= 2 and os.getpid() not in pids and multiprocessing.active_children() == []


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("task", "kind", "message"), [(13, DataError, "data:7: unlucky"), (17, BrokenProcessPool, "terminated abruptly")]
)
def test_an_error_ends_all_processes(task, kind, message):
    with pytest.raises(kind, match=message), process_pool(2, partial(squares, 0)) as pool:
        results(pool, [1, 2, task])
    assert multiprocessing.active_children() == []


def test_no_process_is_started_for_nothing():
    with process_pool(2, partial(squares, 0)) as pool:
        assert results(pool, []) == {} and multiprocessing.active_children() == []
