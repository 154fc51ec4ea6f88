"""Rounds of train, tag and evaluate, half of them killed: python tests/soak.py [--rounds 200] [--seed 0].

Data and options are drawn for each round. Whatever happens, under the name of an output there is nothing, what was
there before, or all of the new; only SIGKILL may leave a temporary file behind; and rounds that are left alone say what
the library says.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kcrf_core.corpora import read_corpus
from kcrf_core.model import Model

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
LONGEST = 120  # seconds that a command may take
LATEST = 0.9  # seconds after which one is killed: most take about as long
OPTIONS = (
    [],
    ["--sigma2", "1"],
    ["--kernel", "poly", "--degree", "2", "--sigma2", "3"],
    ["--kernel", "rbf", "--size", "20"],
    ["--kernel", "poly", "--map", "full", "--solver", "block-jacobi", "--sigma2", "1"],
    ["--order", "2", "--sigma2", "1"],
    ["--kernel", "rbf", "--select", "gradient", "--size", "30", "--sigma2", "1"],
    ["--solver", "newton", "--precision", "double", "--sigma2", "0.1"],
    ["--tolerance", "1e-9", "--sigma2", "100"],
    ["--memory", "1M", "--kernel", "poly", "--degree", "3", "--size", "50"],
)


def draw_data(path: Path, rng: random.Random) -> None:
    """Words, a number and labels that depend on both."""
    words, labels = [f"w{n}" for n in range(rng.choice((3, 20, 200)))], "ABCDE"[: rng.choice((2, 3, 5))]
    lines = []
    for _ in range(rng.choice((3, 20, 100))):
        for _ in range(rng.choice((1, 4, 15))):
            word, number = rng.randrange(len(words)), rng.gauss(0, 1)
            label = labels[(word + (number > 0)) % len(labels)] if rng.random() < 0.9 else rng.choice(labels)
            lines.append(f"{words[word]}\t{number:.3f}\t{label}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Round:
    """One folder, its data, and what became of it."""

    def __init__(self, folder: Path, seed: int, counts: Counter):
        self.rng, self.folder, self.counts = random.Random(seed), folder, counts
        self.data, self.model, self.tagged = folder / "data.conll", folder / "model.npz", folder / "tagged.conll"

    def play(self) -> None:
        rng = self.rng
        draw_data(self.data, rng)
        train = ["train", self.data, "-o", self.model, "-q", *rng.choice(OPTIONS)]
        tag = ["tag", self.data, "-m", self.model, "-o", self.tagged]
        killed = rng.choice(("train", "tag")) if rng.random() < 0.5 else None
        if rng.random() < 0.5 or killed == "tag":
            self.run(train)  # a model of before
        old = self.content()
        if killed == "train":
            self.kill(train, old)
        elif killed == "tag":
            self.kill(tag, old)
        else:
            self.run(train)
            self.run(tag)
            self.check_result()
        self.counts["killed" if killed else "left alone"] += 1

    def content(self) -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.exists() else None for path in (self.model, self.tagged)}

    def run(self, arguments: list) -> None:
        done = subprocess.run(command(arguments), capture_output=True, timeout=LONGEST, check=False)
        if done.returncode:
            raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr.decode()}")
        self.no_temporary_files()

    def kill(self, arguments: list, old: dict[Path, bytes | None]) -> None:
        """At any moment between its start and some time after its end."""
        which, delay = self.rng.choice(SIGNALS), self.rng.uniform(0, LATEST)
        began = time.monotonic()
        process = subprocess.Popen(command(arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(timeout=delay)
            self.counts["ended before"] += 1
        except subprocess.TimeoutExpired:
            process.send_signal(which)
            self.counts[which.name] += 1
        _, errors = process.communicate(timeout=LONGEST)
        text = errors.decode()
        if "Traceback" in text and "KeyboardInterrupt" not in text:
            raise AssertionError(f"{arguments}: {text}")
        if "Traceback" in text:
            self.counts["tracebacks"] += 1
            print(
                f"a traceback after {time.monotonic() - began:.2f} s, {which.name}: {text.splitlines()[-1]}", flush=True
            )
        for path, before in old.items():
            after = path.read_bytes() if path.exists() else None
            if after == before:
                continue
            self.counts["written"] += 1
            if path == self.model:
                Model.load(path).tag_corpus(read_corpus(self.data))
            else:
                self.check_tagged()
        if which != signal.SIGKILL:
            self.no_temporary_files()

    def no_temporary_files(self) -> None:
        left = sorted(path.name for path in self.folder.iterdir() if path.name.startswith("."))
        if left:
            raise AssertionError(f"left behind: {left}")

    def check_tagged(self) -> None:
        labels = Model.load(self.model).tag_corpus(read_corpus(self.data))
        found = [line.split("\t")[-1] for line in self.tagged.read_text().split("\n") if line]
        if found != labels:
            raise AssertionError("the command tags otherwise than the library")

    def check_result(self) -> None:
        self.check_tagged()
        done = subprocess.run(command(["evaluate", self.tagged, "--json"]), capture_output=True, check=True)
        rows = [line.split("\t") for line in self.tagged.read_text().split("\n") if line]
        accuracy = sum(row[-1] == row[-2] for row in rows) / len(rows)
        if abs(json.loads(done.stdout)["accuracy"] - accuracy) > 1e-9:
            raise AssertionError("evaluate counts otherwise than we do")


def command(arguments: list) -> list[str]:
    return [sys.executable, "-m", "kcrf_cli", *map(str, arguments)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts, failures = Counter(), 0
    for seed in range(options.seed, options.seed + options.rounds):
        with tempfile.TemporaryDirectory() as name:
            try:
                Round(Path(name), seed, counts).play()
            except Exception as error:
                failures += 1
                print(f"round {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{options.rounds} rounds, {failures} failures; " + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
