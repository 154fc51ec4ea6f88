"""Training, development and test parts of a task: `parts.py events PREFIX` or `parts.py walking PREFIX SEQUENCES`.

events    generated: 100 readings in each sequence, of three channels whose noise is like that of the reading before.
          One reading in 400 begins an event of three readings, which moves all channels by 1.5; noise has variance 1.
walking   trials of a wearable sensor: half for training, a quarter each for development and test, by a fixed seed
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np

SEED = 0
LENGTH, CHANNELS, LASTS, BEGINS = 100, 3, 3, 1 / 400
SEQUENCES = {"train": 600, "dev": 300, "test": 1200}


def events(rng: np.random.Generator, count: int) -> str:
    out = []
    for _ in range(count):
        begins = rng.random(LENGTH) < BEGINS
        event = np.convolve(begins, np.ones(LASTS))[:LENGTH] > 0
        noise = np.zeros((LENGTH, CHANNELS))
        for t in range(LENGTH):
            noise[t] = (0.6 * noise[t - 1] if t else 0.0) + 0.8 * rng.normal(size=CHANNELS)
        values = noise + 1.5 * event[:, None]
        rows = (" ".join(f"{value:.3f}" for value in row) for row in values.tolist())
        out += [f"{row} {'event' if here else 'none'}\n" for row, here in zip(rows, event, strict=True)] + ["\n"]
    return "".join(out)


def main(task: str, prefix: str, source: str | None = None) -> None:
    if task == "events":
        rng = np.random.default_rng(SEED)
        parts = {part: events(rng, count) for part, count in SEQUENCES.items()}
    else:
        sequences = Path(source).read_text(encoding="utf-8").strip("\n").split("\n\n")
        random.Random(SEED).shuffle(sequences)
        half, quarter = len(sequences) // 2, len(sequences) // 4
        ends = {"train": (0, half), "dev": (half, half + quarter), "test": (half + quarter, len(sequences))}
        parts = {part: "".join(f"{one}\n\n" for one in sequences[a:b]) for part, (a, b) in ends.items()}
    for part, text in parts.items():
        Path(f"{prefix}.{part}.conll").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
