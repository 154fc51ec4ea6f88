"""Sets of sequences for the scripts beside this one, without configuration, and what these scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from kcrf_core.config import Config
from kcrf_core.corpora import Corpus, read_corpus
from kcrf_core.encoding import Dataset, Encoding, configured, fit_encoding

# The file of each set, the costliest first.
FILES = {
    "conll2000": "conll2000/train.conll",
    "adl": "batteryless_adl/all.conll",
    "wnut17": "wnut17/train.conll",
    "ocr": "ocr/all.conll",
    "japanesene": "crfpp/JapaneseNE/train.conll",
}
TEXT = ("conll2000", "wnut17", "japanesene")


def corpus_of(name: str, data: str) -> Corpus:
    """Read a set: of OCR fold 0, of batteryless_adl four fifths of the trials."""
    corpus = read_corpus(f"{data}/{FILES[name]}")
    if name == "ocr":
        return corpus.subset(np.flatnonzero(np.loadtxt(f"{data}/ocr/folds.txt", dtype=int) == 0))
    if name == "adl":
        return corpus.subset(np.flatnonzero(np.arange(corpus.sequences) % 5 > 0))
    return corpus


def encoded(corpus: Corpus, **options: object) -> tuple[Encoding, Dataset, Config]:
    """Return a set as training without a configuration has it."""
    config = configured({}, options, corpus, "options")[0]
    return *fit_encoding(config, corpus), config


def arguments(about: str, **defaults: int) -> argparse.Namespace:
    """Return the command line: data, names of sets, the number of processes, and more numbers."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("data", help="folder of the data")
    parser.add_argument("names", nargs="*", help=f"sets: {', '.join(FILES)}; default: all that are there")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--engine", help="such as torch:cpu; default: threads")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    found = parser.parse_args()
    found.names = found.names or [name for name, path in FILES.items() if Path(found.data, path).exists()]
    return found


def in_processes(jobs: int, function, tasks: list[tuple]) -> Iterator[dict]:
    """Yield the results of a function as they come, each from a process of its own."""
    with ProcessPoolExecutor(jobs, max_tasks_per_child=1) as processes:
        for done in as_completed([processes.submit(function, *task) for task in tasks]):
            yield done.result()
