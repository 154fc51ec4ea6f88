"""Scores of models trained on nested parts of a set, up to four times a quarter's: `measure.py NAME -o FILE ...`.

The sequences are divided into twenty folds, near copies in the same one. Five of them are the quarter that a user would
have: each is the test part of a model that is trained on the other four, on a half of them, a quarter and so on, and
then on twice and four times as much, with sequences of the remaining fifteen. All models label the same test folds.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kcrf_core.corpora import read_corpus
from kcrf_core.selection import Division, Plan, Task, make_plan, make_settings, run_plan

# Fast settings: one sigma2, one decoder, the default features without a comparison of others.
FIXED = {"min_count": 1, "sigma2": 1.0}
SPANS, LABELS = FIXED | {"decode": "viterbi"}, FIXED | {"decode": "posterior"}
NUMBERS = {"kernel": "linear", "sigma2": 1.0, "decode": "posterior"}
LEAST, HALVINGS = 8, 5


@dataclass(frozen=True)
class Source:
    files: str  # below DATA, SETS or MORE, separated by spaces
    most: int  # sequences that are used
    settings: dict


BOTH = "SETS/{0}/train.conll SETS/{0}/test.conll"
DESIGN = {
    "addresses": Source("MORE/address.xml", 700, LABELS),
    "persons": Source("MORE/person.xml", 1500, LABELS),
    "companies": Source("MORE/company.xml", 800, LABELS),
    "references": Source("MORE/core.xml", 500, LABELS),
    "accents": Source("DATA/swbd_accent/all.conll", 3000, LABELS),
    "prosody": Source("DATA/helsinki_prosody/dev.2class.conll", 1500, LABELS),
    "morphemes": Source(BOTH.format("design/morphemes"), 4000, LABELS),
    "chat": Source(BOTH.format("design/chat"), 2000, LABELS),
    "spanish": Source(BOTH.format("design/spanish"), 1200, SPANS),
    "japanese": Source(BOTH.format("design/japanese"), 500, SPANS),
    "japanesene": Source("DATA/crfpp/JapaneseNE/train.conll DATA/crfpp/JapaneseNE/test.conll", 700, SPANS),
    "wnut17": Source("DATA/wnut17/train.conll DATA/wnut17/dev.conll", 2000, SPANS),
}
SHOWN = {
    "diacritics": Source(BOTH.format("validation/diacritics"), 300, LABELS),
    "thai": Source(BOTH.format("validation/thai"), 798, LABELS),
    "phonemes": Source(BOTH.format("validation/phonemes"), 3000, LABELS),
    "telugu": Source(BOTH.format("validation/telugu"), 940, LABELS),
    "languages": Source(BOTH.format("validation/languages"), 1383, LABELS),
    "welsh": Source(BOTH.format("validation/welsh"), 1200, LABELS),
    "ingredients": Source(BOTH.format("validation/ingredients"), 3788, SPANS),
    "strokes": Source(BOTH.format("validation/strokes"), 897, NUMBERS),
    "conll2000": Source("DATA/conll2000/train.conll", 1500, SPANS),
    "ocr": Source("DATA/ocr/all.conll", 3000, NUMBERS),
}


def quarter(plan: Plan, first: int, seed: int) -> Plan:
    """Return the plan of a quarter, five of twenty folds from this one on, with training parts of all sizes."""
    parts = [plan.folds[(first + number) % 20].test for number in range(20)]
    folds = []
    for test in range(5):
        rng = np.random.default_rng([seed, first, test])
        near = rng.permutation(np.concatenate([parts[other] for other in range(5) if other != test]))
        order = np.concatenate([near, rng.permutation(np.concatenate(parts[5:]))])
        sizes = [len(near) >> halvings for halvings in range(HALVINGS - 1, -1, -1)]
        sizes = [size for size in sizes if size >= LEAST] + [2 * len(near), 4 * len(near)]
        nested = tuple(np.sort(order[:size]) for size in sizes)
        folds.append(replace(plan.folds[test], test=parts[test], nested=nested))
    fewest = min(len(fold.nested) for fold in folds)
    return replace(plan, folds=tuple(replace(fold, nested=fold.nested[-fewest:]) for fold in folds))


def measure(name: str, places: dict[str, Path], seed: int, first: int) -> dict:
    """Return scores [sizes, folds] of a set, and what they were measured on."""
    began, source = time.process_time(), (DESIGN | SHOWN)[name]
    parts = [file.partition("/") for file in source.files.split()]
    texts = [(places[place] / path).read_text(encoding="utf-8").strip("\n") for place, _, path in parts]
    with TemporaryDirectory() as folder:
        joined = Path(folder) / "all.txt"
        joined.write_text("\n\n".join(texts) + "\n", encoding="utf-8", newline="\n")
        text = read_corpus(joined)
    chosen = np.random.default_rng(seed).permutation(text.sequences)[: source.most]
    corpus = text.subset(np.sort(chosen))
    whole = make_plan(corpus, {}, "options", make_settings({}, source.settings), Division(20, seed=seed))
    plan = quarter(whole, first, seed)
    found = run_plan(plan, threads=1)
    sizes, folds = range(len(plan.folds[0].nested)), range(5)
    return {
        "name": name,
        "seed": seed,
        "first": first,
        "metric": plan.judged_by,
        "sequences": corpus.sequences,
        "positions": corpus.positions,
        "sizes": [len(part) for part in plan.folds[0].nested],
        "scores": [[found[Task(0, f, k)][plan.judged_by] for f in folds] for k in sizes],
        "seconds": time.process_time() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=[*DESIGN, *SHOWN])
    for place in ("data", "sets", "more"):
        parser.add_argument(f"--{place}", type=Path, default=Path("."))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="first of the five folds that are the quarter")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    places = {"DATA": given.data, "SETS": given.sets, "MORE": given.more}
    given.output.write_text(json.dumps(measure(given.name, places, given.seed, given.first)), encoding="utf-8")


if __name__ == "__main__":
    main()
