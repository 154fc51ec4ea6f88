"""CRFsuite and a support vector machine beside kcrf. `peers.py crfsuite|svc KIND TRAINING TEST TAGGED FIGURES [JOBS]`.

KIND of the inputs is numbers, symbols or words (`gather.py`). Everything is chosen by five folds of whole training
sequences (fewer where there are fewer sequences), pooled: first the kind of attributes (`../defaults/attributes.py`) or
the window, then c2 or C and gamma. JOBS folds of CRFsuite are computed at the same time. TAGGED gets gold and predicted
labels, FIGURES what was tried. FIGURES.tried has what CRFsuite tried so far: a run that was stopped goes on with it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import peer
from attributes import Rows, read_sequences
from sklearn.svm import SVC

FOLDS = 5
C2 = [10.0**half for half in (-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
START = 6  # 1, where CRFsuite begins
ITERATIONS = 500  # of CRFsuite, at most
SEED = 0
TRAINED, JUDGED = 4000, 2000  # positions of a fold that a support vector machine is fitted on, and judged on, at most
Labels = list[list[str]]


def kinds(kind: str, sequences: Sequence[Rows]) -> list[str]:
    """Return the kinds of attributes to try."""
    if kind == "numbers":
        return ["numbers2", "numbers5"]
    if kind == "symbols":
        return ["symbols3", "symbols5"]
    return ["words", "entities"] if len(sequences[0][0]) == 2 else ["tagged", "tagged_entities"]


def gold(sequences: Sequence[Rows]) -> Labels:
    return [[row[-1] for row in rows] for rows in sequences]


def folds(sequences: Sequence[Rows]) -> list[tuple[list[Rows], list[Rows]]]:
    """Return pairs of sequences to fit on and sequences held out."""
    number = min(FOLDS, len(sequences))
    if number < 2:
        raise SystemExit("one sequence cannot be held out")
    return [
        ([rows for k, rows in enumerate(sequences) if k % number != fold], list(sequences[fold::number]))
        for fold in range(number)
    ]


STATE: dict[str, list[tuple[list[Rows], list[Rows]]]] = {}  # what forked processes take over


def labelled(attributes: str, c2: float, fitted: Sequence[Rows], asked: Sequence[Rows]) -> Labels:
    with tempfile.TemporaryDirectory() as folder:
        peer.fit(attributes, fitted, f"{folder}/model", c2=c2, max_iterations=ITERATIONS)
        return peer.tagged(attributes, fitted, asked, f"{folder}/model")


def fold_labelled(attributes: str, c2: float, fold: int) -> Labels:
    return labelled(attributes, c2, *STATE["folds"][fold])


def crfsuite(kind: str, training: Sequence[Rows], test: Sequence[Rows], jobs: int, memory: Path) -> tuple[Labels, dict]:
    """Choose attributes at c2 = 1, then c2 by steps of a decade as long as they help, then of half a decade."""
    STATE["folds"] = divided = folds(training)
    known = [labels for _, held in divided for labels in gold(held)]
    tried: dict[str, float] = json.loads(memory.read_text()) if memory.exists() else {}

    def judge(attributes: str, place: int) -> float:
        name = f"{attributes} {C2[place]:.4g}"
        if name not in tried:
            task = partial(fold_labelled, attributes, C2[place])
            if jobs > 1:
                with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
                    found = list(pool.map(task, range(len(divided))))
            else:
                found = [task(fold) for fold in range(len(divided))]
            tried[name] = peer.figure(known, [labels for part in found for labels in part])
            memory.write_text(json.dumps(tried))
            print(name, f"{tried[name]:.4f}", file=sys.stderr, flush=True)
        return tried[name]

    attributes = max(kinds(kind, training), key=lambda name: judge(name, START))
    best = START
    for step in (-2, 2):
        while 0 <= best + step < len(C2) and judge(attributes, best + step) > judge(attributes, best):
            best += step
    around = [place for place in (best, best - 1, best + 1) if 0 <= place < len(C2)]
    best = max(around, key=lambda place: judge(attributes, place))
    found = labelled(attributes, C2[best], training, test)
    memory.unlink()
    return found, {"attributes": attributes, "c2": C2[best], "tried": tried}


class Windows:
    """Standardised numbers and indicators of other values, up to `reach` positions away; zero outside of a sequence."""

    def __init__(self, training: Sequence[Rows], reach: int):
        self._reach = reach
        self._columns: list[tuple[float, float] | list[str]] = []
        for column in zip(*(row[:-1] for rows in training for row in rows), strict=True):
            try:
                values = np.array(column, dtype=float)
                self._columns.append((float(values.mean()), float(values.std()) or 1.0))
            except ValueError:
                self._columns.append(sorted(set(column)))

    def __call__(self, sequences: Sequence[Rows]) -> np.ndarray:
        return np.concatenate([self._sequence(rows) for rows in sequences])

    def _sequence(self, rows: Rows) -> np.ndarray:
        columns = []
        for number, scale in enumerate(self._columns):
            values = [row[number] for row in rows]
            if isinstance(scale, tuple):
                columns.append(np.clip((np.array(values, dtype=float) - scale[0]) / scale[1], -5, 5)[:, None])
            else:
                columns.append((np.array(values)[:, None] == np.array(scale)[None, :]).astype(float))
        inputs = np.concatenate(columns, axis=1)
        padded = np.pad(inputs, ((self._reach, self._reach), (0, 0)))
        return np.concatenate([padded[k : k + len(rows)] for k in range(2 * self._reach + 1)], axis=1)


def svc(kind: str, training: Sequence[Rows], test: Sequence[Rows], jobs: int, memory: Path) -> tuple[Labels, dict]:
    """Choose the window, then C and gamma."""
    divided = folds(training)
    tried: dict[str, float] = {}

    def flat(sequences: Sequence[Rows]) -> np.ndarray:
        return np.array([label for labels in gold(sequences) for label in labels])

    def drawn(number: int, most: int, fold: int) -> np.ndarray:
        return np.sort(np.random.default_rng([SEED, fold]).permutation(number)[:most])

    def machine(C: float, gamma: float, width: int) -> SVC:
        return SVC(C=C, gamma=gamma / width, cache_size=1000)

    prepared: dict[int, list[tuple[np.ndarray, ...]]] = {}

    def parts(reach: int) -> list[tuple[np.ndarray, ...]]:
        if reach not in prepared:
            prepared[reach] = []
            for fold, (fitted, held) in enumerate(divided):
                inputs = Windows(fitted, reach)
                known, asked = flat(fitted), flat(held)
                few, some = drawn(len(known), TRAINED, fold), drawn(len(asked), JUDGED, fold)
                prepared[reach].append((inputs(fitted)[few], known[few], inputs(held)[some], asked[some]))
        return prepared[reach]

    def judge(reach: int, C: float, gamma: float) -> float:
        name = f"window {reach}, C {C:g}, gamma {gamma:g} / columns"
        if name not in tried:
            right, total = 0, 0
            for X, y, other, asked in parts(reach):
                found = machine(C, gamma, X.shape[1]).fit(X, y).predict(other)
                right, total = right + int(np.sum(found == asked)), total + len(asked)
            tried[name] = right / total
            print(name, f"{tried[name]:.4f}", file=sys.stderr, flush=True)
        return tried[name]

    reach = max((0, 2, 5), key=lambda reach: judge(reach, 10, 1))
    C, gamma = max(
        ((C, gamma) for C in (1, 10, 100) for gamma in (0.1, 0.3, 1, 3)), key=lambda pair: judge(reach, *pair)
    )
    inputs = Windows(training, reach)
    X = inputs(training)
    model = machine(C, gamma, X.shape[1]).fit(X, flat(training))
    return [list(model.predict(inputs([rows]))) for rows in test], {
        "window": reach,
        "C": C,
        "gamma": gamma,
        "tried": tried,
    }


PEERS: dict[str, Callable[[str, Sequence[Rows], Sequence[Rows], int, Path], tuple[Labels, dict]]] = {
    "crfsuite": crfsuite,
    "svc": svc,
}


def main(name: str, kind: str, training: str, test: str, tagged: str, figures: str, jobs: str = "1") -> None:
    began = time.perf_counter()
    sequences = read_sequences(test)
    found, about = PEERS[name](kind, read_sequences(training), sequences, int(jobs), Path(f"{figures}.tried"))
    with open(tagged, "w", encoding="utf-8") as stream:
        for rows, labels in zip(sequences, found, strict=True):
            stream.writelines(f"{row[-1]}\t{label}\n" for row, label in zip(rows, labels, strict=True))
            stream.write("\n")
    Path(figures).write_text(json.dumps(about | {"seconds": time.perf_counter() - began}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
