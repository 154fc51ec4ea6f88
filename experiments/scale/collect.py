"""Logs of training runs as the table of README.md and a picture: collect.py PICTURE LOG ..."""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from readme import fill, table

HEADER = (
    "positions",
    "kernel values held",
    "seconds before",
    "seconds a pass",
    "of it per 100,000",
    "peak, GiB",
)


@dataclass(frozen=True)
class Run:
    little: bool  # a quarter of the memory that kernel values need
    positions: int
    before: float  # until the first pass is done: reading, encoding, choosing pivots, kernel values
    per_pass: float
    whole: float
    memory: float  # GiB


def read(path: str) -> Run:
    lines = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    passes = [line["seconds"] for line in lines if line["event"] == "pass"]
    # The last pass is in double precision.
    steps = [after - before for before, after in pairwise(passes[:-1])]
    end = lines[-1]
    return Run(
        "little" in path,
        lines[0]["positions"],
        passes[0],
        statistics.median(steps),
        end["seconds"],
        end["peak_memory"] / 2**30,
    )


def picture(path: str, runs: list[Run]) -> None:
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    N = [run.positions / 1000 for run in runs]
    axes.plot(N, [run.per_pass for run in runs], "o", label="seconds of a pass, 1,000 pivots")
    rate = runs[-1].per_pass / N[-1]
    axes.plot([0, N[-1]], [0, rate * N[-1]], "-", linewidth=1, color="grey", label="in proportion to the last")
    axes.set_xlabel("positions in thousands")
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main() -> None:
    runs = [read(path) for path in sys.argv[2:]]
    rows = [
        (
            f"{run.positions:,}",
            "a quarter" if run.little else "all",
            f"{run.before:.1f}",
            f"{run.per_pass:.2f}",
            f"{run.per_pass / run.positions * 1e5:.3f}",
            f"{run.memory:.2f}",
        )
        for run in runs
    ]
    fill(Path(__file__).parent / "README.md", table(HEADER, rows, text_columns=2))
    picture(sys.argv[1], [run for run in runs if not run.little])


if __name__ == "__main__":
    main()
