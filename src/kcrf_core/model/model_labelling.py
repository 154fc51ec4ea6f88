"""Labels that a model gives to data with gold labels, and their probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..corpora import FORMATS, CodedColumn, Corpus
from ..encoding import UNOBSERVED, CategoricalFeature, ConjunctionFeature, Dataset, Encoding, outside_remarks
from ..errors import ConfigError, DataError
from ..scoring import (
    Decision,
    Labelling,
    Probabilities,
    SeenWords,
    check_label_count,
    detect_scheme,
    joined_labellings,
    readable_place,
)
from ..system import Workers, counted, listed, sequence_chunks
from .dataset_files import ShardFolder, StoredDataset
from .model import Model
from .rules import LabelRules

AS_STORED = Decision()
NOT_OBSERVED = "no gold labels to compare with: none is observed"
WHOLE_WORDS = ("identity", "lower")  # transforms, the better one first

ENCODED_AT_ONCE = 1 << 14  # positions: their distinct values are looked up by one thread


def from_model(model: Model, corpus: Corpus, workers: Workers, decision: Decision = AS_STORED) -> Labelling:
    """Return the labels that a model gives to a corpus with gold labels, and probabilities."""
    if not model.encoding.with_labels(corpus):
        raise DataError(corpus.unlabelled or _without_label(model.encoding, corpus), corpus.source)
    gold = CodedColumn.of(corpus.columns[-1])
    empty = FORMATS[corpus.format].no_value
    if gold.present == {empty}:
        raise DataError(f"no gold labels: column '{model.encoding.columns[-1]}' is {empty} throughout", corpus.source)
    check_label_count(gold, corpus.source)  # before all the work of labelling
    if gold.present == {model.encoding.unobserved}:
        raise DataError(NOT_OBSERVED, corpus.source)

    corpus = model.encoding.scaled_by_group(corpus)
    spans = sequence_chunks(corpus.offsets, ENCODED_AT_ONCE)
    place = readable_place(corpus.columns[:-1])
    words = None if place is None else CodedColumn.of(corpus.columns[place])
    seen = None
    if place is not None and words is not None and corpus.attributes is None:
        column = model.encoding.input_names(corpus)[place]
        seen = _seen_words(model.encoding, column, words)
    found = Labelling(corpus.source, gold, (), corpus.offsets, corpus.lines, words, seen)
    return _labelled(
        model,
        found,
        lambda *span: model.encoding.encode(corpus.span(*span), hashed=model.trained_on is not None),
        spans,
        workers,
        decision,
        lambda rules, rows: rules.allowed_rows(corpus, model.encoding, rows),
    )


def _without_label(encoding: Encoding, corpus: Corpus) -> str:
    """Return the message for a corpus without a column of labels, which names the columns that it is taken for."""
    pairs = zip(encoding.columns, encoding.places(corpus), strict=True)
    present = listed([name for name, place in pairs if place >= 0])
    taken = f"{counted(corpus.width, 'column is', 'columns are')} taken for {present}"
    return f"no gold labels to compare with: {taken}, and the label '{encoding.columns[-1]}' is missing"


def _seen_words(encoding: Encoding, column: str, words: CodedColumn) -> SeenWords | None:
    """Return the words that are in the vocabulary of a column; None where no feature has it as it is."""
    found = [
        one
        for feature in encoding.features
        for one in (feature.parts if isinstance(feature, ConjunctionFeature) else (feature,))
        if type(one) is CategoricalFeature and one.column >= 0 and encoding.columns[one.column] == column
        if one.config.transform in WHOLE_WORDS
    ]
    if not found:
        return None
    best = min(found, key=lambda one: WHOLE_WORDS.index(one.config.transform))
    return SeenWords((best.encode(words.values) >= 0)[words.codes], best.vocabulary.complete)


def from_model_and_encoded(
    model: Model, stored: StoredDataset | ShardFolder, source: str, workers: Workers, decision: Decision = AS_STORED
) -> Labelling:
    """Label data that is encoded as the model does it, shard by shard where it has some; the inputs are left out."""
    # A label that the model does not know gets a name that fits the scheme and equals no other.
    if model.rules is not None and model.rules.allowed is not None:
        raise ConfigError(f"{source} is encoded and has no column of allowed labels", settings=["allowed"])
    names = [
        *model.labels,
        "<unknown>" if detect_scheme(model.encoding.span_labels) is None else "B-<unknown>",
    ]
    parts = []
    for dataset in stored.datasets() if isinstance(stored, ShardFolder) else [stored.dataset]:
        if dataset.labels is None:
            raise DataError("no gold labels to compare with", source)
        numbers = np.where(dataset.known_labels < 0, len(model.labels), dataset.known_labels)
        part = Labelling(source, CodedColumn(names, numbers), (), dataset.offsets, dataset.lines)
        chunks = model.chunks(dataset)
        parts.append(_labelled(model, part, dataset.span, chunks, workers, decision, lambda rules, rows: None))
    found = joined_labellings(parts)
    if not len(found.lines):
        raise DataError(NOT_OBSERVED, source)
    return found


def _labelled(
    model: Model,
    found: Labelling,  # all but the predictions
    encoded: Callable[[int, int], Dataset],  # sequences first:last
    spans: Sequence[tuple[int, int]],
    workers: Workers,
    decision: Decision,
    allowed: Callable[[LabelRules, slice], np.ndarray | None],  # labels [n, Y] that a column lists at some positions
) -> Labelling:
    """Label all positions, then leave out those whose label is not observed."""
    costs = decision.costs(model.labels, model.encoding.odd_labels)
    model = model.deciding(decision)
    rules = model.label_rules

    def judged(part: Dataset) -> tuple[np.ndarray, Probabilities, tuple[str, ...]]:
        """Return labels [n], probabilities of observed ones, and remarks."""
        place = int(np.searchsorted(found.lines, part.lines[0])) if part.positions else 0
        rows = slice(place, place + part.positions)
        inferred = model.infer(part, costs, None if rules is None else allowed(rules, rows))
        remarks: tuple[str, ...] = ()
        if rules is not None and inferred.status is not None:
            remarks = rules.remarks(inferred.status, part.lines[part.offsets[:-1]], found.source)
        node, best = inferred.marginals.node, inferred.labels
        kept: Any = part.known_labels > UNOBSERVED
        kept = slice(None) if kept.all() else kept  # which copies nothing
        return best, Probabilities.of(node[kept], part.known_labels[kept], best[kept]), remarks

    def work(span: tuple[int, int]) -> tuple[list[Any], np.ndarray, dict[str, int], np.ndarray | None, int]:
        part = encoded(*span)
        known, outside = model.has_seen(part), model.encoding.outside(part)
        known = None if known is None else np.repeat(known, np.diff(part.offsets))
        return list(model.over_parts(part, judged)), part.known_labels > UNOBSERVED, dict(part.missing), known, outside

    runs, kept, lacking, known, outside = zip(*workers.map(work, spans), strict=True)
    missing: Counter[str] = sum(map(Counter, lacking), Counter())
    labels, probabilities, remarks = zip(*(each for run in runs for each in run), strict=True)
    found = replace(
        found,
        predicted=CodedColumn(list(model.labels), np.concatenate(labels)),
        probabilities=Probabilities.joined(probabilities),
        known_labels=model.labels,
        known_odd=model.encoding.odd_labels,
        decode=model.decode,
        span_bonus=model.span_bonus if model.decode == "viterbi" else 0.0,
        remarks=(
            *found.remarks,
            *(one for part in remarks for one in part),
            *outside_remarks(sum(outside), len(found.lines)),
        ),
        missing=tuple((name, missing[name]) for name in model.encoding.names if missing[name]),
        trained_on=None if any(part is None for part in known) else np.concatenate(known),
    )
    observed = np.flatnonzero(np.concatenate(kept))
    left_out = len(found.lines) - len(observed)
    if not left_out:
        return found
    return replace(
        found,
        gold=CodedColumn.of(found.gold).take(observed),
        predicted=CodedColumn.of(found.predicted).take(observed),
        offsets=np.unique(np.searchsorted(observed, found.offsets)),
        lines=found.lines[observed],
        words=None if found.words is None else CodedColumn.of(found.words).take(observed),
        seen=None if found.seen is None else replace(found.seen, values=found.seen.values[observed]),
        trained_on=None if found.trained_on is None else found.trained_on[observed],
        left_out=left_out,
    )
