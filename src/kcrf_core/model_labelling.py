"""The labels that a model gives to data with gold labels, and how probable it finds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import chain
from .calibration import Probabilities, from_marginals
from .conllu import NO_VALUE
from .corpus import Corpus
from .dataset import UNKNOWN, Dataset
from .errors import DataError
from .labelling import Labelling, readable_column
from .model import Model
from .schemes import detect_scheme


def from_model(model: Model, corpus: Corpus) -> Labelling:
    """The labels that a model gives to a corpus with gold labels."""
    if not model.encoding.with_labels(corpus):
        raise DataError("no gold labels to compare with", corpus.source)
    gold = corpus.columns[-1]
    if corpus.names is not None and set(gold) == {NO_VALUE}:
        raise DataError(f"no gold labels: column '{corpus.names[-1]}' is {NO_VALUE} throughout", corpus.source)
    predicted, probabilities = _apply(model, model.encoding.encode(corpus), gold)
    return Labelling(
        source=corpus.source,
        gold=gold,
        predicted=predicted,
        offsets=corpus.offsets,
        lines=corpus.lines,
        words=readable_column(corpus.columns[:-1]),
        probabilities=probabilities,
        known_labels=model.labels,
    )


def from_model_and_dataset(model: Model, dataset: Dataset, source: str) -> Labelling:
    """The same for encoded data, which must be encoded as the model does it."""
    if dataset.labels is None:
        raise DataError("no gold labels to compare with", source)
    # A label that the model does not know, or nobody, gets a name that fits the scheme and equals no other.
    unknown = "<unknown>" if detect_scheme(model.labels) is None else "B-<unknown>"
    names = (*model.labels, unknown)
    gold = [names[number] for number in np.maximum(dataset.labels, UNKNOWN).tolist()]
    predicted, probabilities = _apply(model, dataset, gold)
    return Labelling(
        source=source,
        gold=gold,
        predicted=predicted,
        offsets=dataset.offsets,
        lines=dataset.lines,
        probabilities=probabilities,
        known_labels=model.labels,
    )


def _apply(model: Model, dataset: Dataset, gold: Sequence[str]) -> tuple[list[str], Probabilities]:
    scores, edges = model.potentials(dataset)
    best = chain.viterbi(scores, edges, dataset.offsets)[0]
    predicted = [model.labels[number] for number in best.tolist()]
    marginals = chain.marginals(scores, edges, dataset.offsets).node
    return predicted, from_marginals(marginals, model.labels, gold, predicted)
