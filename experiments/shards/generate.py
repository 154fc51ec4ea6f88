"""Generated text with a million word types: words by Zipf's law, tags, and labels that depend on both.

    python generate.py POSITIONS OUTPUT [--types N] [--labels Y]

Columns are word, tag and label; sentences have 1 to 50 positions. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import sys

import numpy as np

TAGS, LONGEST, CHUNK = 45, 50, 1 << 18
NOISE = 0.1  # part of the labels that are drawn at random


def words(types: int) -> np.ndarray:
    """So many different words, the frequent ones short."""
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgk", np.uint8)
    out = []
    for number in range(types):
        text, rest = bytearray(), number + 1
        while rest:
            rest, digit = divmod(rest, len(letters))
            text.append(letters[digit])
        out.append(text.decode())
    return np.array(out, dtype=object)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("positions", type=int)
    parser.add_argument("output")
    parser.add_argument("--types", type=int, default=1_000_000)
    parser.add_argument("--labels", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random = np.random.default_rng([chosen.seed, chosen.types, chosen.labels])
    every = words(chosen.types)
    weights = 1 / np.arange(1, chosen.types + 1)
    edges = np.cumsum(weights / weights.sum())
    tag_of = random.integers(0, TAGS, chosen.types)
    label_of_word, label_of_tag = random.integers(0, chosen.labels, (2, chosen.types))
    tags = np.array([f"T{number}" for number in range(TAGS)], dtype=object)
    labels = np.array([f"L{number}" for number in range(chosen.labels)], dtype=object)
    every_nth = max(chosen.positions // chosen.types, 1)
    seen, written = np.zeros(chosen.types, dtype=bool), 0
    with (gzip.open if chosen.output.endswith(".gz") else open)(chosen.output, "wb") as stream:
        while written < chosen.positions:
            size = min(CHUNK, chosen.positions - written)
            which = np.minimum(np.searchsorted(edges, random.random(size)), chosen.types - 1)
            # Every type is there once at least: those of one word in so many follow the list of all.
            dealt = np.arange(-written % every_nth, size, every_nth)
            which[dealt] = (written + dealt) // every_nth % chosen.types
            seen[which] = True
            tag = np.where(random.random(size) < NOISE, random.integers(0, TAGS, size), tag_of[which])
            before = np.concatenate([[0], tag[:-1]])
            pair = label_of_tag[before * TAGS + tag]
            label = np.where(random.random(size) < 0.5, label_of_word[which], pair)
            label = np.where(random.random(size) < NOISE, random.integers(0, chosen.labels, size), label)
            ends = np.cumsum(random.integers(1, LONGEST + 1, size))
            last = np.zeros(size, dtype=bool)
            last[ends[ends <= size] - 1] = True
            last[-1] = True
            columns = zip(every[which], tags[tag], labels[label], last.tolist(), strict=True)
            lines = [f"{word}\t{own}\t{gold}\n" + "\n" * end for word, own, gold, end in columns]
            stream.write("".join(lines).encode())
            written += size
    print(f"{written:,} positions, {int(seen.sum()):,} word types", file=sys.stderr)


if __name__ == "__main__":
    main()
