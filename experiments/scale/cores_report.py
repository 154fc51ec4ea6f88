"""The table of README.md and a plot of what `cores.py` measured, perhaps elsewhere: cores_report.py RESULTS PLOT."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from readme import fill, table

README = Path(__file__).parent / "README.md"


def rows(passes: dict[str, dict[str, float]], threads: list[int]) -> list[list[str]]:
    """Return seconds of each task, and how many times as fast it is with most threads as with fewest."""
    least, most = str(threads[0]), str(threads[-1])
    return [
        [name, *(f"{own[str(number)]:.3g}" for number in threads), f"{own[least] / own[most]:.1f}"]
        for name, own in passes.items()
    ]


def plot(path: str, passes: dict[str, dict[str, float]], threads: list[int]) -> None:
    figure, axes = plt.subplots(figsize=(5.5, 4.5), layout="constrained")
    axes.plot([1, threads[-1]], [1, threads[-1]], color="grey", linewidth=1)
    for name, own in passes.items():
        axes.plot(threads, [own[str(threads[0])] / own[str(number)] for number in threads], "-o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_xlabel("threads")
    axes.set_ylabel("times faster than one thread")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main(results: str, path: str) -> None:
    found = json.loads(Path(results).read_text(encoding="utf-8"))
    threads = sorted({int(number) for own in found["passes"].values() for number in own})
    header = ["seconds per pass", *(f"{number} thread{'s' * (number > 1)}" for number in threads), "gain"]
    fill(README, table(header, rows(found["passes"], threads)), name="threads", taken_with=found["taken_with"])
    plot(path, found["passes"], threads)


if __name__ == "__main__":
    main(*sys.argv[1:])
