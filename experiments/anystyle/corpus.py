"""Five folds of AnyStyle's references: corpus.py ANYSTYLE DICTIONARY OUT.

ANYSTYLE is a clone of AnyStyle's repository and DICTIONARY one of anystyle-data, which has its dictionary; both bare or
not. Files are read from their newest commits:

    FOLD.train, FOLD.test               token, AnyStyle's observations (`features.py`) and the label, for FOLD 1 to 5
    FOLD.train.words, FOLD.test.words   token and label
    template                            AnyStyle's patterns for Wapiti
    NAME.txt                            words of the dictionary with the tag NAME, for `kcrf train --lexicon`
    corpus.json                         commits and counts

References are the sequences of `res/parser/core.xml`, their tokens separated by white space. Near copies, as
`kcrf crossval` finds them, and equal references are in one fold.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from hashlib import blake2b, sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from features import Dictionary, observed, read_features

from kcrf_core.training import HoldOut, kept_together

FOLDS = 5
LIBRARY, REFERENCES, WORDS = "lib/anystyle", "res/parser/core.xml", "lib/anystyle/data/dict.txt.gz"
SPACE = re.compile("[ \\t\\r\\n\\f\\v]+")  # a no-break space is part of a token

Reference = tuple[list[str], list[str]]  # tokens and labels


def git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], stdout=subprocess.PIPE, check=True).stdout


def references(text: bytes) -> list[Reference]:
    """Return tokens and labels of each reference."""
    out = []
    for sequence in ElementTree.fromstring(text).iter("sequence"):
        pairs = [(token, part.tag) for part in sequence for token in SPACE.split(part.text or "") if token]
        if pairs:
            out.append(([token for token, _ in pairs], [label for _, label in pairs]))
    return out


def dealt(every: Sequence[Reference]) -> np.ndarray:
    """Return the fold of each reference, [S]; groups of near copies go, in an order by hashes, to the smallest fold."""
    hashes = [blake2b(token.encode(), digest_size=8).digest() for tokens, _ in every for token in tokens]
    sizes = np.array([len(tokens) for tokens, _ in every])
    positions = np.frombuffer(b"".join(hashes), dtype="<u8").astype(np.uint64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    groups = kept_together(HoldOut(), positions, offsets, "together", FOLDS, print).groups
    group = np.arange(len(every)) if groups is None else np.array(groups)
    first: dict[str, int] = {}  # equal references, also short ones, which have no n-grams
    for place, (tokens, _) in enumerate(every):
        other = first.setdefault(" ".join(tokens), int(group[place]))
        group[group == group[place]] = other
    members = {int(one): np.flatnonzero(group == one) for one in np.unique(group)}
    order = sorted(members, key=lambda one: sha256(" ".join(every[members[one][0]][0]).encode()).digest())
    folds, held = np.zeros(len(every), dtype=int), np.zeros(FOLDS, dtype=int)
    for one in order:
        fold = int(np.argmin(held))
        folds[members[one]] = fold
        held[fold] += sizes[members[one]].sum()
    return folds


def write(path: Path, sequences: Sequence[Sequence[Sequence[str]]]) -> None:
    text = "\n\n".join("\n".join("\t".join(row) for row in rows) for rows in sequences)
    path.write_text(text + "\n\n", encoding="utf-8", newline="\n")


def main(anystyle: Path, data: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    names = git(anystyle, "ls-tree", "-r", "--name-only", "HEAD", LIBRARY).decode().split()
    files = {name.removeprefix(f"{LIBRARY}/"): git(anystyle, "show", f"HEAD:{name}").decode()
             for name in names if name.endswith(".rb")}  # fmt: skip
    dictionary = Dictionary.read(files["dictionary.rb"], gzip.decompress(git(data, "show", f"HEAD:{WORDS}")).decode())
    (out / "template").write_bytes(git(anystyle, "show", f"HEAD:{LIBRARY}/support/parser.txt"))
    for tag in dictionary.tags:
        words = sorted(word for word, tags in dictionary.words.items() if word and tag in tags)
        (out / f"{tag}.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    every = references(git(anystyle, "show", f"HEAD:{REFERENCES}"))
    features = read_features(files, dictionary)
    rows = [[[*row, label] for row, label in zip(observed(features, tokens), labels, strict=True)]
            for tokens, labels in every]  # fmt: skip
    folds = dealt(every)
    for fold in range(FOLDS):
        for part, within in (("train", folds != fold), ("test", folds == fold)):
            own = [rows[place] for place in np.flatnonzero(within)]
            write(out / f"{fold + 1}.{part}", own)
            write(out / f"{fold + 1}.{part}.words", [[[row[0], row[-1]] for row in one] for one in own])
    about = {
        "anystyle": git(anystyle, "rev-parse", "--short=8", "HEAD").decode().strip(),
        "dictionary": git(data, "rev-parse", "--short=8", "HEAD").decode().strip(),
        "references": len(every),
        "tokens": sum(len(tokens) for tokens, _ in every),
        "labels": len({label for _, labels in every for label in labels}),
        "words": {tag: sum(tag in tags for tags in dictionary.words.values()) for tag in dictionary.tags},
    }
    (out / "corpus.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    print(about)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
