"""Add a column of weights before the labels, for sequences that have a label: `weigh.py LABEL WEIGHT DATA OUT`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(label: str, weight: str, data: str, out: str) -> None:
    text = []
    for sequence in Path(data).read_text(encoding="utf-8").strip("\n").split("\n\n"):
        rows = [line.rsplit(" ", 1) for line in sequence.split("\n")]
        head = weight if any(last == label for _, last in rows) else "1"
        text += [f"{values} {head} {last}\n" for values, last in rows] + ["\n"]
    Path(out).write_text("".join(text), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
