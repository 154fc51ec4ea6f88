"""`collect.py least TRIED.json ...` prints the sigma2 with the least log-loss; `collect.py table RUN ...` a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEADER = ("labels", "model", "sigma2", "accuracy %", "95 % interval", "log-loss", "calibration error %", "passes")


def least(paths: list[str]) -> str:
    """The part of the name that says sigma2: LABELS-MODEL-SIGMA2.tried.json."""
    losses = {path: json.loads(Path(path).read_text())["calibration"]["log_loss"] for path in paths}
    best = min(losses, key=losses.__getitem__)
    return Path(best).name.removesuffix(".tried.json").rsplit("-", 1)[1]


def row(run: str) -> tuple[str, ...]:
    scores, training = (json.loads(Path(f"{run}.{part}.json").read_text()) for part in ("scores", "training"))
    labels, model = Path(run).name.split("-")
    interval, calibration = scores["intervals"]["figures"]["accuracy"], scores["calibration"]
    return (
        labels.removesuffix("class"),
        model,
        Path(f"{run}.sigma2").read_text().strip(),
        f"{100 * scores['accuracy']:.2f}",
        f"{100 * interval['low']:.2f} to {100 * interval['high']:.2f}",
        f"{calibration['log_loss']:.4f}",
        f"{100 * calibration['calibration_error']:.2f}",
        str(training["passes"]),
    )


def main(what: str, names: list[str]) -> None:
    if what == "least":
        print(least(names))
        return
    lines = [HEADER, tuple("---" for _ in HEADER), *map(row, names)]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
