"""The table of README.md: `collect.py build/LABELS-MODEL ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from readme import fill, table

HEADER = ("labels", "model", "sigma2", "accuracy %", "95 % interval", "log-loss", "calibration error %", "passes")


def row(run: str) -> tuple[str, ...]:
    scores, training = (json.loads(Path(f"{run}.{part}.json").read_text()) for part in ("scores", "training"))
    labels, model = Path(run).name.split("-")
    interval, calibration = scores["intervals"]["figures"]["accuracy"], scores["calibration"]
    return (
        labels.removesuffix("class"),
        model,
        f"{next(iter(training['sigma2'].values())):g}",
        f"{100 * scores['accuracy']:.2f}",
        f"{100 * interval['low']:.2f} to {100 * interval['high']:.2f}",
        f"{calibration['log_loss']:.4f}",
        f"{100 * calibration['calibration_error']:.2f}",
        str(training["passes"]),
    )


if __name__ == "__main__":
    fill(Path(__file__).parent / "README.md", table(HEADER, map(row, sys.argv[1:]), text_columns=2))
