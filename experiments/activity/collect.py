"""The table of README.md from build/NAME.json: `collect.py README.md NAME ...`."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from readme import fill, table

TITLES = {"linear": "chain, linear", "rbf": "chain, rbf, 500 pivots", "svc": "`SVC`, rbf, single positions"}
HEADER = ("", "accuracy %", "whole trials %", "certified gap", "seconds")


def row(name: str, folds: list[dict]) -> list[str]:
    cells = [TITLES[name]]
    for measure in ("accuracy", "sequence_accuracy"):
        values = [100 * fold[measure] for fold in folds]
        cells.append(f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}")
    gaps = [fold["training"]["certified_gap"] for fold in folds if "training" in fold]
    cells.append(f"{max(gaps):.1e}" if gaps else "")
    cells.append(f"{sum(fold['seconds'] for fold in folds):.0f}")
    return cells


def main(readme: str, *names: str) -> None:
    rows, peers = [], []
    for name in names:
        results = json.loads(Path(f"build/{name}.json").read_text())
        if not results:
            continue
        if name == "svc":
            peers.append("scikit-learn")
        rows.append(row(name, results["folds"] if name == "svc" else results["settings"][0]["folds"]))
    fill(Path(readme), table(HEADER, rows), peers=peers)


if __name__ == "__main__":
    main(*sys.argv[1:])
