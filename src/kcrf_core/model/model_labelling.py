"""The labels that a model gives to data with gold labels, and how probable it finds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..corpora import FORMATS, CodedColumn, Corpus
from ..encoding import UNOBSERVED, Dataset
from ..errors import DataError
from ..scoring import Decision, Labelling, Probabilities, check_label_count, detect_scheme, readable_column
from ..system import Workers
from .decoding import Decoder, Wishes
from .model import Model

VITERBI = Decision()


def from_model(model: Model, corpus: Corpus, workers: Workers, decision: Decision = VITERBI) -> Labelling:
    """The labels that a model gives to a corpus with gold labels."""
    if not model.encoding.with_labels(corpus):
        raise DataError("no gold labels to compare with", corpus.source)
    gold = CodedColumn.of(corpus.columns[-1])
    empty = FORMATS[corpus.format].no_value
    if gold.present() == {empty}:
        raise DataError(f"no gold labels: column '{model.encoding.columns[-1]}' is {empty} throughout", corpus.source)
    check_label_count(gold, corpus.source)  # before all the work of labelling
    costs = decision.costs(model.labels)
    dataset = model.encoding.encode(corpus)
    words = readable_column(corpus.columns[:-1])
    return _labelling(model, dataset, gold, corpus.source, workers, decision, costs, words)


def from_model_and_dataset(
    model: Model, dataset: Dataset, source: str, workers: Workers, decision: Decision = VITERBI
) -> Labelling:
    """The same for encoded data, which must be encoded as the model does it."""
    if dataset.labels is None:
        raise DataError("no gold labels to compare with", source)
    # A label that the model does not know gets a name that fits the scheme and equals no other.
    unknown = "<unknown>" if detect_scheme(model.labels) is None else "B-<unknown>"
    names = (*model.labels, unknown)
    numbers = np.where(dataset.labels < 0, len(model.labels), dataset.labels)
    gold, costs = CodedColumn(list(names), numbers), decision.costs(model.labels)
    return _labelling(model, dataset, gold, source, workers, decision, costs)


def _labelling(
    model: Model,
    dataset: Dataset,
    gold: CodedColumn,
    source: str,
    workers: Workers,
    decision: Decision,
    costs: np.ndarray | None,
    words: Sequence[str] | None = None,
) -> Labelling:
    """Positions whose label is not observed are labelled with the others, and then left out."""
    observed = np.flatnonzero(dataset.labels != UNOBSERVED)
    if not len(observed):
        raise DataError("no gold labels to compare with: none is observed", source)

    def judged(part: Dataset, best: np.ndarray, marginals: np.ndarray) -> tuple[np.ndarray, Probabilities]:
        kept = part.labels != UNOBSERVED
        return best[kept], Probabilities.of(marginals[kept], part.labels[kept], best[kept])

    if decision.plain:
        parts = model.tag_with_marginals(dataset, judged, workers)
    else:
        decoder = Decoder(model, Wishes(decode=decision.decode, marginals=True, costs=costs))

        def decided(chunk: tuple[int, int]) -> tuple[np.ndarray, Probabilities]:
            part = dataset.span(*chunk)
            found = decoder.decode_part(part, source)
            return judged(part, found.labels, found.marginals)

        parts = workers.map(decided, decoder.chunks(dataset))
    best, probabilities = zip(*parts, strict=True)
    left_out = dataset.positions - len(observed)
    if left_out:
        gold = gold.take(observed)
        words = None if words is None else CodedColumn.of(words).take(observed)
    return Labelling(
        source=source,
        gold=gold,
        predicted=CodedColumn(list(model.labels), np.concatenate(best)),
        offsets=np.unique(np.searchsorted(observed, dataset.offsets)),
        lines=dataset.lines[observed],
        words=words,
        probabilities=Probabilities.joined(probabilities),
        known_labels=model.labels,
        left_out=left_out,
        missing=dataset.missing,
    )
