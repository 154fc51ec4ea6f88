"""Vectors of words, made of a text alone: `python make_word_vectors.py WIDTH TEXT [TABLE.vec] [FILE FILE.npy]...`.

Words of TEXT (the first column, in small letters) that have the same neighbours get vectors that lie near each other:

    count     how often a word has another one two places before it, one before, one after, two after
    PPMI      log(n(word, neighbour) N / n(word) n(neighbour)), and 0 where that is negative
    SVD       the WIDTH strongest directions of that table, each with the root of its strength

TABLE.vec gets a line for each word that stands in TEXT more than once, as `kcrf train --embeddings` reads it. Each FILE
gets a FILE.npy with a row for each of its lines that is not blank; words that are not in the table share a vector.
Nothing looks at labels.
"""

import argparse
from collections import Counter

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

PLACES = (-2, -1, 1, 2)


def sentences(path):
    with open(path, encoding="utf-8") as text:
        blocks = text.read().split("\n\n")
    return [[line.split()[0].lower() for line in block.splitlines()] for block in blocks if block.strip()]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("width", metavar="WIDTH", type=int, help="length of the vectors")
parser.add_argument("text", metavar="TEXT", help="text to learn from: a word in the first column, blank lines between")
parser.add_argument(
    "files", metavar="FILE", nargs="+", help="TABLE.vec to write, and pairs: a text, and FILE.npy to write"
)
given = parser.parse_args()
width, train, files = given.width, sentences(given.text), given.files
counts = Counter(word for sentence in train for word in sentence)
numbers = {word: number for number, word in enumerate(word for word in counts if counts[word] > 1)}
RARE, EDGE = len(numbers), len(numbers) + 1
# All sentences in a row, with two edges after each: so neighbours are found by shifting.
row = np.array([numbers.get(word, RARE) if word else EDGE for sentence in train for word in (*sentence, "", "")])
t = np.flatnonzero(row != EDGE)
words = np.concatenate([row[t] for _ in PLACES])
others = np.concatenate([p * (EDGE + 1) + row[t + place] for p, place in enumerate(PLACES)])
table = coo_array((np.ones(len(words)), (words, others)), shape=(EDGE, len(PLACES) * (EDGE + 1)))
table.sum_duplicates()
expected = table.sum(axis=1)[table.row] * table.sum(axis=0)[table.col] / table.sum()
table.data = np.maximum(np.log(table.data / expected), 0)  # PPMI
directions, strengths, _ = svds(table.tocsr(), k=width, random_state=0)
directions *= np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(width)])  # each sign is free
vectors = directions * np.sqrt(strengths)  # [words, width]

if len(files) % 2:
    with open(files.pop(0), "w", encoding="utf-8") as stream:
        stream.write(f"{len(numbers)} {width}\n")
        for word, number in numbers.items():
            stream.write(f"{word} {' '.join(f'{value:.4f}' for value in vectors[number])}\n")

for path, output in zip(files[::2], files[1::2], strict=True):
    rows = [numbers.get(word, RARE) for sentence in sentences(path) for word in sentence]
    np.save(output, vectors[rows].astype(np.float32))
