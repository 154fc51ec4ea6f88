"""Thresholds for review and sets of labels, found by labelled data that a model was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..corpora import CodedColumn, Corpus
from ..encoding import UNOBSERVED, Dataset
from ..errors import ConfigError, DataError
from ..scoring import COVERAGE, SPAN, Items, Labelling, confidences, detect_scheme, find_guarantee
from ..system import Workers, counted
from .decoding import REVIEW, SETS, Decoded, Decoder, Wishes
from .model import Model

MOST_SEEN = 0.01  # of the sequences may have been trained on


def add_guarantees(
    model: Model, corpus: Corpus, aims: Sequence[tuple[str, str, float]], workers: Workers, tell: Callable[[str], None]
) -> tuple[Model, list[dict[str, Any]]]:
    """Return the model with thresholds that labelled data gives, and figures of what they do to that data."""
    dataset, reports = model.encoding.encode(corpus, hashed=True), []
    if dataset.labels is None or (dataset.labels < 0).all():
        raise DataError("no gold labels that the model knows to compare with", corpus.source)
    _refuse_training_data(model, dataset, corpus.source, tell)

    def decoded(wishes: Wishes) -> Iterator[Decoded]:
        decoder = Decoder(model, wishes)  # that of `tag`
        rules, rows = decoder.rules, slice(0, corpus.positions)
        listed = None if rules is None else rules.allowed_rows(corpus, model.encoding, rows)
        return decoder.decode(dataset, corpus.source, workers, listed)

    gold, offsets = dataset.known_labels, dataset.offsets
    found = [np.zeros((3, 0))]  # predicted label, its confidence, minus the probability of the gold label
    for part in decoded(Wishes(marginals=True)):
        assert part.marginals is not None
        own = gold[(at := sum(one.shape[1] for one in found)) : at + len(part.labels)]
        of_gold = np.where(own < 0, -np.inf, confidences(part.marginals, np.maximum(own, 0)))
        found.append(np.stack([part.labels, confidences(part.marginals, part.labels), -of_gold]))
    labels, confidence, of_gold = np.concatenate(found, axis=1)
    labels, observed = labels.astype(np.int32), gold != UNOBSERVED
    for kind, of, level in aims:
        if of == SPAN:
            scheme = detect_scheme(model.encoding.span_labels)
            if scheme is None:
                message = "the labels of the model are not those of spans (B-X, I-X, O): leave out 'of'"
                raise ConfigError(message, settings=["of"])
            if not observed.all():
                raise DataError("spans need all labels, and some are not observed", corpus.source, settings=["of"])
            pair = CodedColumn.of(corpus.columns[-1]), CodedColumn(list(model.labels), labels)
            odd = model.encoding.odd_labels
            labelling = Labelling(
                corpus.source,
                *pair,
                offsets,
                corpus.lines,
                known_labels=model.labels,
                known_odd=odd,
            )
            for remark in labelling.odd_remarks(scheme):
                tell(remark)
            items = Items.spans(labelling, confidence)
        else:
            sequence = np.repeat(np.arange(dataset.sequences), np.diff(offsets))
            own = of_gold if kind == COVERAGE else confidence
            items = Items(own[observed], (labels != gold)[observed], sequence[observed])
        one = find_guarantee(items, kind, of, level, corpus.source)
        use, limit = (SETS, -one.threshold) if kind == COVERAGE else (REVIEW, one.threshold)
        model = replace(model, guarantees={**model.guarantees, use: one})
        left, risk = items.confidence > limit, items.risk(limit)
        figures: dict[str, Any] = {"items": len(left), "marked": int((~left).sum())}
        figures["among_unmarked"] = risk * items.sequences / max(items.share[left].sum(), 1e-300)
        if use == SETS:
            sets = [part.sets for part in decoded(Wishes(sets=len(model.labels)))]
            figures = {"mean_size": sum(int(np.sum(own)) for own in sets if own is not None) / dataset.positions}
        reports.append({**vars(one), "wrong": items.risk(-np.inf), "risk": risk, **figures})
    return model, reports


def _refuse_training_data(model: Model, dataset: Dataset, source: str, tell: Callable[[str], None]) -> None:
    seen = model.has_seen(dataset)
    if seen is None:
        tell("the model has no hashes of its training data: give sequences that it was not trained on")
    elif seen.any():
        text = f"{np.count_nonzero(seen):,} of {counted(len(seen), 'sequence')} were in the training data of the model"
        if np.mean(seen) > MOST_SEEN:
            raise DataError(f"{text}, which makes fewer errors there: give others, such as a part held out", source)
        tell(text)
