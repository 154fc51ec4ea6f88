"""Sequences in a random order, each once: a third to train on, and the rest. `divide.py FILE,... FIRST REST`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main(files: str, first: Path, rest: Path) -> None:
    found: dict[tuple[str, ...], str] = {}  # by the inputs; the label is the last column
    for file in files.split(","):
        for sequence in Path(file).read_text(encoding="utf-8").split("\n\n"):
            lines = [line for line in sequence.strip("\n").split("\n") if line.strip()]
            if lines:
                found.setdefault(tuple(line.rsplit(None, 1)[0] for line in lines), "\n".join(lines))
    sequences = [list(found.values())[number] for number in np.random.default_rng(0).permutation(len(found))]
    third = len(sequences) // 3
    for path, own in ((first, sequences[:third]), (rest, sequences[third:])):
        path.write_text("\n\n".join(own) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
