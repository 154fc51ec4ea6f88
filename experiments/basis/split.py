"""Split a task into training and test parts: `split.py ocr|adl SEQUENCES TRAIN TEST`.

ocr   train on fold 0, test on folds 1-9 (`folds.txt` beside the sequences)
adl   half of the trials each, chosen by a fixed seed; each sequence is a trial of its own (`sequences.txt`)
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

SEED = 0


def main(task: str, source: str, train_path: str, test_path: str) -> None:
    sequences = Path(source).read_text(encoding="utf-8").strip("\n").split("\n\n")
    if task == "ocr":
        for_test = [fold != "0" for fold in Path(source).with_name("folds.txt").read_text().split()]
    else:
        lines = Path(source).with_name("sequences.txt").read_text(encoding="utf-8").splitlines()
        trials = [tuple(line.split("\t")[:2]) for line in lines]
        distinct = sorted(set(trials))
        held_out = set(random.Random(SEED).sample(distinct, len(distinct) // 2))
        for_test = [trial in held_out for trial in trials]
    for path, wanted in ((train_path, False), (test_path, True)):
        chosen = [sequence for sequence, test in zip(sequences, for_test, strict=True) if test == wanted]
        Path(path).write_text("".join(f"{sequence}\n\n" for sequence in chosen), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
