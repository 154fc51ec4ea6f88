"""One pass (P and its gradient), the bare BLAS calls of the same shapes, and forward-backward alone. JSON each.

pass_jobs.py text CONFIG TRAIN SENTENCES THREADS     linear kernel, the first SENTENCES of a file
pass_jobs.py ocr TRAIN M LABELS THREADS              poly-3 with M pivots; LABELS 2 asks for vowels only
pass_jobs.py labels Y THREADS                        generated data with Y labels
pass_jobs.py chain Y                                 forward-backward on one core, positions per second
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from kcrf_core.chains import Problem, chain
from kcrf_core.config import load_yaml, parse_config, with_options
from kcrf_core.corpora import Corpus, read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features.plans import fit_terms
from kcrf_core.objective import Engine, Objective, ObjectiveTerm, Partition
from kcrf_core.objective.solvers import Observer
from kcrf_core.system import Workers

ROUNDS = 7  # after one that is not counted
GENERATED_POSITIONS, GENERATED_COLUMNS, GENERATED_LENGTH = 20_000, 50, 20
CHAIN_POSITIONS = 200_000


def typical(work: Callable[[], object]) -> float:
    """Median seconds."""
    work()
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return median(seconds)


def pass_seconds(config: object, corpus: Corpus, threads: int) -> dict:
    """One pass on a corpus at random weights, and the two products by themselves where a map is dense."""
    encoding, dataset = fit_encoding(config, corpus)
    Y, N = len(encoding.labels), dataset.positions
    rng = np.random.default_rng(0)
    with Workers(threads) as workers:
        fitted = fit_terms(encoding, dataset, config, None, workers, Observer())
        problem = Problem(dataset.labels, dataset.offsets, np.ones(dataset.sequences), Y)
        terms = [ObjectiveTerm(term.config.clique, 1.0, term.map) for term in fitted]
        objective = Objective.on(Engine.of(Partition(problem, terms, workers, np.float32)), terms)
        theta = 0.01 * rng.normal(size=objective.size)
        seconds = typical(lambda: objective.evaluate(theta))
    return {"positions": N, "labels": Y, "columns": fitted[0].map.size, "seconds": seconds}


def bare_seconds(N: int, M: int, Y: int, threads: int) -> float:
    """Phi W and Phi^T R in single precision, by BLAS with as many threads."""
    rng = np.random.default_rng(0)
    phi = rng.random((N, M), dtype=np.float32)
    W, R = rng.random((M, Y), dtype=np.float32), rng.random((N, Y), dtype=np.float32)
    with threadpool_limits(threads):
        return typical(lambda: (phi @ W, phi.T @ R))


def text(config_path: str, data: str, sentences: str, threads: str) -> dict:
    config = parse_config(load_yaml(Path(config_path).read_text(encoding="utf-8"), config_path), config_path)
    corpus = read_corpus(data)
    return pass_seconds(config, corpus.subset(np.arange(min(int(sentences), corpus.sequences))), int(threads))


def ocr(data: str, M: str, labels: str, threads: str) -> dict:
    options = {"kernel": "poly", "degree": 3, "size": int(M)}
    corpus = read_corpus(data)
    if int(labels) == 2:
        vowels = ["vowel" if letter in "aeiou" else "other" for letter in corpus.columns[-1]]
        corpus = replace(corpus, columns=(*corpus.columns[:-1], vowels))
    found = pass_seconds(parse_config(with_options({}, options)), corpus, int(threads))
    return found | {"bare_seconds": bare_seconds(found["positions"], int(M), found["labels"], int(threads))}


def labels(Y: str, threads: str) -> dict:
    rng = np.random.default_rng(0)
    N = GENERATED_POSITIONS
    gold = [f"L{y}" for y in np.concatenate([np.arange(int(Y)), rng.integers(0, int(Y), N - int(Y))]).tolist()]
    columns = tuple([f"{value:.4f}" for value in column] for column in rng.normal(size=(GENERATED_COLUMNS, N)))
    offsets = np.arange(0, N + 1, GENERATED_LENGTH)
    corpus = Corpus("generated", (*columns, gold), offsets, np.arange(1, N + 1))
    return pass_seconds(parse_config({}), corpus, int(threads))


def chain_rate(Y: str) -> dict:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(CHAIN_POSITIONS, int(Y))).astype(np.float32)
    edges = chain.Edges(*(rng.normal(size=shape) for shape in ((int(Y), int(Y)), int(Y), int(Y))))
    offsets = np.arange(0, CHAIN_POSITIONS + 1, GENERATED_LENGTH)
    return {"rate": CHAIN_POSITIONS / typical(lambda: chain.marginals(scores, edges, offsets))}


if __name__ == "__main__":
    jobs = {"text": text, "ocr": ocr, "labels": labels, "chain": chain_rate}
    print(json.dumps(jobs[sys.argv[1]](*sys.argv[2:])))
