"""Run a command and add its time and peak memory to a file: measure.py RESULTS NAME DATA COMMAND..."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    results, name, data, *command = sys.argv[1:]
    began = time.perf_counter()
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: {os.waitstatus_to_exitcode(status)}")
    found = {
        "name": name,
        "data": data,
        "seconds": time.perf_counter() - began,
        "processor": used.ru_utime + used.ru_stime,
        "peak_gib": used.ru_maxrss / (1 << 20),
    }
    with open(results, "a") as stream:
        stream.write(json.dumps(found) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
