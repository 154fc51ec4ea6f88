"""Permutation importance of columns.

The values of a column are shuffled among all positions of labelled data: its importance is the drop in the mean
log p(y_t | x) of gold labels, and in accuracy. Losses of sequences, means over repetitions, are taken as independent
for the standard error. All features are made of the shuffled values: a word whose affixes stay would contradict them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..corpora import Corpus
from ..encoding import Dataset
from ..errors import DataError
from ..scoring import SMALLEST_PROBABILITY
from ..system import Workers
from .model import Model


@dataclass(frozen=True)
class Importance:
    """Importance of a column, or of vectors."""

    column: str
    loss: float  # of the mean log p of gold labels, in nats for each position
    error: float | None  # its standard error; None of one sequence
    accuracy: float  # of the accuracy, from 0 to 1

    def to_dict(self) -> dict[str, Any]:
        return {"standard_error" if name == "error" else name: value for name, value in asdict(self).items()}


def importances(
    model: Model,
    corpus: Corpus,
    workers: Workers,
    repetitions: int = 3,
    seed: int = 0,
    done: Callable[[], None] | None = None,
) -> list[Importance]:
    """Return the importance of all columns that features look at, the largest first.

    A column that only names groups to scale numbers by is none: shuffling it would spoil the scaling.
    """
    encoding = model.encoding
    if corpus.attributes is not None:
        raise DataError("attributes are no columns: importance needs files of columns", corpus.source)
    dataset = encoding.encode(corpus)
    if dataset.labels is None or not (dataset.labels >= 0).any():
        raise DataError("no labels that the model knows: importance needs labelled data", corpus.source)
    usual = _judged(model, dataset, workers)
    lengths, known = np.diff(dataset.offsets), (dataset.labels >= 0).astype(np.float64)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    counts, total = np.bincount(sequence, known, minlength=len(lengths)), known.sum()
    places = dict(zip(encoding.columns[:-1], encoding.places(corpus), strict=False))
    found = []
    columns = [name for name in places if name in encoding.inputs_of_features]
    for number, name in enumerate([*columns, *encoding.vectors]):
        losses, accuracies = [], []
        for repetition in range(repetitions):
            order = np.random.default_rng([seed, number, repetition]).permutation(corpus.positions)
            logs, right = _judged(model, encoding.encode(_shuffled(corpus, name, places, order)), workers)
            losses.append(usual[0] - logs)
            accuracies.append(float((usual[1] - right).sum()))
        # The mean over positions with known labels, and its standard error over sequences.
        sums = np.bincount(sequence, np.mean(losses, axis=0) * known, minlength=len(lengths))
        loss, n = float(sums.sum() / total), int(np.count_nonzero(counts))
        effects = (sums - loss * counts)[counts > 0] / total
        error = float(np.sqrt(n / (n - 1) * (effects @ effects))) if n > 1 else None
        found.append(Importance(name, loss, error, float(np.mean(accuracies) / total)))
        if done is not None:
            done()
    return sorted(found, key=lambda one: -one.loss)


def _shuffled(corpus: Corpus, name: str, places: dict[str, int], order: np.ndarray) -> Corpus:
    """Return the corpus with the values of a column, or the rows of vectors, in another order."""
    if name in corpus.vectors:
        return replace(corpus, vectors={**corpus.vectors, name: corpus.vectors[name][order]})
    columns = list(corpus.columns)
    alone = replace(corpus, columns=(columns[places[name]],), vectors={}, weights=None)
    (columns[places[name]],) = alone.pieces(order, order + 1, order).columns
    return replace(corpus, columns=tuple(columns))


def _judged(model: Model, dataset: Dataset, workers: Workers) -> tuple[np.ndarray, np.ndarray]:
    """Return log p of gold labels, [N], 0 where the model does not know them, and 1 where it gives them."""

    def task(part: Dataset) -> tuple[np.ndarray, np.ndarray]:
        found, known = model.infer(part), part.known_labels >= 0
        p = found.marginals.node[np.arange(part.positions), np.maximum(part.known_labels, 0)]
        return np.where(known, np.log(np.maximum(p, SMALLEST_PROBABILITY)), 0.0), known & (found.labels == part.labels)

    logs, right = zip(*model.over_parts(dataset, task, workers), strict=True)
    return np.concatenate(logs), np.concatenate(right).astype(np.int64)
