"""Evaluation of predicted labels: by position, by sequence, by label and, for span labels, by span.

`spans` says what is counted for each label and each type of span. `macro_f1` is the plain mean
of F1 over labels that occur in gold or prediction, `weighted_f1` the mean weighted by gold counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import MOST_LABELS, CodedColumn
from ..errors import ConfigError, DataError
from ..system import without_empty
from . import SCHEMES
from .labelling import Labelling
from .schemes import detect_scheme, labels_of_spans, split_label
from .spans import Score, SpanMatches, SpanScores, mean_f1, ratio, score_rows, tell_iob_apart


@dataclass(frozen=True, eq=False)  # no ==: it would be ambiguous for the matrix
class Evaluation:
    """The result of `evaluate`. Fractions are between 0 and 1.

    >>> from kcrf_core import evaluate
    >>> found = evaluate(["B-A", "I-A", "O"], ["B-A", "O", "O"], [0, 3])
    >>> found.scheme, found.spans.total.f1, [score.name for score in found.labels]
    ('iob2', 0.0, ['B-A', 'I-A', 'O'])
    """

    positions: int
    sequences: int  # those with at least one position
    correct: int  # positions
    correct_sequences: int  # without a wrong position
    unknown_gold: int | None  # positions whose gold label the model does not know; None if not asked
    labels: tuple[Score, ...]  # by label, sorted; those in gold or prediction
    confusion: np.ndarray  # [Y, Y] int64, rows gold, columns predicted, in the order of `labels`
    scheme: str | None
    scheme_detected: bool  # or looked for in vain
    odd_labels: tuple[str, ...]  # not of the scheme of nearly all others: O for spans
    spans: SpanScores | None  # None without a scheme
    strict_spans: SpanScores | None  # of the spans that are written as the scheme demands
    # [U, 4] int64 of each sequence that is not empty, or of each block: positions, correct ones, sequences that begin
    # there, and those of them without a wrong position; with a scheme [U, 7]: gold, predicted and correct spans, too.
    unit_counts: np.ndarray
    strict_counts: np.ndarray  # with strict spans
    accuracy: float
    sequence_accuracy: float
    macro_f1: float
    weighted_f1: float

    def to_dict(self) -> dict:
        """Return plain values for JSON; `schema` grows when a key goes or changes its meaning, not when one comes."""
        counts = ("positions", "sequences", "correct", "accuracy", "correct_sequences", "sequence_accuracy")
        means = ("macro_f1", "weighted_f1", "unknown_gold")
        return {
            "schema": 1,
            **{key: getattr(self, key) for key in (*counts, *means)},
            "labels": [{"label": score.name, **score.to_dict()} for score in self.labels],
            "confusion": {"labels": [score.name for score in self.labels], "counts": self.confusion.tolist()},
            "scheme": self.scheme,
            "spans": None if self.spans is None else self.spans.to_dict(),
            "scheme_detected": self.scheme_detected,
            **({"odd_labels": list(self.odd_labels)} if self.odd_labels else {}),
            "strict_spans": None if self.strict_spans is None else self.strict_spans.to_dict(),
        }


def evaluate(
    gold: Sequence[str],
    predicted: Sequence[str],
    offsets: Sequence[int] | np.ndarray,
    scheme: str | None = "auto",
    known_labels: Iterable[str] | None = None,
    units: np.ndarray | None = None,
    odd_labels: Iterable[str] = (),
) -> Evaluation:
    """Compare the labels of N positions; sequence s is positions offsets[s]:offsets[s+1].

    `scheme` is a name from `SCHEMES`, `auto` to detect it, or None for no span scores.
    `known_labels` are those of the model: they help detection and give `unknown_gold`. `odd_labels`
    count as O for spans, and so do others that are not of the scheme, if they are at most a
    hundredth of all labels. Where `units` [U+1] are offsets of blocks within sequences,
    `unit_counts` are theirs.

    >>> from kcrf_core import evaluate
    >>> evaluate(["a", "b", "b"], ["a", "b", "a"], [0, 1, 3]).accuracy
    0.6666666666666666
    """
    N = len(gold)
    offsets = np.asarray(offsets, dtype=np.int64)  # [S+1]
    if len(predicted) != N:
        raise ValueError(f"{N} gold labels but {len(predicted)} predicted ones")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != N or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets do not lead from 0 to {N}")
    known = None if known_labels is None else tuple(known_labels)
    columns = CodedColumn.of(gold), CodedColumn.of(predicted)
    labelling = Labelling(
        "",
        *columns,
        offsets,
        np.arange(N),
        known_labels=known,
        known_odd=tuple(odd_labels),
    )
    return evaluate_labelling(labelling, scheme, units)


def evaluate_labelling(labelling: Labelling, scheme: str | None, units: np.ndarray | None = None) -> Evaluation:
    """Compare gold and predicted labels, as `evaluate` does."""
    gold, predicted = CodedColumn.of(labelling.gold), CodedColumn.of(labelling.predicted)
    source = labelling.source or None
    N, offsets = len(gold), without_empty(labelling.offsets)  # an empty sequence has nothing to be right about
    if N == 0:
        raise DataError("nothing to evaluate", source)
    known = None if labelling.known_labels is None else set(labelling.known_labels)
    for column in (gold, predicted):
        check_label_count(column, source)
    alphabet = sorted(gold.present | predicted.present)
    Y = len(alphabet)
    gold_codes, predicted_codes = gold.numbered(alphabet), predicted.numbered(alphabet)
    detected = scheme == "auto"
    if detected:
        scheme = detect_scheme(labelling.label_counts.keys() - labelling.odd_labels)
    elif scheme is not None:
        if scheme not in SCHEMES:
            raise ConfigError(f"unknown label scheme {scheme!r} (known: auto, {', '.join(SCHEMES)})")
        letters = SCHEMES[scheme].letters
        for label in labels_of_spans(alphabet, labelling.odd_labels):
            part = split_label(label)
            if part is None or part[0] not in letters:
                raise DataError(
                    f"label {label!r} does not belong to the scheme {scheme} ({', '.join(letters)})", source
                )
    matches: list[SpanMatches] = []  # of all spans, and of those that are written strictly
    odd: tuple[str, ...] = ()
    if scheme is not None:
        odd = labelling.odd_labels
        spans = labelling.spans
        if detected:
            scheme = tell_iob_apart(scheme, spans.gold)
        matches = [spans, spans.strict(scheme)]

    confusion = np.bincount(gold_codes * Y + predicted_codes, minlength=Y * Y).reshape(Y, Y)
    confusion.setflags(write=False)
    gold_counts, predicted_counts = confusion.sum(axis=1), confusion.sum(axis=0)
    correct = np.diagonal(confusion)

    unknown_gold = None
    if known is not None:
        unknown_gold = sum(int(gold_counts[y]) for y, label in enumerate(alphabet) if label not in known)

    right = np.add.reduceat(labelling.right, offsets[:-1], dtype=np.int64) == np.diff(offsets)  # [S]
    units = offsets if units is None else units
    counts = np.zeros((len(units) - 1, 4), dtype=np.int64)
    counts[:, 0] = np.diff(units)
    counts[:, 1] = np.add.reduceat(labelling.right, units[:-1], dtype=np.int64)
    counts[:, 2] = np.isin(units[:-1], offsets)
    counts[counts[:, 2] > 0, 3] = right
    scores: list[SpanScores | None] = [one.scores() for one in matches] or [None, None]
    unit_counts, strict_counts = [np.hstack([counts, one.by_unit(units)]) for one in matches] or [counts, counts]
    labels = score_rows(alphabet, gold_counts, predicted_counts, correct)
    return Evaluation(
        positions=N,
        sequences=len(right),
        correct=int(correct.sum()),
        correct_sequences=int(np.count_nonzero(right)),
        unknown_gold=unknown_gold,
        labels=labels,
        confusion=confusion,
        scheme=scheme,
        scheme_detected=detected,
        odd_labels=tuple(label for label in alphabet if label in odd),
        spans=scores[0],
        strict_spans=scores[1],
        unit_counts=unit_counts,
        strict_counts=strict_counts,
        accuracy=int(correct.sum()) / N,
        sequence_accuracy=ratio(int(np.count_nonzero(right)), len(right)),
        macro_f1=mean_f1(labels),
        weighted_f1=mean_f1(labels, weighted=True),
    )


def check_label_count(labels: Sequence[str], source: str | None = None) -> None:
    """Refuse more labels than a model may have: they are words that are read as labels, most likely."""
    count = len(CodedColumn.of(labels).present)
    if count > MOST_LABELS:
        found = f"{count} different labels in {len(labels)} positions, more than {MOST_LABELS}"
        raise DataError(f"{found} (are these the label columns?)", source)
