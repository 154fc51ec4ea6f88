"""python-crfsuite with features made by hand: crfsuite.py TRAIN TEST TAGGED.

Features of a token are its word in lower case, prefixes and suffixes of one to three letters, and the kinds of its
characters; words in lower case and kinds of the two neighbours on each side; its place in tenths of the reference, and
whether it is the first or last. Penalties are those of PENALTIES with more labels right on every fifth reference of
TRAIN by a fit to the others.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pycrfsuite

REACH = 2
# c1 and c2: the program's own, and those of its interface's tutorials.
PENALTIES = ((0.0, 1.0), (0.1, 0.1))
ITERATIONS = 200

References = list[tuple[list[str], list[str]]]  # tokens and labels


def read(path: str) -> References:
    """Return the references of a file with tokens in the first column and labels in the last one."""
    blocks = Path(path).read_text(encoding="utf-8").strip("\n").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n")] for block in blocks]
    return [([row[0] for row in one], [row[-1] for row in one]) for one in rows]


def kinds(word: str) -> str:
    """Return a word with a letter for each run of capitals, small letters and digits."""
    out = ""
    for character in word:
        kind = "A" if character.isupper() else "a" if character.isalpha() else "0" if character.isdigit() else character
        out += kind if out[-1:] != kind else ""
    return out


def features(tokens: Sequence[str]) -> list[list[str]]:
    """Return the attributes of each token of a reference."""
    shapes, lower, out = [kinds(token) for token in tokens], [token.lower() for token in tokens], []
    for place, token in enumerate(tokens):
        own = ["bias", f"word={token}", f"place={10 * place // len(tokens)}"]
        own += [f"{name}{size}={part}" for size in (1, 2, 3)
                for name, part in (("prefix", token[:size]), ("suffix", token[-size:]))]  # fmt: skip
        for step in range(-REACH, REACH + 1):
            at = place + step
            inside = 0 <= at < len(tokens)
            own += [f"{step}:lower={lower[at]}", f"{step}:kinds={shapes[at]}"] if inside else [f"{step}:none"]
        out.append(own)
    return out


def fit(references: References, model: str, c1: float, c2: float) -> pycrfsuite.Tagger:
    """Train, and open the model."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": ITERATIONS})
    for tokens, labels in references:
        trainer.append(features(tokens), labels)
    trainer.train(model)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return tagger


def main(train: str, test: str, tagged: str) -> None:
    references = read(train)
    inner = [one for number, one in enumerate(references) if number % 5]
    with tempfile.TemporaryDirectory() as folder:
        model, right = str(Path(folder, "model")), {}
        for penalties in PENALTIES:
            tagger = fit(inner, model, *penalties)
            pairs = [(tagger.tag(features(tokens)), labels) for tokens, labels in references[::5]]
            right[penalties] = sum(a == b for own, gold in pairs for a, b in zip(own, gold, strict=True))
        best = max(PENALTIES, key=lambda one: right[one])
        print(f"c1 {best[0]:g}, c2 {best[1]:g}; labels right: {right}")
        tagger = fit(references, model, *best)
        rows = [(tokens, labels, tagger.tag(features(tokens))) for tokens, labels in read(test)]
    text = "\n\n".join("\n".join(map("\t".join, zip(*row, strict=True))) for row in rows)
    Path(tagged).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
