#!/usr/bin/env python3
"""Seconds per pass of two builds, alternating: alternate.py OLD NEW DATA [--threads N] [--pairs N] [TASK ...].

OLD and NEW are folders that hold kcrf_core (a `src` with its extensions built, or build/lib). Each build is one process
that prepares a task once and then evaluates P and its gradient whenever it is asked, so that both see the same machine.
Printed: the median of the ratios new : old, with a 95 % interval of the median, and seconds per pass of both.
DATA holds ocr/ and conll2000/ (see experiments/README or the Makefile here for their form).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

TASKS = {
    "linear": ("conll2000/train.conll", {"type": "linear"}, {}, 1.0),
    "pairs": ("conll2000/train.conll", {"type": "poly", "degree": 2}, {}, 1.0),
    "ocr": (
        "ocr/all.conll",
        {"type": "poly", "degree": 3},
        {"type": "reduced", "size": 4000, "select": "uniform"},
        80.0,
    ),
    "second": ("ocr/all.conll", {"type": "linear"}, {}, 10.0),
}
SECONDS = 0.4  # of each run, about


class Found(Exception):
    """The engine of a training run, at its first evaluation."""


def serve(task: str, data: Path, threads: int) -> None:
    """Prepare a task, then answer each line of stdin with seconds per pass."""
    import numpy as np

    from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
    from kcrf_core.objective import thread_engine

    name, kernel, map_, sigma2 = TASKS[task]
    term = {"kernel": kernel} | ({"map": map_} if map_ else {})
    terms = [term, {"type": "edge"}, *([{"type": "edge2"}] if task == "second" else [])]
    config = parse_config({"terms": terms, "training": {"sigma2": sigma2, "solver": "lbfgs"}})

    def found(engine: thread_engine.ThreadEngine, theta: np.ndarray) -> None:
        raise Found(engine)

    evaluate, thread_engine.ThreadEngine.evaluate = thread_engine.ThreadEngine.evaluate, found
    with Workers(threads) as workers:
        try:
            train(*fit_encoding(config, read_corpus(data / name)), config, workers=workers)
            raise SystemExit("no evaluation was asked for")
        except Found as error:
            (engine,) = error.args
        theta = 0.05 * np.random.default_rng(1).normal(size=engine.vectors.size)
        began = time.perf_counter()
        for _ in range(3):
            evaluate(engine, theta)
        count = max(int(SECONDS / ((time.perf_counter() - began) / 3)), 2)
        print("ready", flush=True)
        for _ in sys.stdin:
            began = time.perf_counter()
            for _ in range(count):
                evaluate(engine, theta)
            print((time.perf_counter() - began) / count, flush=True)


def started(folder: Path, arguments: argparse.Namespace, task: str) -> subprocess.Popen:
    path = os.pathsep.join([str(folder.resolve()), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--serve", task, "--threads", str(arguments.threads), "", "", arguments.data]
    return subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def asked(process: subprocess.Popen) -> float:
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compare(arguments: argparse.Namespace, task: str) -> None:
    processes = [started(Path(folder), arguments, task) for folder in (arguments.old, arguments.new)]
    for process in processes:
        if process.stdout.readline() != "ready\n":
            sys.exit(f"{task}: a build could not prepare the task")
    runs = []
    for pair in range(arguments.pairs):
        order = (0, 1) if pair % 2 == 0 else (1, 0)
        found = {which: asked(processes[which]) for which in order}
        runs.append((found[0], found[1]))
    for process in processes:
        process.stdin.close()
        process.wait()
    ratios = sorted(new / old for old, new in runs)
    middle = ratios[len(ratios) // 2]
    # Ranks of a distribution-free interval of the median: for 15 pairs the 4th and the 12th, 96.5 %.
    rank = max(int(len(ratios) / 2 - 0.98 * len(ratios) ** 0.5), 0)
    old, new = (sorted(run[which] for run in runs)[len(runs) // 2] for which in (0, 1))
    print(
        f"{task}\t{arguments.threads} threads\tratio {middle:.3f} [{ratios[rank]:.3f}, {ratios[-1 - rank]:.3f}]"
        f"\t{old:.5f} -> {new:.5f} s/pass",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("data")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, Path(arguments.data), arguments.threads)
        return
    for task in arguments.tasks or TASKS:
        compare(arguments, task)


if __name__ == "__main__":
    main()
