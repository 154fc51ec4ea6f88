"""The tables of README.md: `collect.py SEED ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

README, BUILD = Path(__file__).parent / "README.md", Path(__file__).parent / "build"
KINDS = ("sets", "equal", "weighed", "missing")
NAMES = {
    "sets": "sets of two (`--label-sets`)",
    "equal": "soft, 0.5 and 0.5 (`--soft-labels`)",
    "weighed": "soft, weights of the other model (`--soft-labels`)",
    "missing": "missing (`--unobserved`)",
}
STOPS = {"certified": "certified", "stationary": "stationary point"}


def read(name: str) -> dict:
    return json.loads((BUILD / f"{name}.json").read_text())


def scores(seeds: list[str]) -> str:
    def f1(run: str) -> float:
        return 100 * read(f"{run}.scores")["spans"]["f1"]

    def log_loss(run: str) -> float:
        return read(f"{run}.scores")["calibration"]["log_loss"]

    full = f1("full")
    rows = [("all known", f"{full:.2f}", "", f"{log_loss('full'):.4f}", str(read("full")["passes"]), "certified")]
    for kind in KINDS:
        runs = [f"{kind}-{seed}" for seed in seeds]
        found = [f1(run) for run in runs]
        mean, logs = sum(found) / len(found), [log_loss(run) for run in runs]
        lost = ", ".join(f"{full - each:+.2f}" for each in found)
        passes = ", ".join(str(read(run)["passes"]) for run in runs)
        row = (NAMES[kind], f"{mean:.2f}", lost, f"{sum(logs) / len(logs):.4f}", passes)
        rows.append((*row, STOPS.get(read(runs[0])["stop"], read(runs[0])["stop"])))
    return table(("a tenth of the labels", "F1", "F1 lost, by seed", "log-loss", "passes", "end"), rows)


def beside() -> str:
    rows = []
    for kind in ("linear", "pivots"):
        cold, warm = read(f"{kind}-cold"), read(f"{kind}-init")
        times = [each["processor_time"] for each in (cold, warm)]
        counts = [str(each["passes"]) for each in (cold, warm)]
        rows.append((kind, *(f"{each:.1f} s" for each in times), f"{times[0] / times[1]:.1f}", *counts))
    return table(("model", "cold", "`--init`", "ratio", "passes, cold", "passes, `--init`"), rows)


if __name__ == "__main__":
    fill(README, scores(sys.argv[1:]), seed=int(sys.argv[1]))
    fill(README, beside(), name="init")
