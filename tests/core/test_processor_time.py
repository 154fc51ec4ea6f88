"""The table of the most expensive tests: child processes count, and workers of xdist report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
