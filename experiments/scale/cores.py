"""Seconds by number of threads, of passes and of whole commands: cores.py DATA RESULTS [--threads 1,2] [--jobs NAME].

Needs nothing but Python, NumPy and kcrf, so that it can run on a machine that has cores and no package index; the table
and the picture are made of RESULTS by `cores_report.py`, anywhere. DATA holds `ocr/` and `conll2000/`. RESULTS is
written after every figure, and figures that it has already are measured again only if they are asked for.

The least bytes that a pass must move, read and written, with N positions, P parameters and single precision (4 bytes)
wherever the certificate does not need more:

    pivots    4 N M             kernel values, once: both products of a chunk are taken while it is in the cache
              + 4 M^2           two solves with the triangle of L
    text      4 N K             numbers of the K features of a position, once
              + 3 * 4 P         weights read; the gradient written, and read by the solver
    L-BFGS    2 * 2 m * 4 P     its m pairs of differences, for products with the gradient and again for the direction
              + 2 * 4 P         the new pair
              + 6 * 8 P         in double precision: parameters and direction read and written, two gradients read

A bare copy on as many threads says how long that takes at the least.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from readme import provenance  # noqa: E402, the folder above is on the path only now

PASSES, NEGLIGIBLE = 40, 5  # passes of a run, and those before the clock starts
PAIRS = 10  # of differences that L-BFGS keeps
TOKENS = 2_000_000
COPIED, COPIES = 1 << 29, 5  # bytes, and times
OCR_KERNEL = ("--kernel", "poly", "--degree", "3")
ALL_PAIRS = ("--plain", "--kernel", "poly", "--degree", "2")
# The features of a position: five words and five tags around it, and for all pairs those, too.
FEATURES = {"linear": 10, "pairs": 10 + 10 * 9 // 2}


class Bench:
    """The files that commands need, made when they are first asked for, and the commands."""

    def __init__(self, data: Path, work: Path, kcrf: Sequence[str]):
        self.data, self.work, self.kcrf = data, work, kcrf
        self.text = data / "conll2000" / "train.conll"
        work.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: object) -> float:
        """Seconds of a command."""
        began = time.perf_counter()
        done = subprocess.run([*self.kcrf, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"kcrf {' '.join(map(str, arguments))}: {done.stderr.decode()}")
        return time.perf_counter() - began

    def letters(self, part: str = "train") -> Path:
        """OCR words: folds 1-9 to train on, fold 0 to tag."""
        path = self.work / f"letters.{part}.conll"
        if not path.exists():
            split, words = HERE.parent / "ocr" / "split.py", self.data / "ocr" / "all.conll"
            parts = [self.work / f"letters.{name}.conll" for name in ("train", "test")]
            folds = words.with_name("folds.txt")
            subprocess.run([sys.executable, split, words, folds, "large", *parts], check=True)
        return path

    def basis(self, size: int) -> Path:
        path = self.work / f"basis-{size}.npz"
        if not path.exists():
            self.run("select-basis", self.letters(), *OCR_KERNEL, "--size", size, "-q", "-o", path)
        return path

    def model(self, kind: str) -> Path:
        """A model to tag with; how well it is trained does not matter for its speed."""
        path = self.work / f"{kind}.npz"
        if not path.exists():
            arguments = (self.text, "--plain") if kind == "linear" else (self.letters(), "--basis", self.basis(1000))
            self.run("train", *arguments, "--sigma2", 1, "--tolerance", 0.1, "--max-passes", 30, "-q", "-o", path)
        return path

    def tokens(self, kind: str) -> Path:
        """Two million positions to tag, which are the test data many times over."""
        path = self.work / f"{kind}.long.conll"
        if not path.exists():
            test = self.data / "conll2000" / "test.conll" if kind == "linear" else self.letters("test")
            text = test.read_text(encoding="utf-8").rstrip("\n") + "\n\n"
            positions = sum(1 for line in text.split("\n") if line)
            path.write_text(text * -(-TOKENS // positions), encoding="utf-8")
        return path

    def seconds_per_pass(self, arguments: Sequence[object], threads: int) -> tuple[float, dict[str, Any]]:
        """Seconds between passes by the log, and how its last line counts positions, parameters and the like."""
        log = self.work / "log.jsonl"
        self.run("train", *arguments, "--threads", threads, "--max-passes", PASSES, "--tolerance", 1e-4, "--log", log,
                 "-q", "-o", self.work / "model.npz")  # fmt: skip
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        passes = [event for event in events if event["event"] == "pass"]
        first, last = passes[NEGLIGIBLE], passes[-1]
        return (last["seconds"] - first["seconds"]) / (last["pass"] - first["pass"]), events[-1]


def pass_jobs(bench: Bench) -> dict[str, Any]:
    """For each task what `train` is given, and the least bytes of a pass given the last line of its log."""

    def pivots(size: int) -> dict[str, Any]:
        return {
            "arguments": lambda: (bench.letters(), "--basis", bench.basis(size), "--sigma2", 80),
            "bytes": lambda end: 4 * end["positions"] * size + 4 * size**2 + solver_bytes(end["parameters"]),
        }

    def text(kind: str, *options: str) -> dict[str, Any]:
        return {
            "arguments": lambda: (bench.text, *options, "--sigma2", 1),
            "bytes": lambda end: (
                4 * end["positions"] * FEATURES[kind] + 3 * 4 * end["parameters"] + solver_bytes(end["parameters"])
            ),
        }

    return {
        "OCR large, 1,000 pivots": pivots(1000),
        "OCR large, 4,000 pivots": pivots(4000),
        "CoNLL-2000 linear": text("linear", "--plain"),
        "CoNLL-2000 all pairs": text("pairs", *ALL_PAIRS),
    }


def solver_bytes(P: int) -> int:
    return 2 * 2 * PAIRS * 4 * P + 2 * 4 * P + 6 * 8 * P


def command_jobs(bench: Bench) -> dict[str, Any]:
    """Whole commands, as functions of the number of threads to their arguments."""
    out = bench.work / "out"
    return {
        "train, all pairs, sigma2 given": lambda: ("train", bench.text, *ALL_PAIRS, "--sigma2", 1, "-q", "-o", out),
        "train, all pairs, sigma2 searched": lambda: ("train", bench.text, *ALL_PAIRS, "-q", "-o", out),
        "select-basis, OCR large, 4,000 pivots": lambda: (
            *("select-basis", bench.letters(), *OCR_KERNEL, "--size", 4000, "-q", "-o", out),
        ),
        "tag, 2 million tokens, linear": lambda: (
            *("tag", "-m", bench.model("linear"), bench.tokens("linear"), "-o", out),
        ),
        "tag, 2 million letters, 1,000 pivots": lambda: (
            *("tag", "-m", bench.model("pivots"), bench.tokens("pivots"), "-o", out),
        ),
        "evaluate -m, 2 million tokens, linear": lambda: (
            *("evaluate", "-m", bench.model("linear"), bench.tokens("linear")),
        ),
    }


def copy_rate(threads: int) -> float:
    """Bytes read and written in a second by so many threads, each of which copies memory that it has touched itself."""
    size = COPIED // threads // 4

    def fresh(_: int) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(size, np.float32), np.zeros(size, np.float32)

    def copy(arrays: tuple[np.ndarray, np.ndarray]) -> None:
        np.copyto(arrays[1], arrays[0])

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(fresh, range(threads)))
        seconds = []
        for _ in range(COPIES):
            began = time.perf_counter()
            list(pool.map(copy, parts))
            seconds.append(time.perf_counter() - began)
    return 2 * 4 * size * threads / min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--work", type=Path, default=HERE / "build", help="folder for what is made")
    parser.add_argument("--threads", default="1,2,4,8,16", help="numbers of threads, separated by commas")
    parser.add_argument("--only", choices=("copy", "passes", "commands"), help="one kind of figures")
    parser.add_argument("--jobs", nargs="*", help="parts of the names of jobs to measure; default: all of them")
    parser.add_argument("--version", default="this", help="the name that figures are kept under")
    parser.add_argument(
        "--kcrf", default=f"{sys.executable} -m kcrf_cli", help="the command; another version's, perhaps"
    )
    given = parser.parse_args()
    bench = Bench(given.data, given.work, given.kcrf.split())
    threads = [int(number) for number in given.threads.split(",")]
    results = json.loads(given.results.read_text(encoding="utf-8")) if given.results.exists() else {}
    origins = results.setdefault("taken_with", [])
    if provenance(0) not in origins:
        origins.append(provenance(0))
    found = results.setdefault("versions", {}).setdefault(given.version, {})

    def wanted(kind: str, name: str) -> bool:
        return given.only in (None, kind) and (not given.jobs or any(part in name for part in given.jobs))

    def keep(group: str, name: str, number: int | str, value: float) -> None:
        found.setdefault(group, {}).setdefault(name, {})[str(number)] = value
        given.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"{name}\t{number}\t{value:.4g}", flush=True)

    for number in threads if wanted("copy", "copy") else ():
        results.setdefault("copy", {})[str(number)] = copy_rate(number)
        given.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"bare copy\t{number}\t{results['copy'][str(number)] / 1e9:.1f} GB/s", flush=True)
    for name, job in pass_jobs(bench).items():
        for number in threads if wanted("passes", name) else ():
            seconds, end = bench.seconds_per_pass(job["arguments"](), number)
            keep("passes", name, number, seconds)
            results.setdefault("bytes", {})[name] = job["bytes"](end)
    for name, arguments in command_jobs(bench).items():
        for number in threads if wanted("commands", name) else ():
            keep("commands", name, number, bench.run(*arguments(), "--threads", number))


if __name__ == "__main__":
    main()
