"""Token error of kcrf and CRFsuite on the four GPstruct tasks, both tuned by the same inner folds.

For each task and each of its five splits, settings are judged by cross-validation within the training part; the best is
fitted to all of it and judged on the test part, once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pycrfsuite
from readme import fill

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus, read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.system import Workers
from kcrf_core.training import train

TASKS = ("basenp", "chunking", "segmentation", "japanesene")
SPLITS = (1, 2, 3, 4, 5)
INNER_FOLDS, SEED = 5, 0
C2 = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)

CRFSUITE = [{"c2": c2} for c2 in C2]
# The same priors on features; transitions may have another, which CRFsuite cannot say.
KCRF = [{"sigma2": 1 / (2 * c2), "terms.edge.sigma2": ratio / (2 * c2)} for c2 in C2 for ratio in (0.1, 1.0, 10.0)] + [
    {"kernel": "poly", "sigma2": sigma2} for sigma2 in (3.0, 10.0, 30.0)
]

Tagger = Callable[[Corpus, dict, Corpus], list[str]]


def by_kcrf(training: Corpus, setting: dict, test: Corpus) -> list[str]:
    config = parse_config(with_options({}, {"tolerance": 1e-2, **setting}))
    encoding, dataset = fit_encoding(config, training)
    with Workers(1) as workers:
        model, _ = train(encoding, dataset, config, workers=workers)
    return model.tag_corpus(test)


def by_crfsuite(training: Corpus, setting: dict, test: Corpus) -> list[str]:
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({**setting, "feature.possible_transitions": True})
    for attributes, labels in _sequences(training):
        trainer.append(attributes, labels)
    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as file:
        trainer.train(file.name)
        tagger = pycrfsuite.Tagger()
        tagger.open(file.name)
        return [label for attributes, _ in _sequences(test) for label in tagger.tag(attributes)]


def _sequences(corpus: Corpus) -> Iterator[tuple[list[dict[str, float]], list[str]]]:
    rows, labels = corpus.attributes, corpus.columns[-1]
    for first, last in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True):
        ends = rows.indptr[first : last + 1].tolist()
        spans = [slice(a, b) for a, b in pairwise(ends)]
        yield [dict(zip(rows.names[s], rows.values[s].tolist(), strict=True)) for s in spans], list(labels[first:last])


def error(tagged: list[str], gold: Corpus) -> float:
    return float(np.mean([a != b for a, b in zip(tagged, gold.columns[-1], strict=True)]))


def tuned_error(tag: Tagger, settings: list[dict], training: Corpus, test: Corpus) -> tuple[float, dict]:
    order = np.random.default_rng(SEED).permutation(training.sequences)
    folds = [np.sort(part) for part in np.array_split(order, INNER_FOLDS)]
    wrong = np.zeros(len(settings))
    for fold in folds:
        rest, held = training.subset(np.setdiff1d(order, fold)), training.subset(fold)
        wrong += [held.positions * error(tag(rest, setting, held), held) for setting in settings]
    best = settings[int(np.argmin(wrong))]
    return error(tag(training, best, test), test), best


def one_split(data: Path, task: str, split: int) -> dict:
    training, test = (
        read_corpus(str(data / "gpstruct" / task / f"split{split}.{part}.crfsuite")) for part in ("train", "test")
    )
    found: dict = {"task": task, "split": split}
    for name, tag, settings in (("kcrf", by_kcrf, KCRF), ("crfsuite", by_crfsuite, CRFSUITE)):
        found[name], found[f"{name}_setting"] = tuned_error(tag, settings, training, test)
    return found


def table(rows: list[dict]) -> str:
    lines = [
        "| task | kcrf, error % | CRFsuite, error % | difference | its standard error |",
        "|---|---:|---:|---:|---:|",
    ]
    means = []
    for task in TASKS:
        ours, theirs = (
            100 * np.array([row[name] for row in rows if row["task"] == task]) for name in ("kcrf", "crfsuite")
        )
        difference = ours - theirs
        means.append((ours.mean(), theirs.mean()))
        spread = difference.std(ddof=1) / np.sqrt(len(difference))
        lines.append(f"| {task} | {ours.mean():.2f} | {theirs.mean():.2f} | {difference.mean():+.2f} | {spread:.2f} |")
    ours, theirs = np.mean(means, axis=0)
    lines.append(f"| mean | {ours:.2f} | {theirs:.2f} | {ours - theirs:+.2f} | |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(one_split, options.data, task, split) for task in options.tasks for split in SPLITS]
        rows = []
        for future in futures:
            rows.append(future.result())
            print(json.dumps(rows[-1]), flush=True)
    Path("results.json").write_text(json.dumps(rows, indent=1) + "\n")
    if len(options.tasks) == len(TASKS):
        fill(Path(__file__).parent / "README.md", table(rows), peers=["python-crfsuite"])


if __name__ == "__main__":
    main()
