"""Write digits.conll: real 8x8 images of handwritten digits, arranged into sequences with label dependencies.

The images are the 1,797 that ship inside scikit-learn (`sklearn.datasets.load_digits`): the test part of
"Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning Repository,
CC BY 4.0. Pixels and labels are unchanged; the order of the images is synthetic. The seed is 1998.

Columns, separated by one space: 64 integers from 0 to 16, row by row from the top left, then the digit as the
label.

Every image is used exactly once, in sequences of 6 to 12. After digit d comes d + 1 with probability 0.5,
d + 3 with 0.2, d again with 0.15 (modulo 10), else the digit of any unused image; the image is a random
unused one of its digit. A digit that is used up leaves the draw to the others. The sequences are shuffled at
the end, so that the last ones drawn, from what was left, do not stand together.

scikit-learn is needed only to run this script, not to use its output.
"""

import argparse
import math
import random
from pathlib import Path

SEED = 1998
STEPS = {1: 0.5, 3: 0.2, 0: 0.15}  # added to the digit, modulo 10
ANY = 0.15  # the digit of any unused image
SHORTEST, LONGEST = 6, 12


def shuffled(rng: random.Random, items: list) -> list:
    """The items in random order, from `random()` alone: the same in every Python version."""
    keys = [rng.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def draw_lengths(rng: random.Random, total: int) -> list[int]:
    """Sequence lengths within SHORTEST..LONGEST that add up to `total`."""
    lengths = []
    while total > LONGEST:
        length = SHORTEST + int(rng.random() * (LONGEST - SHORTEST + 1))
        length = min(length, total - SHORTEST)
        lengths.append(length)
        total -= length
    return [*lengths, total]


def draw_digit(rng: random.Random, previous: int | None, unused: dict[int, list[int]]) -> int:
    """The next digit, among those with an image left."""
    left = math.fsum(len(images) for images in unused.values())
    weights = {digit: ANY * len(images) / left for digit, images in unused.items() if images}
    if previous is not None:
        for step, probability in STEPS.items():
            digit = (previous + step) % 10
            if digit in weights:
                weights[digit] += probability
    mark = rng.random() * math.fsum(weights.values())
    for digit, weight in weights.items():
        if mark < weight:
            return digit
        mark -= weight
    return digit  # rounding


def arrange(labels: list[int], seed: int = SEED) -> list[list[int]]:
    """Sequences of image numbers, each number once."""
    rng = random.Random(seed)
    unused = {d: shuffled(rng, [i for i, label in enumerate(labels) if label == d]) for d in range(10)}
    sequences = []
    for length in draw_lengths(rng, len(labels)):
        sequence: list[int] = []
        for _ in range(length):
            digit = draw_digit(rng, labels[sequence[-1]] if sequence else None, unused)
            sequence.append(unused[digit].pop())
        sequences.append(sequence)
    return shuffled(rng, sequences)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the handwritten digits (needs scikit-learn).")
    parser.add_argument("output", nargs="?", type=Path, default=Path(__file__).with_name("digits.conll"))
    output = parser.parse_args().output

    from sklearn.datasets import load_digits

    data = load_digits()
    images = data.data.astype(int).tolist()  # [1797][64]
    labels = data.target.tolist()
    rows = [" ".join(map(str, [*image, label])) + "\n" for image, label in zip(images, labels, strict=True)]
    text = "\n".join("".join(rows[i] for i in sequence) for sequence in arrange(labels))
    output.write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    main()
