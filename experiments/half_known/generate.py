"""A tenth of the labels, half known in four ways: `generate.py TRAIN MODEL_OF_EVEN MODEL_OF_ODD SEED FOLDER`.

Beside the label that is right stands the one that a model of the other half of the sentences gives the largest
marginal of all others. FOLDER gets a file KIND-SEED.conll of each kind.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from kcrf_core.corpora import read_corpus
from kcrf_core.model import Model

SHARE = 0.1
KINDS = ("sets", "equal", "weighed", "missing")


def main(train: str, even: str, odd: str, seed: int, to: str) -> None:
    corpus = read_corpus(train)
    numbers = np.repeat(np.arange(corpus.sequences), np.diff(corpus.offsets))
    gold, others, weights = list(corpus.columns[-1]), [""] * corpus.positions, np.zeros((corpus.positions, 2))
    for half, path in enumerate((odd, even)):  # even sentences get labels of the model of odd ones
        model = Model.load(path)
        part = corpus.subset(np.arange(half, corpus.sequences, 2))
        found = model.infer(model.encoding.encode(part)).marginals.node.astype(np.float64)
        known = {label: place for place, label in enumerate(model.labels)}
        for row, t in enumerate(np.flatnonzero(numbers % 2 == half).tolist()):
            place = known.get(gold[t], -1)
            right = found[row, place] if place >= 0 else 0.0
            found[row, place] = -1 if place >= 0 else found[row, place]
            best = int(found[row].argmax())
            others[t], weights[t] = model.labels[best], (right, found[row, best])
    weights = np.maximum(weights, 0.01)
    weights /= weights.sum(axis=1, keepdims=True)
    chosen = np.random.default_rng(seed).random(corpus.positions) < SHARE
    lines = Path(train).read_text(encoding="utf-8").split("\n")
    for kind in KINDS:
        out = lines.copy()
        for t in np.flatnonzero(chosen).tolist():
            one, two, (p, q) = gold[t], others[t], weights[t]
            text = {"sets": f"{one}|{two}", "equal": f"{one}:0.5|{two}:0.5", "missing": "?"}
            text["weighed"] = f"{one}:{p:.3f}|{two}:{q:.3f}"
            line = int(corpus.lines[t]) - 1
            out[line] = f"{out[line].rsplit(None, 1)[0]} {text[kind]}"
        (Path(to) / f"{kind}-{seed}.conll").write_text("\n".join(out), encoding="utf-8")
    print(f"{chosen.sum():,} of {corpus.positions:,} labels; weight of the right one: {weights[chosen, 0].mean():.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), sys.argv[5])
