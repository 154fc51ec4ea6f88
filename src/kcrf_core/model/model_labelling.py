"""The labels that a model gives to data with gold labels, and how probable it finds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..corpora import FORMATS, CodedColumn, Corpus
from ..encoding import UNOBSERVED, Dataset
from ..errors import DataError
from ..scoring import (
    Decision,
    Labelling,
    LabelProbabilities,
    Probabilities,
    check_label_count,
    detect_scheme,
    joined_labellings,
    readable_column,
)
from ..system import Workers, sequence_chunks
from .decoding import Decoder, Wishes
from .model import Model
from .shard_folders import ShardFolder

AS_STORED = Decision()
NOT_OBSERVED = "no gold labels to compare with: none is observed"

ENCODED_AT_ONCE = 1 << 14  # positions: their distinct values are looked up by one thread


def from_model(
    model: Model, corpus: Corpus, workers: Workers, decision: Decision = AS_STORED, marginals: bool = False
) -> Labelling:
    """The labels that a model gives to a corpus with gold labels; with the `marginals` of all labels if wanted."""
    if not model.encoding.with_labels(corpus):
        raise DataError("no gold labels to compare with", corpus.source)
    gold = CodedColumn.of(corpus.columns[-1])
    empty = FORMATS[corpus.format].no_value
    if gold.present == {empty}:
        raise DataError(f"no gold labels: column '{model.encoding.columns[-1]}' is {empty} throughout", corpus.source)
    check_label_count(gold, corpus.source)  # before all the work of labelling
    if gold.present == {model.encoding.unobserved}:
        raise DataError(NOT_OBSERVED, corpus.source)

    def encoded(sequences: tuple[int, int]) -> Dataset:
        return model.encoding.encode(corpus.span(*sequences))

    spans = sequence_chunks(corpus.offsets, ENCODED_AT_ONCE)
    found = Labelling(corpus.source, gold, (), corpus.offsets, corpus.lines, readable_column(corpus.columns[:-1]))
    return _labelled(model, found, encoded, spans, workers, decision, marginals)


def from_model_and_dataset(
    model: Model,
    dataset: Dataset,
    source: str,
    workers: Workers,
    decision: Decision = AS_STORED,
    marginals: bool = False,
) -> Labelling:
    """The same for encoded data, which must be encoded as the model does it."""
    if dataset.labels is None:
        raise DataError("no gold labels to compare with", source)
    if (dataset.labels == UNOBSERVED).all():
        raise DataError(NOT_OBSERVED, source)
    return _of_dataset(model, dataset, source, workers, decision, marginals)


def from_model_and_folder(
    model: Model, folder: ShardFolder, workers: Workers, decision: Decision = AS_STORED, marginals: bool = False
) -> Labelling:
    """The same for a folder of shards, one shard after another; of all positions there are labels, and no inputs."""
    if not folder.labelled:
        raise DataError("no gold labels to compare with", folder.path)
    parts = [_of_dataset(model, dataset, folder.path, workers, decision, marginals) for dataset in folder.datasets()]
    found = joined_labellings(parts)
    if not len(found.lines):
        raise DataError(NOT_OBSERVED, folder.path)
    return found


def _of_dataset(
    model: Model, dataset: Dataset, source: str, workers: Workers, decision: Decision, marginals: bool
) -> Labelling:
    # A label that the model does not know gets a name that fits the scheme and equals no other.
    unknown = "<unknown>" if detect_scheme(model.labels) is None else "B-<unknown>"
    names = (*model.labels, unknown)
    numbers = np.where(dataset.labels < 0, len(model.labels), dataset.labels)
    found = Labelling(source, CodedColumn(list(names), numbers), (), dataset.offsets, dataset.lines)
    chunks = model.chunks(dataset)
    return _labelled(model, found, lambda span: dataset.span(*span), chunks, workers, decision, marginals)


# Labels, their probabilities and, where they are wanted, those of all labels.
_Judged = tuple[np.ndarray, Probabilities, np.ndarray | None]


def _labelled(
    model: Model,
    found: Labelling,  # all but the predictions
    encoded: Callable[[tuple[int, int]], Dataset],  # sequences first:last
    spans: Sequence[tuple[int, int]],
    workers: Workers,
    decision: Decision,
    with_marginals: bool,
) -> Labelling:
    """Positions whose label is not observed are labelled with the others, and then left out."""
    costs = decision.costs(model.labels)
    model = replace(model, decode=decision.decoder(model.decode))
    decoder = None if costs is None else Decoder(model, Wishes(marginals=True, costs=costs))

    def judged(part: Dataset, best: np.ndarray, marginals: np.ndarray) -> _Judged:
        kept = part.labels != UNOBSERVED
        every = marginals[kept].astype(np.float32) if with_marginals else None
        return best[kept], Probabilities.of(marginals[kept], part.labels[kept], best[kept]), every

    def decided(part: Dataset) -> _Judged:
        one = decoder.decode_part(part, found.source)
        return judged(part, one.labels, one.marginals)

    def work(span: tuple[int, int]) -> tuple[list[_Judged], np.ndarray, dict[str, int]]:
        part = encoded(span)
        if decoder is None:
            results = list(model.tag_with_marginals(part, judged))
        else:
            results = [decided(part.span(*chunk)) for chunk in decoder.chunks(part)]
        return results, part.labels != UNOBSERVED, dict(part.missing)

    results: list[_Judged] = []
    kept: list[np.ndarray] = []
    missing: Counter[str] = Counter()
    for own, observed, lacking in workers.map(work, spans):
        results += own
        kept.append(observed)
        missing.update(lacking)
    best, probabilities, every = zip(*results, strict=True)
    found = replace(
        found,
        predicted=CodedColumn(list(model.labels), np.concatenate(best)),
        probabilities=Probabilities.joined(probabilities),
        marginals=LabelProbabilities(model.labels, np.concatenate(every)) if with_marginals else None,
        known_labels=model.labels,
        decode=model.decode,
        missing=tuple((name, missing[name]) for name in model.encoding.names if missing[name]),
    )
    observed = np.flatnonzero(np.concatenate(kept))
    left_out = len(found.lines) - len(observed)
    if not left_out:
        return found
    return replace(
        found,
        gold=CodedColumn.of(found.gold).take(observed),
        offsets=np.unique(np.searchsorted(observed, found.offsets)),
        lines=found.lines[observed],
        words=None if found.words is None else CodedColumn.of(found.words).take(observed),
        left_out=left_out,
    )
