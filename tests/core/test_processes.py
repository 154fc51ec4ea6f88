"""Work on several processes: results of all tasks, and a name for the one that went wrong."""

from __future__ import annotations

import multiprocessing
import os
import signal
from functools import partial

import pytest

from kcrf_core.errors import DataError, KcrfError
from kcrf_core.selection.processes import Processes, TaskFailed


def squares(base, task):
    if task == 13:
        raise DataError("unlucky", "data", 7)
    if task == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 19:
        raise ZeroDivisionError
    return base + task * task, os.getpid()


def test_all_tasks_are_done_by_no_more_processes_than_asked_for():
    with Processes(2, partial(squares, 100)) as pool:
        found = dict(pool.results(list(range(7))))
        again = dict(pool.results([20, 21, 22]))
    assert {task: value for task, (value, _) in found.items()} == {task: 100 + task * task for task in range(7)}
    pids = {pid for _, pid in [*found.values(), *again.values()]}
    assert len(pids) <= 2 and os.getpid() not in pids


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("task", "kind", "message"),
    [(13, DataError, "data:7: unlucky"), (17, KcrfError, "killed by signal 9"), (19, RuntimeError, "ZeroDivision")],
)
def test_a_failure_names_its_task(task, kind, message):
    with Processes(2, partial(squares, 0)) as pool:
        seen = []
        with pytest.raises(TaskFailed) as caught:
            seen.extend(pool.results([1, 2, task]))
    assert caught.value.task == task
    assert isinstance(caught.value.error, kind) and message in str(caught.value.error)


def test_no_process_is_started_for_nothing():
    with Processes(2, partial(squares, 0)) as pool:
        assert list(pool.results([])) == []
        assert multiprocessing.active_children() == []
