"""The table of README.md from build/NAME.json: `collect.py README.md NAME ...`."""

from __future__ import annotations

import json
import platform
import statistics
import sys
from pathlib import Path

import numpy as np
import scipy

from kcrf_core._version import __version__

TITLES = {"linear": "chain, linear", "rbf": "chain, rbf, 500 pivots", "svc": "`SVC`, rbf, single positions"}
MARKS = ("<!-- table -->", "<!-- end of table -->")
HEADER = ("", "accuracy %", "whole trials %", "certified gap", "seconds")


def row(name: str, folds: list[dict]) -> str:
    cells = [TITLES[name]]
    for measure in ("accuracy", "sequence_accuracy"):
        values = [100 * fold[measure] for fold in folds]
        cells.append(f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}")
    gaps = [fold["training"]["certified_gap"] for fold in folds if "training" in fold]
    cells.append(f"{max(gaps):.1e}" if gaps else "")
    cells.append(f"{sum(fold['seconds'] for fold in folds):.0f}")
    return f"| {' | '.join(cells)} |"


def main(readme: str, *names: str) -> None:
    versions = [f"kcrf {__version__}", f"Python {platform.python_version()}", f"NumPy {np.__version__}",
                f"SciPy {scipy.__version__}"]  # fmt: skip
    lines = [f"| {' | '.join(HEADER)} |", "|---|---:|---:|---:|---:|"]
    for name in names:
        results = json.loads(Path(f"build/{name}.json").read_text())
        if not results:
            continue
        if "scikit-learn" in results:
            versions.append(f"scikit-learn {results['scikit-learn']}")
        lines.append(row(name, results["folds"] if name == "svc" else results["settings"][0]["folds"]))
    text = "\n".join([*lines, "", f"({', '.join(versions)}; seed 0)"])
    path = Path(readme)
    before, after = (
        path.read_text(encoding="utf-8").split(MARKS[0])[0],
        path.read_text(encoding="utf-8").split(MARKS[1])[1],
    )
    path.write_text(f"{before}{MARKS[0]}\n\n{text}\n\n{MARKS[1]}{after}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
