"""Thresholds found by one half of some data and tried on the other: `measure.py MODEL DATA FIGURES`.

DATA, which the model was not trained on, is divided at random DIVISIONS times. Labels, marginals and thresholds are
those of `kcrf guarantee` and `kcrf tag`. FIGURES gets JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from readme import provenance

from kcrf_core.corpora import CodedColumn, read_corpus
from kcrf_core.errors import DataError
from kcrf_core.model import Decoder, Model, Wishes
from kcrf_core.scoring import Items, confidences, detect_scheme, find_guarantee
from kcrf_core.system import Workers

DIVISIONS = 100
AIMS = (
    *(("risk", "position", level) for level in (0.01, 0.02, 0.05)),
    *(("among-unmarked", "position", level) for level in (0.01, 0.02, 0.05)),
    *(("risk", "span", level) for level in (0.02, 0.05)),
    *(("sets", "position", level) for level in (0.05, 0.01)),
)


def smallest(items: Items, level: float, among: bool) -> float:
    """The share of items that has to be marked if their errors are known; candidates are confidences of wrong items."""
    order = np.argsort(-items.confidence, kind="stable")
    lost = np.cumsum((items.share * items.wrong)[order])
    allowed = level * np.cumsum(items.share[order]) if among else level * items.sequences
    kept = np.flatnonzero(lost <= allowed)
    return 1 - (kept[-1] + 1 if len(kept) else 0) / len(order)


def main(model_path: str, data: str, figures: Path) -> None:
    model = Model.load(model_path)
    encoding = model.encoding
    with Workers(1) as workers:
        corpus = read_corpus(data, encoding.format, encoding.columns, workers, encoding.layout)
        dataset = encoding.encode(corpus)
        parts = list(Decoder(model, Wishes(marginals=True)).decode(dataset, data, workers))
    labels, marginals = (np.concatenate([getattr(part, name) for part in parts]) for name in ("labels", "marginals"))
    gold, offsets, S = dataset.known_labels, dataset.offsets, dataset.sequences
    sequence = np.repeat(np.arange(S), np.diff(offsets))
    wrong, confidence = labels != gold, confidences(marginals, labels)
    of_gold = np.where(gold < 0, np.inf, -confidences(marginals, np.maximum(gold, 0)))
    every = {"position": (confidence, wrong, sequence), "sets": (of_gold, wrong, sequence)}
    if detect_scheme(model.labels) is not None:
        spans = Items.spans(CodedColumn.of(corpus.columns[-1]), model.labels, labels, offsets, confidence)
        having = np.unique(sequence[np.flatnonzero(np.array([name != "O" for name in model.labels])[labels])])
        every["span"] = spans.confidence, spans.wrong, having[spans.number]
    rows = []
    for kind, of, level in AIMS:
        arrays = every.get("sets" if kind == "sets" else of)
        if arrays is None:
            continue
        found = []
        for seed in range(DIVISIONS):
            half = np.zeros(S, dtype=bool)
            half[np.random.default_rng(seed).permutation(S)[: S // 2]] = True
            given, new = (Items(*(array[side[arrays[2]]] for array in arrays)) for side in (half, ~half))
            try:
                one = find_guarantee(given, kind, of, level)
            except DataError:
                continue
            limit = -one.threshold if kind == "sets" else one.threshold
            left = new.confidence > limit
            risk = achieved = new.risk(limit)
            if kind == "among-unmarked":
                achieved = risk * new.sequences / new.share[left].sum()
            if kind == "sets":
                where = ~half[sequence]
                extent = one.label_sets(labels[where], marginals[where]).sum() / where.sum()
                best = None
            else:
                extent, best = 1 - left.mean(), smallest(new, level, kind == "among-unmarked")
            found.append((achieved, extent, best))
        about = {"kind": kind, "of": of, "level": level, "errors": Items(*arrays).risk(-np.inf), "sequences": S // 2}
        rows.append({**about, "found": found})
    figures.write_text(json.dumps({"rows": rows, "with": provenance(0)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
