"""Run a command that prints JSON, and add its processor time: `timed.py TO COMMAND ...`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":
    done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout) | {"processor_time": used.ru_utime + used.ru_stime}
    Path(sys.argv[1]).write_text(json.dumps(found))
