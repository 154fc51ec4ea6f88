"""Draw sequences at random, keeping their order: `draw.py DATA COUNT SEED OUTPUT`."""

from __future__ import annotations

import random
import sys
from pathlib import Path


def main(data: str, count: str, seed: str, output: str) -> None:
    sequences = Path(data).read_text(encoding="utf-8").strip("\n").split("\n\n")
    drawn = sorted(random.Random(int(seed)).sample(range(len(sequences)), int(count)))
    Path(output).write_text("".join(f"{sequences[number]}\n\n" for number in drawn), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
