"""The labels that a model gives to data with gold labels, and how probable it finds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..chains import chain
from ..corpora import FORMATS, Corpus
from ..encoding import UNKNOWN, UNOBSERVED, Dataset
from ..errors import DataError
from ..scoring import Labelling, check_label_count, detect_scheme, from_marginals, readable_column
from .model import Model


def from_model(model: Model, corpus: Corpus) -> Labelling:
    """The labels that a model gives to a corpus with gold labels."""
    if not model.encoding.with_labels(corpus):
        raise DataError("no gold labels to compare with", corpus.source)
    gold = corpus.columns[-1]
    empty = FORMATS[corpus.format].no_value
    if set(gold) == {empty}:
        raise DataError(f"no gold labels: column '{model.encoding.columns[-1]}' is {empty} throughout", corpus.source)
    check_label_count(gold, corpus.source)  # before all the work of labelling
    dataset = model.encoding.encode(corpus)
    return _labelling(model, dataset, gold, corpus.source, readable_column(corpus.columns[:-1]))


def from_model_and_dataset(model: Model, dataset: Dataset, source: str) -> Labelling:
    """The same for encoded data, which must be encoded as the model does it."""
    if dataset.labels is None:
        raise DataError("no gold labels to compare with", source)
    # A label that the model does not know gets a name that fits the scheme and equals no other.
    unknown = "<unknown>" if detect_scheme(model.labels) is None else "B-<unknown>"
    names = (*model.labels, unknown)
    gold = [names[number] for number in np.maximum(dataset.labels, UNKNOWN).tolist()]
    return _labelling(model, dataset, gold, source)


def _labelling(
    model: Model, dataset: Dataset, gold: Sequence[str], source: str, words: Sequence[str] | None = None
) -> Labelling:
    """Positions whose label is not observed are labelled with the others, and then left out."""
    observed = np.flatnonzero(dataset.labels != UNOBSERVED)
    if not len(observed):
        raise DataError("no gold labels to compare with: none is observed", source)
    scores, edges = model.potentials(dataset)
    best = chain.viterbi(scores, edges, dataset.offsets)[0]
    marginals = chain.marginals(scores, edges, dataset.offsets).node
    gold = [gold[t] for t in observed.tolist()] if len(observed) < len(gold) else gold
    predicted = [model.labels[number] for number in best[observed].tolist()]
    return Labelling(
        source=source,
        gold=gold,
        predicted=predicted,
        offsets=np.unique(np.searchsorted(observed, dataset.offsets)),
        lines=dataset.lines[observed],
        words=None if words is None else [words[t] for t in observed.tolist()],
        probabilities=from_marginals(marginals[observed], model.labels, gold, predicted),
        known_labels=model.labels,
        left_out=dataset.positions - len(observed),
    )
