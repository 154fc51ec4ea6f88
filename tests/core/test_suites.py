"""Two suites of tests: which combinations are run every day, and the table of the most expensive tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import processor_time
from each_choice import each_choice

TESTS = Path(__file__).resolve().parents[1]
EXAMPLE = """
import subprocess, sys
BUSY = "import time\\nwhile time.process_time() < 0.3: pass\\nprint('done', flush=True)\\ninput()"

def test_cheap(): pass

def test_of_a_process_that_goes_on():
    global running
    running = subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert running.stdout.readline() == b"done\\n"

def test_that_ends_it():
    running.communicate(b"\\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="running children are found in /proc")
def test_child_processes_count_where_they_are_busy(tmp_path):
    (tmp_path / "test_example.py").write_text(EXAMPLE)
    command = [sys.executable, "-m", "pytest", "-p", "processor_time", "-n", "1", "--costliest", "2", "-q", tmp_path]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    table = re.findall(r"^ +([\d.]+) s +[\d.]+%  (\S+)$", done.stdout, re.MULTILINE)
    assert len(table) == 2 and table[0][1].endswith("::test_of_a_process_that_goes_on")
    assert float(table[0][0]) >= 0.3 > float(table[1][0])
    assert re.search(r"processor time: \d+ s, 3 tests", done.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="running children are found in /proc")
def test_children_count_though_a_thread_ends_while_they_are_looked_for(monkeypatch):
    real = processor_time.glob.glob
    gone = "/proc/self/task/0/children"  # no thread has this number
    monkeypatch.setattr(processor_time.glob, "glob", lambda path: [gone, *real(path)])
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    before = processor_time.processor_seconds()
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"done\n"
        assert processor_time.processor_seconds() > before + 0.25
        running.communicate(b"\n")


def test_each_value_is_tried_every_day():
    """The first values together, then the second ones; pairs that come together are not taken apart."""
    lists = [1], [2]  # which have no hash
    combinations = [{"a": a, "b": b, "c": c} for a in "xy" for b in range(4) for c in lists]
    chosen = [each for each, taken in zip(combinations, each_choice(combinations), strict=True) if taken]
    values = {(name, str(value)) for each in combinations for name, value in each.items()}
    assert {(name, str(value)) for each in chosen for name, value in each.items()} == values
    assert [tuple(each.values()) for each in chosen[:2]] == [("x", 0, [1]), ("x", 2, [1])]
    pairs = [{"type": "float", "dealt": False}, {"type": "float", "dealt": True}, {"type": "double", "dealt": False}]
    assert each_choice(pairs) == [True, True, True]
