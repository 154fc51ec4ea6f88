"""The table of README.md: `collect.py build/SET-KIND-SEED ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

MEASURES = ("wrong", "context", "marginal")
HEADER = ("set", "planted", "seed", "labels", "number estimated", "95 % interval", "error", *MEASURES)


def row(run: str) -> tuple[str, ...]:
    wrong = set(map(int, Path(f"{run}.conll.wrong").read_text().split()))
    found = json.loads(Path(f"{run}.json").read_text())
    precisions = []
    for name in MEASURES:
        sign = -1 if name == "wrong" else 1
        order = sorted(found["positions"], key=lambda one: sign * one[name])  # of equal ones, as they are ranked
        first = order[: len(wrong)]
        precisions.append(f"{100 * sum(one['line'] in wrong for one in first) / len(wrong):.1f}" if wrong else "")
    number, (low, high) = found["expected_errors"], found["interval"]
    told = f"{number:,.0f}" if found["identified"] else f"({number:,.0f}) not identified"
    error = f"{100 * (number / len(wrong) - 1):+.0f} %" if wrong else ""
    return (*Path(run).name.split("-"), f"{len(wrong):,}", told, f"{low:,.0f} to {high:,.0f}", error, *precisions)


if __name__ == "__main__":
    rows = [row(run) for run in sys.argv[1:]]
    errors = [(abs(int(each[6].split()[0])), "not" in each[4]) for each in rows if each[6]]
    good = sum(error <= 25 for error, unclear in errors if not unclear)
    unclear = sum(unclear for _, unclear in errors)
    counts = (
        f"Within 25 %: {good} of {len(errors)}; not identified: {unclear}; otherwise: {len(errors) - good - unclear}."
    )
    fill(Path(__file__).parent / "README.md", f"{table(HEADER, rows, text_columns=2)}\n\n{counts}")
