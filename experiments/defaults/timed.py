"""Run a command and write what it took: `timed.py FIGURES COMMAND ...`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

figures, *command = sys.argv[1:]
began = time.perf_counter()
subprocess.run(command, check=True)
took = resource.getrusage(resource.RUSAGE_CHILDREN)
about = {"seconds": time.perf_counter() - began, "user_seconds": took.ru_utime, "peak_memory": took.ru_maxrss * 1024}
Path(figures).write_text(json.dumps(about) + "\n")
