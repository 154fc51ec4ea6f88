"""A plugin of pytest: the processor time of every test, that of the processes it started included.

    python -m pytest --costliest 10      ends with a table of the ten most expensive tests

A fixture that several tests share is charged to the first one that asks for it. Where the system does not list the
children of a process (Linux does), processes that go on after a test are charged to the test that ends them.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ATTRIBUTE = "processor_seconds"


def _text(path: str) -> str:
    """Return what a file of /proc says, nothing where there is none: threads and processes end at any time."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _descendants(process: str) -> Iterator[str]:
    for children in glob.glob(f"/proc/{process}/task/*/children"):
        for child in _text(children).split():
            yield child
            yield from _descendants(child)


def _ticks(process: str) -> int:
    fields = _text(f"/proc/{process}/stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))  # user and system, of itself and of the children that it has waited for


def processor_seconds() -> float:
    """Return the user and system time of this process and of all processes that it started."""
    running = sum(map(_ticks, _descendants("self")))
    return sum(os.times()[:4]) + (running / os.sysconf("SC_CLK_TCK") if running else 0.0)


class ProcessorTime:
    """Times of tests: measured where they run, gathered where they are reported."""

    def __init__(self, rows: int):
        self.rows, self.seconds, self._before = rows, {}, 0.0

    def pytest_collection_finish(self):
        self._before = processor_seconds()  # imports are nobody's

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when == "teardown":
            now = processor_seconds()
            setattr(report, ATTRIBUTE, now - self._before)  # xdist carries attributes of reports to the controller
            self._before = now

    def pytest_runtest_logreport(self, report):
        if hasattr(report, ATTRIBUTE):
            self.seconds[report.nodeid] = getattr(report, ATTRIBUTE)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.rows:
            return
        total = processor_seconds()  # workers of xdist have ended
        ranking = sorted(self.seconds.items(), key=lambda pair: -pair[1])
        terminalreporter.section(f"processor time: {total:.0f} s, {len(ranking)} tests")
        for name, seconds in ranking[: self.rows]:
            terminalreporter.write_line(f"{seconds:8.1f} s  {seconds / total:6.1%}  {name}")


def pytest_addoption(parser):
    parser.addoption(
        "--costliest", type=int, default=0, metavar="N", help="list the N tests that took most processor time"
    )


def pytest_configure(config):
    config.pluginmanager.register(ProcessorTime(config.getoption("--costliest")), "processor-time")
