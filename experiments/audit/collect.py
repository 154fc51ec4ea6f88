"""The table of README.md: `collect.py build/SET-KIND-SEED ...`."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from readme import fill, table

MEASURES = {"doubt": -1, "context": 1, "marginal": 1}  # and the sign by which the worst come first
HEADER = ("set", "planted", "seed", "labels", *MEASURES, "listed", "wrong", "found", "wrong / sum of p, by thirds")


def row(run: str) -> tuple[str, ...]:
    wrong = set(map(int, Path(f"{run}.conll.wrong").read_text().split()))
    found = json.loads(Path(f"{run}.json").read_text())
    flags = {}
    for name, sign in MEASURES.items():
        order = sorted(found["positions"], key=lambda one: sign * one[name])  # of equal ones, as they are ranked
        flags[name] = [one["line"] in wrong for one in order]
    precisions = (f"{100 * sum(flags[name][: len(wrong)]) / len(wrong):.1f}" for name in MEASURES)
    first = found["positions"][: (n := found["doubtful"])]
    planted = sum(flags["doubt"][:n])
    thirds = []
    for k in range(3):
        part = slice(k * n // 3, (k + 1) * n // 3)
        expected = math.fsum(1 / (1 + math.exp(-max(one["doubt"], -700))) for one in first[part])
        thirds.append(f"{sum(flags['doubt'][part]) / max(expected, 1e-9):.2g}")
    name, kind, seed = Path(run).name.split("-")
    shares = (f"{100 * planted / n:.0f} %", f"{100 * planted / len(wrong):.0f} %")
    return (name, kind, seed, f"{len(wrong):,}", *precisions, f"{n:,}", *shares, ", ".join(thirds))


if __name__ == "__main__":
    rows = [row(run) for run in sys.argv[1:]]
    held = sum(all(2 / 3 <= float(ratio) <= 1.5 for ratio in each[-1].split(", ")) for each in rows)
    counts = f"All three ratios of the last column within 1.5: {held} of {len(rows)}."
    fill(Path(__file__).parent / "README.md", f"{table(HEADER, rows, text_columns=2)}\n\n{counts}")
