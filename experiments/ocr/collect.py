"""A Markdown table of the runs named by their paths without suffixes: `collect.py build/small-rbf-1 ...`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEADER = ("protocol", "kernel", "order", "letter error %", "word error %", "P", "certified gap", "passes", "seconds")


def row(run: str) -> tuple[str, ...]:
    scores, training = (json.loads(Path(f"{run}.{part}.json").read_text()) for part in ("scores", "training"))
    protocol, kernel, order = Path(run).name.split("-")
    return (
        protocol,
        kernel,
        order,
        f"{100 * (1 - scores['accuracy']):.2f}",
        f"{100 * (1 - scores['sequence_accuracy']):.2f}",
        f"{training['objective']:.2f}",
        f"{training['certified_gap']:.1e}",
        str(training["passes"]),
        f"{training['seconds']:.0f}",
    )


def main(runs: list[str]) -> None:
    lines = [HEADER, tuple("---" for _ in HEADER), *map(row, runs)]
    print("\n".join(f"| {' | '.join(line)} |" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1:])
