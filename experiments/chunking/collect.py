"""The table of README.md from build/RUN.{training,scores}.json: `collect.py RUN ...`; others are left out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

TITLES = {
    "linear": "linear",
    "template": "linear, CRFsuite's 19 attributes",
    "pairs": "`pairs`: degree 2",
    "suffixes": "`suffixes`: degree 2, with suffixes of two and three letters and the shape of the word",
    "triples": "`triples`: degree 3 of the same, conjunctions in at least two positions",
}
HEADER = ("run", "sigma2", "columns", "passes", "seconds", "F1, test", "accuracy, test")


def row(run: str) -> list[str]:
    training, scores = (json.loads(Path(f"build/{run}.{part}.json").read_text()) for part in ("training", "scores"))
    columns = (training["parameters"] // training["score_columns"]) - training["score_columns"] - 2
    return [
        TITLES[run],
        f"{next(iter(training['sigma2'].values())):g}",
        f"{columns:,}",
        str(training["passes"]),
        f"{training['seconds']:.0f}",
        f"{100 * scores['spans']['f1']:.2f}",
        f"{100 * scores['accuracy']:.2f}",
    ]


if __name__ == "__main__":
    made = [run for run in sys.argv[1:] if Path(f"build/{run}.scores.json").exists()]
    for run in set(sys.argv[1:]) - set(made):
        print(f"not measured: {run}", file=sys.stderr)
    if not made:
        raise SystemExit("collect.py: nothing was measured")
    fill(Path(__file__).parent / "README.md", table(HEADER, map(row, made)))
