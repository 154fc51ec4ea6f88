"""python-crfsuite beside it, with attributes of one of the kinds of `attributes.py`.

peer.py KINDS TRAINING TEST TAGGED FIGURES [JOBS]    writes gold and predicted labels of TEST, and what it took

c2, and the kind where there are several (`bins,bins5`), are tuned on every tenth sequence of the training data by what
the test is judged by: labels that are right, or the F1 of spans.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pycrfsuite
from attributes import Rows, maker, read_attributes, read_sequences

C2 = [10.0**half for half in (-2, -1.5, -1, -0.5, 0, 0.5, 1)]
START = 4  # 1, where CRFsuite begins
HELD_OUT = 10  # every tenth sequence


def read(kind: str, path: str) -> list[Rows]:
    return read_attributes(path) if kind == "given" else read_sequences(path)


def fit(kind: str, sequences: Sequence[Rows], path: str, **parameters: float) -> None:
    trainer = pycrfsuite.Trainer("lbfgs", parameters, verbose=False)
    attributes = maker(kind, sequences)
    for rows in sequences:
        trainer.append(attributes(rows), [row[-1] for row in rows])
    trainer.train(path)


def tagged(kind: str, training: Sequence[Rows], sequences: Sequence[Rows], path: str) -> list[list[str]]:
    tagger, attributes = pycrfsuite.Tagger(), maker(kind, training)
    tagger.open(path)
    return [tagger.tag(attributes(rows)) for rows in sequences]


def spans(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """Spans of labels such as B-NP and I-NP: begin, end and type."""
    out, begin, kind = set(), 0, None
    for t, label in enumerate([*labels, "O"]):
        mark, _, own = label.partition("-")
        if kind is not None and (mark in ("B", "O") or own != kind):
            out.add((begin, t, kind))
            kind = None
        if mark in ("B", "I") and kind is None:
            begin, kind = t, own
    return out


def figure(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    if any(label.startswith("B-") for labels in gold for label in labels):
        both = sum(len(spans(a) & spans(b)) for a, b in zip(gold, found, strict=True))
        there = sum(len(spans(labels)) for labels in (*gold, *found))
        return 2 * both / there if there else 0.0
    pairs = [pair for a, b in zip(gold, found, strict=True) for pair in zip(a, b, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def judged(place: int) -> float:
    """Return the figure of held-out data with one c2, in a process of its own."""
    kind, rest, held, folder = STATE["tuning"]
    fit(kind, rest, f"{folder}/tuning{place}", c2=C2[place])
    found = tagged(kind, rest, held, f"{folder}/tuning{place}")
    return figure([[row[-1] for row in rows] for rows in held], found)


STATE: dict[str, tuple[str, Sequence[Rows], Sequence[Rows], str]] = {}  # what forked processes take over


def tuned(kind: str, training: Sequence[Rows], folder: str, jobs: int) -> tuple[float, dict[str, float]]:
    """c2 by held-out data: up and down from CRFsuite's own, as long as it helps.

    With several jobs all values are tried at the same time, and the same one is chosen.
    """
    held, rest = training[HELD_OUT - 1 :: HELD_OUT], [rows for n, rows in enumerate(training) if (n + 1) % HELD_OUT]
    STATE["tuning"] = kind, rest, held, folder
    ahead: list[float] = []
    if jobs > 1:
        with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
            ahead = list(pool.map(judged, range(len(C2))))
    found: dict[int, float] = {}

    def judge(place: int) -> float:
        if place not in found:
            found[place] = ahead[place] if ahead else judged(place)
        return found[place]

    best = START
    for step in (-1, 1):
        misses, place = 0, START
        while misses < 2 and 0 <= (place := place + step) < len(C2):
            misses = 0 if judge(place) > judge(best) else misses + 1
            best = max(found, key=found.__getitem__)
    return C2[best], {f"{C2[place]:.4g}": value for place, value in sorted(found.items())}


def main(kinds: str, training: str, test: str, output: str, figures: str, jobs: str = "1") -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        tried = {kind: tuned(kind, read(kind, training), folder, int(jobs)) for kind in kinds.split(",")}
        kind = max(tried, key=lambda kind: max(tried[kind][1].values()))
        sequences, c2 = read(kind, training), tried[kind][0]
        fit(kind, sequences, f"{folder}/model", c2=c2)
        judged = read(kind, test)
        found = tagged(kind, sequences, judged, f"{folder}/model")
    with open(output, "w", encoding="utf-8") as stream:
        for rows, labels in zip(judged, found, strict=True):
            stream.writelines(f"{row[-1]}\t{label}\n" for row, label in zip(rows, labels, strict=True))
            stream.write("\n")
    about = {"attributes": kind, "c2": c2, "tried": tried, "seconds": time.perf_counter() - began}
    Path(figures).write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
