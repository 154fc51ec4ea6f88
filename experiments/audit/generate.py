"""Sequences whose true labels are known: `generate.py COUNT SEED OUTPUT`.

Five labels follow each other with probabilities of their own. Each gives words of its own, frequent and rare ones, but
one word in ten may stand for any label, so that models have doubts that are no errors.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

LABELS, WORDS = "ABCDE", 150


def main(count: int, seed: int, output: Path) -> None:
    rng = np.random.default_rng(seed)
    follows = rng.dirichlet(np.full(len(LABELS), 0.5), size=len(LABELS))
    frequency = 1 / np.arange(1, WORDS + 1)
    frequency /= frequency.sum()
    lines = []
    for _ in range(count):
        label = int(rng.integers(len(LABELS)))
        for _ in range(int(rng.integers(5, 25))):
            own = "x" if rng.random() < 0.1 else LABELS[label].lower()
            lines.append(f"{own}{rng.choice(WORDS, p=frequency)} {LABELS[label]}")
            label = int(rng.choice(len(LABELS), p=follows[label]))
        lines.append("")
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
