"""The table of README.md: `collect.py build/COUNT-KIND-SEED ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

MEASURES = ("wrong", "context", "marginal")
HEADER = ("sentences", "exchanged", "seed", "labels", *(f"folds, {name}" for name in MEASURES), "model, context",
          "model, marginal", "number told")  # fmt: skip


def precisions(path: str, wrong: set[int]) -> dict[str, str]:
    """Of as many positions as are wrong, the part that is, in per cent, by each measure."""
    positions = json.loads(Path(path).read_text())["positions"]
    found = {}
    for name in MEASURES:
        first = sorted(positions, key=lambda one: -one[name] if name == "wrong" else one[name])[: len(wrong)]
        found[name] = f"{100 * sum(one['line'] in wrong for one in first) / len(wrong):.1f}"
    return found


def row(run: str) -> tuple[str, ...]:
    wrong = set(map(int, Path(f"{run}.conll.wrong").read_text().split()))
    folds, told = precisions(f"{run}.folds.json", wrong), json.loads(Path(f"{run}.folds.json").read_text())
    model = precisions(f"{run}.model.json", wrong)
    count, kind, seed = Path(run).name.split("-")
    number = f"{told['expected_errors']:,.0f} ± {told['standard_error']:.0f}"
    change = f"{100 * (told['expected_errors'] / len(wrong) - 1):+.0f} %"
    return (count, kind, seed, f"{len(wrong):,}", *folds.values(), model["context"], model["marginal"],
            f"{number} ({change})")  # fmt: skip


if __name__ == "__main__":
    fill(Path(__file__).parent / "README.md", table(HEADER, map(row, sys.argv[1:]), text_columns=2))
