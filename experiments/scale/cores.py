"""Seconds of a pass by number of threads: cores.py DATA RESULTS [--threads 1,16].

Needs nothing but Python, NumPy and kcrf, so that it can run on a machine that has cores and no package index; the table
and the plot are made of RESULTS by `cores_report.py`, anywhere. DATA holds `ocr/` and `conll2000/`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from readme import provenance  # noqa: E402, the folder above is on the path only now

PASSES, NEGLIGIBLE = 40, 5  # passes of a run, and those before the clock starts
OCR_KERNEL = ("--kernel", "poly", "--degree", "3")
ALL_PAIRS = ("--plain", "--kernel", "poly", "--degree", "2")


class Bench:
    """The files that commands need, made when they are first asked for, and the commands."""

    def __init__(self, data: Path, work: Path, kcrf: Sequence[str]):
        self.data, self.work, self.kcrf = data, work, kcrf
        self.text = data / "conll2000" / "train.conll"
        work.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments: object) -> None:
        done = subprocess.run([*self.kcrf, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"kcrf {' '.join(map(str, arguments))}: {done.stderr.decode()}")

    def letters(self) -> Path:
        """Return folds 1-9 of the OCR words."""
        path = self.work / "letters.train.conll"
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

    def seconds_per_pass(self, arguments: Sequence[object], threads: int) -> float:
        """Return seconds between passes, by the log."""
        log = self.work / "log.jsonl"
        self.run("train", *arguments, "--threads", threads, "--max-passes", PASSES, "--tolerance", 1e-4, "--log", log,
                 "-q", "-o", self.work / "model.npz")  # fmt: skip
        events = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        passes = [event for event in events if event["event"] == "pass"]
        first, last = passes[NEGLIGIBLE], passes[-1]
        return (last["seconds"] - first["seconds"]) / (last["pass"] - first["pass"])


def jobs(bench: Bench) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield names of tasks and what `train` is given."""
    for size in (1000, 4000):
        yield f"OCR large, {size:,} pivots", (bench.letters(), "--basis", bench.basis(size), "--sigma2", 80)
    for name, options in (("linear", ("--plain",)), ("all pairs", ALL_PAIRS)):
        yield f"CoNLL-2000 {name}", (bench.text, *options, "--sigma2", 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--work", type=Path, default=HERE / "build", help="folder for what is made")
    parser.add_argument("--threads", default="1,16", help="numbers of threads, separated by commas")
    parser.add_argument("--kcrf", default=f"{sys.executable} -m kcrf_cli", help="the command")
    given = parser.parse_args()
    bench = Bench(given.data, given.work, given.kcrf.split())
    found: dict[str, dict[str, float]] = {}
    for name, arguments in jobs(bench):
        for number in given.threads.split(","):
            seconds = bench.seconds_per_pass(arguments, int(number))
            found.setdefault(name, {})[number] = seconds
            print(f"{name}\t{number}\t{seconds:.4g}", flush=True)
    results = {"taken_with": provenance(0), "passes": found}
    given.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
