"""The table of README.md: `collect.py build/SET.json ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from readme import fill, origins, table

HEADER = (
    "set",
    "guarantee",
    "sequences",
    "errors %",
    "level %",
    "achieved %",
    "above",
    "marked %, or size",
    "at best",
    "refused",
)
NAMES = {"risk": "risk", "among-unmarked": "among unmarked", "sets": "sets"}


def row(name: str, one: dict, divisions: int) -> tuple[str, ...]:
    found = one["found"]
    kind = NAMES[one["kind"]] + ", spans" * (one["of"] == "span")
    about = (name, kind, f"{one['sequences']:,}", f"{100 * one['errors']:.2f}", f"{100 * one['level']:g}")
    refused = str(divisions - len(found))
    if not found:
        return (*about, "", "", "", "", refused)
    achieved, extent = (np.array([each[k] for each in found]) for k in (0, 1))
    sets = one["kind"] == "sets"
    size = f"{extent.mean():.2f}" if sets else f"{100 * extent.mean():.1f}"
    best = "" if sets else f"{100 * np.mean([each[2] for each in found]):.1f}"
    error = achieved.std() / np.sqrt(len(achieved))
    return (
        *about,
        f"{100 * achieved.mean():.2f} +- {100 * error:.2f}",
        str(int((achieved > one["level"]).sum())),
        size,
        best,
        refused,
    )


if __name__ == "__main__":
    runs = {Path(path).stem: json.loads(Path(path).read_text()) for path in sys.argv[1:]}
    rows = [row(name, one, 100) for name, run in runs.items() for one in run["rows"]]
    taken_with = origins((name, run["with"]) for name, run in runs.items())
    fill(Path(__file__).parent / "README.md", table(HEADER, rows, text_columns=2), taken_with=taken_with)
