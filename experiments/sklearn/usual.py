"""The settings that most scripts for sklearn-crfsuite have, an L1 and an L2 penalty of 0.1 and 100 iterations.

usual.py --data FOLDER    2,000 sentences of FOLDER/conll2000/train.conll, by the tutorial's dictionaries

Each run is a process of its own, one of ours after one of theirs. P is computed here from the weights of either, by one
function. Seconds are those of processors, memory is what `fit` adds to the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from tutorial import read_sentences, sent2features, sent2labels

SENTENCES, C1, C2 = 2_000, 0.1, 0.1
SETTINGS = {"c1": C1, "c2": C2, "max_iterations": 100, "all_possible_transitions": True}


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def objective(crf: Any, X: list[list[dict[str, Any]]], Y: list[list[str]]) -> float:
    """Return -log p + c1 |w| + c2 |w|^2 by the weights that an estimator shows, first and last labels included."""
    state, transitions = crf.state_features_, crf.transition_features_
    ends = [getattr(crf, name, {}) for name in ("start_features_", "end_features_")]
    labels = sorted({label for sequence in Y for label in sequence})
    code = {label: k for k, label in enumerate(labels)}
    rows: dict[str, np.ndarray] = {}
    for (attribute, label), weight in state.items():
        rows.setdefault(attribute, np.zeros(len(labels)))[code[label]] = weight
    edges, start, end = np.zeros((len(labels), len(labels))), *np.zeros((2, len(labels)))
    for (before, after), weight in transitions.items():
        edges[code[before], code[after]] = weight
    for scores, own in zip((start, end), ends, strict=True):
        for label, weight in own.items():
            scores[code[label]] = weight
    loss = 0.0
    for sequence, gold in zip(X, Y, strict=True):
        scores = np.zeros((len(sequence), len(labels)))
        for t, item in enumerate(sequence):
            for name, value in item.items():
                attribute, factor = (f"{name}:{value}", 1.0) if isinstance(value, str) else (name, float(value))
                if factor and attribute in rows:
                    scores[t] += factor * rows[attribute]
        path = [code[label] for label in gold]
        message = start + scores[0]
        for own in scores[1:]:
            message = logsumexp(message[:, None] + edges, axis=0) + own
        total = scores[range(len(path)), path].sum() + edges[path[:-1], path[1:]].sum() + start[path[0]] + end[path[-1]]
        loss += float(logsumexp(message + end) - total)
    weights = np.array([*state.values(), *transitions.values(), *start, *end])
    return loss + C1 * float(np.abs(weights).sum()) + C2 * float(weights @ weights)


def run(system: str, states: bool, data: str) -> dict[str, Any]:
    sentences = read_sentences(data)[:SENTENCES]
    X, Y = [sent2features(one) for one in sentences], [sent2labels(one) for one in sentences]
    if system == "KernelCRF":
        from kcrf_core import KernelCRF

        crf: Any = KernelCRF(**SETTINGS, all_possible_states=states, n_jobs=1)
    else:
        from sklearn_crfsuite import CRF

        crf = CRF(**SETTINGS, all_possible_states=states)
    before, began = peak(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crf.fit(X, Y)
    seconds, added = time.process_time() - began, peak() - before
    gap = crf.certificate_.gap if system == "KernelCRF" else None
    return {"seconds": seconds, "memory": added, "P": objective(crf, X, Y), "gap": gap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=2)
    given = parser.parse_args()
    data = str(Path(given.data) / "conll2000" / "train.conll")
    if given.one:
        print(json.dumps(run(given.one[0], given.one[1] == "True", data)))
        return
    from readme import fill, table

    found: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for _ in range(given.repeat):
        for states in (False, True):
            for system in ("sklearn-crfsuite", "KernelCRF"):
                command = [sys.executable, __file__, "--data", given.data, "--one", system, str(states)]
                out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found.setdefault((system, states), []).append(json.loads(out))
    rows = []
    for (system, states), runs in found.items():
        seconds, memory = (statistics.median(one[key] for one in runs) for key in ("seconds", "memory"))
        gap = "-" if runs[0]["gap"] is None else f"{runs[0]['gap']:.4f}"
        rows.append([f"{states}", system, f"{seconds:.1f}", f"{memory:.0f}", f"{runs[0]['P']:,.1f}", gap])
    header = ["all_possible_states", "system", "CPU s", "MiB added", "P", "certified gap"]
    fill(Path(__file__).parent / "README.md", table(header, rows, 2), peers=["sklearn-crfsuite"], name="usual")


if __name__ == "__main__":
    main()
