"""Work that threads share, with results that are taken in order."""

from __future__ import annotations

import threading
import time

import pytest

from kcrf_core import Workers
from kcrf_core.corpora.tables import CodedColumn, LateColumn


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_results_are_taken_in_order_by_one_thread_at_a_time(threads):
    taken, busy = [], threading.Lock()

    def slow_at_first(number):
        time.sleep(0.002 * (10 - number) if number < 10 else 0)  # later items are done before earlier ones
        return number

    def take(number):
        assert busy.acquire(blocking=False)
        taken.append(number)
        busy.release()

    with Workers(threads) as workers:
        workers.fold(slow_at_first, range(200), take)
        assert taken == list(range(200))
        workers.fold(slow_at_first, [], take)
    assert len(taken) == 200


def test_few_results_wait_to_be_taken():
    begun, most = set(), 0
    first_may_end = threading.Event()

    def work(number):
        nonlocal most
        begun.add(number)
        most = max(most, number)
        if number == 0:
            first_may_end.wait()

    with Workers(2) as workers:
        waiter = threading.Timer(0.2, first_may_end.set)
        waiter.start()
        seen = []
        workers.fold(work, range(1000), lambda _: seen.append(most))
    assert seen[0] <= 4  # nobody ran ahead of the first item by more
    assert begun == set(range(1000))


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_the_first_item_that_fails_is_heard_of_and_the_rest_is_left(threads):
    done = []

    def work(number):
        if number == 7:
            time.sleep(0.01)  # a later one fails before
        if number in (7, 8):
            raise ValueError(f"item {number}")
        done.append(number)

    with Workers(threads) as workers:
        with pytest.raises(ValueError, match="item 7"):
            workers.run(work, range(100_000))
        assert len(done) < 100_000
        with pytest.raises(ZeroDivisionError):
            workers.fold(lambda number: number, range(10), lambda number: 1 / (number - 5))
        workers.run(done.append, [-1])  # threads are there for others
    assert done[-1] == -1


def test_tasks_may_share_work_themselves():
    """All threads are busy with tasks that ask for threads: each does its own."""
    with Workers(3) as workers:
        sums = []

        def task(number):
            own = []
            workers.run(own.append, range(number))
            sums.append(sum(own))

        workers.run(task, range(30))
    assert sorted(sums) == [n * (n - 1) // 2 for n in range(30)]


def test_an_interruption_stops_all_threads():
    """Items that nobody has begun are left alone, wherever the interruption comes."""
    done = []

    def work(number):
        if number == 3:
            raise KeyboardInterrupt
        done.append(number)

    with Workers(3) as workers, pytest.raises(KeyboardInterrupt):
        workers.run(work, range(1_000_000))  # which takes a second
    assert len(done) < 900_000


def test_columns_that_threads_share_do_not_wait_for_each_other():
    """Properties of Python 3.11 are computed under a lock of their class, one for each property."""
    whole, began, found = CodedColumn.of(["a", "b", "a"]), threading.Event(), []

    def slowly():
        began.set()
        time.sleep(0.1)  # the other thread asks for the codes of its column
        return LateColumn(3, lambda: whole).span(slice(1, 3))

    first = threading.Thread(target=lambda: found.append(LateColumn(2, slowly).values), daemon=True)
    first.start()
    began.wait()
    second = threading.Thread(target=lambda: found.append(list(LateColumn(3, lambda: whole).codes)), daemon=True)
    second.start()
    for thread in (first, second):
        thread.join(timeout=600)
    assert sorted(found, key=len) == [["b", "a"], [0, 1, 0]]
