"""Weigh sequences that have a label: `weigh.py LABEL WEIGHT DATA OUT`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(label: str, weight: str, data: str, out: str) -> None:
    sequences = Path(data).read_text(encoding="utf-8").strip("\n").split("\n\n")
    having = [any(line.endswith(f" {label}") for line in one.split("\n")) for one in sequences]
    heads = [f"# weight={weight}\n" if has and weight != "1" else "" for has in having]
    text = "".join(f"{head}{one}\n\n" for head, one in zip(heads, sequences, strict=True))
    Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
