"""Split the OCR words into training and test parts: `split.py WORDS FOLDS PROTOCOL TRAIN TEST`.

    small   train on fold 0, test on folds 1-9; small3: train on fold 3, test on the others
    large   train on folds 1-9, test on fold 0; large3: test on fold 3, train on the others
    words   by word: a fifth of the distinct words is for the test alone, chosen by a fixed seed, so that no test word
            was seen in training
    tune_small, tune_large
            parts of the training data of small and large, to choose prior variances by: a third of fold 0, by a fixed
            seed, is for the test; folds 1-4 are to train on and fold 5 to test on

The first two are the protocols of the literature. There are only 55 distinct words, all of them in every fold: what a
second-order chain learns there is largely the lexicon. The third shows how much.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

TEST_SHARE, SEED = 0.2, 0


def main(words_path: str, folds_path: str, protocol: str, train_path: str, test_path: str) -> None:
    sequences = Path(words_path).read_text(encoding="utf-8").strip("\n").split("\n\n")
    if protocol == "words":
        spelled = ["".join(line.split()[-1] for line in sequence.split("\n")) for sequence in sequences]
        distinct = sorted(set(spelled))
        held_out = set(random.Random(SEED).sample(distinct, round(TEST_SHARE * len(distinct))))
        for_test = [word in held_out for word in spelled]
        print(f"test words: {' '.join(sorted(held_out))}", file=sys.stderr)
    else:
        folds = [int(line) for line in Path(folds_path).read_text().split()]
        if protocol == "tune_small":
            own = [number for number, fold in enumerate(folds) if fold == 0]
            held = set(random.Random(SEED).sample(own, len(own) // 3))
        elif protocol == "tune_large":
            own = [number for number, fold in enumerate(folds) if 1 <= fold <= 5]
            held = {number for number in own if folds[number] == 5}
        else:
            own, (direction, chosen) = list(range(len(folds))), re.fullmatch(r"(small|large)(\d?)", protocol).groups()
            held = {number for number in own if (folds[number] == int(chosen or 0)) == (direction == "large")}
        sequences = [sequences[number] for number in own]
        for_test = [number in held for number in own]
    for path, wanted in ((train_path, False), (test_path, True)):
        chosen = [sequence for sequence, test in zip(sequences, for_test, strict=True) if test == wanted]
        Path(path).write_text("".join(f"{sequence}\n\n" for sequence in chosen), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
