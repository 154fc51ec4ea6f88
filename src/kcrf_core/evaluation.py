"""How good predicted labels are: by position, by sequence, by label and, for span labels, by span.

With g gold items, p predicted ones and c correct ones (positions of one label, or spans of one type),

    precision = c / p,   recall = c / g,   F1 = 2 c / (g + p),

each 0 where its denominator is. A span is correct if start, end and type are. The figures over all spans
come from the summed counts, as in conlleval (micro average); `macro_f1` is the plain mean of F1 over labels
or types, those that occur in gold or prediction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import ConfigError, DataError
from .schemes import SCHEME_LETTERS, SpanFinder, detect_scheme, split_label

# No task has so many labels, but words read as labels do, and the confusion matrix is dense.
_MOST_LABELS = 4096


@dataclass(frozen=True)
class Score:
    """Counts for one label, one span type, or all of them, and the three figures they give."""

    name: str  # the label or type; empty for a bare type and for totals
    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return _ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return _ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        return _ratio(2 * self.correct, self.gold + self.predicted)

    def to_dict(self) -> dict:
        return {
            "gold": self.gold,
            "predicted": self.predicted,
            "correct": self.correct,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
        }


@dataclass(frozen=True)
class SpanScores:
    """Scores of spans: over all of them, and by type (sorted; those in gold or prediction)."""

    total: Score
    types: tuple[Score, ...]

    @property
    def macro_f1(self) -> float:
        return _mean_f1(self.types)


@dataclass(frozen=True, eq=False)  # no ==: it would be ambiguous for the matrix
class Evaluation:
    """What `evaluate` found. Fractions are between 0 and 1."""

    positions: int
    sequences: int  # those with at least one position
    correct: int  # positions
    correct_sequences: int  # without a wrong position
    unknown_gold: int | None  # positions whose gold label the model does not know; None if not asked
    labels: tuple[Score, ...]  # by label, sorted; those in gold or prediction
    confusion: np.ndarray  # [Y, Y] int64, rows gold, columns predicted, in the order of `labels`
    scheme: str | None
    spans: SpanScores | None  # None without a scheme

    @property
    def accuracy(self) -> float:
        return _ratio(self.correct, self.positions)

    @property
    def sequence_accuracy(self) -> float:
        return _ratio(self.correct_sequences, self.sequences)

    @property
    def macro_f1(self) -> float:
        return _mean_f1(self.labels)

    def to_dict(self) -> dict:
        """Plain values, for JSON; `schema` grows when the layout changes."""
        spans = None
        if self.spans is not None:
            spans = {
                **self.spans.total.to_dict(),
                "macro_f1": self.spans.macro_f1,
                "types": [{"type": score.name, **score.to_dict()} for score in self.spans.types],
            }
        return {
            "schema": 1,
            "positions": self.positions,
            "sequences": self.sequences,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "correct_sequences": self.correct_sequences,
            "sequence_accuracy": self.sequence_accuracy,
            "macro_f1": self.macro_f1,
            "unknown_gold": self.unknown_gold,
            "labels": [{"label": score.name, **score.to_dict()} for score in self.labels],
            "confusion": {
                "labels": [score.name for score in self.labels],
                "counts": self.confusion.tolist(),
            },
            "scheme": self.scheme,
            "spans": spans,
        }


def evaluate(
    gold: Sequence[str],
    predicted: Sequence[str],
    offsets: Sequence[int] | np.ndarray,
    scheme: str | None = "auto",
    known_labels: Iterable[str] | None = None,
) -> Evaluation:
    """Compare the labels of N positions; sequence s is positions offsets[s]:offsets[s+1].

    `scheme` is a name from `schemes.SCHEME_LETTERS`, `auto` to detect it, or None for no span scores.
    `known_labels` are those of the model: they help detection and give `unknown_gold`.
    """
    N = len(gold)
    offsets = np.asarray(offsets, dtype=np.int64)  # [S+1]
    if len(predicted) != N:
        raise ValueError(f"{N} gold labels but {len(predicted)} predicted ones")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != N or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets do not lead from 0 to {N}")
    if N == 0:
        raise DataError("nothing to evaluate")

    known = None if known_labels is None else set(known_labels)
    alphabet = sorted(set(gold) | set(predicted))
    Y = len(alphabet)
    if Y > _MOST_LABELS:
        raise DataError(
            f"{Y} different labels in {N} positions, more than {_MOST_LABELS} (are these the label columns?)"
        )
    if scheme == "auto":
        scheme = detect_scheme(alphabet if known is None else known.union(alphabet))
    elif scheme is not None:
        _check_scheme(scheme, alphabet)

    code = {label: y for y, label in enumerate(alphabet)}
    gold_codes = _encode(gold, code)
    predicted_codes = _encode(predicted, code)

    confusion = np.bincount(gold_codes * Y + predicted_codes, minlength=Y * Y).reshape(Y, Y)
    confusion.setflags(write=False)
    gold_counts, predicted_counts = confusion.sum(axis=1), confusion.sum(axis=0)
    correct = np.diagonal(confusion)

    unknown_gold = None
    if known is not None:
        unknown_gold = sum(int(gold_counts[y]) for y, label in enumerate(alphabet) if label not in known)

    # An empty sequence has nothing to be right about.
    offsets = np.unique(offsets)
    wrong = np.add.reduceat(gold_codes != predicted_codes, offsets[:-1], dtype=np.int64)  # [S]
    return Evaluation(
        positions=N,
        sequences=len(wrong),
        correct=int(correct.sum()),
        correct_sequences=int(np.count_nonzero(wrong == 0)),
        unknown_gold=unknown_gold,
        labels=_scores(alphabet, gold_counts, predicted_counts, correct),
        confusion=confusion,
        scheme=scheme,
        spans=None if scheme is None else span_scores(alphabet, gold_codes, predicted_codes, offsets),
    )


def _check_scheme(scheme: str, alphabet: Sequence[str]) -> None:
    letters = SCHEME_LETTERS.get(scheme)
    if letters is None:
        raise ConfigError(f"unknown label scheme {scheme!r} (known: auto, {', '.join(SCHEME_LETTERS)})")
    for label in alphabet:
        part = split_label(label)
        if part is None or part[0] not in letters:
            raise DataError(f"label {label!r} does not belong to the scheme {scheme} ({', '.join(letters)})")


def _encode(labels: Sequence[str], code: dict[str, int]) -> np.ndarray:
    return np.fromiter(map(code.__getitem__, labels), dtype=np.int64, count=len(labels))  # [N]


def span_scores(
    alphabet: Sequence[str], gold_codes: np.ndarray, predicted_codes: np.ndarray, offsets: np.ndarray
) -> SpanScores:
    """Scores of the spans that two labellings [N] make, whose codes number the labels of `alphabet`."""
    finder = SpanFinder(alphabet)
    K = len(finder.types)
    gold_starts, gold_ends, gold_types = finder.find(gold_codes, offsets)
    starts, ends, types = finder.find(predicted_codes, offsets)
    # Spans of one labelling do not overlap, so a start names at most one of them: put end and type of the
    # gold span there, and look them up for each predicted span.
    end_at = np.zeros(len(gold_codes), dtype=np.int64)  # [N]; 0 is the end of no span
    type_at = np.zeros(len(gold_codes), dtype=np.int64)  # [N]
    end_at[gold_starts], type_at[gold_starts] = gold_ends, gold_types
    matched = (end_at[starts] == ends) & (type_at[starts] == types)
    counts = [np.bincount(which, minlength=K) for which in (gold_types, types, types[matched])]
    return SpanScores(
        total=Score("", *(int(count.sum()) for count in counts)),
        types=_scores(finder.types, *counts),
    )


def _scores(names: Sequence[str], gold: np.ndarray, predicted: np.ndarray, correct: np.ndarray) -> tuple[Score, ...]:
    rows = zip(names, gold.tolist(), predicted.tolist(), correct.tolist(), strict=True)
    return tuple(Score(*row) for row in rows)


def _ratio(numerator: int, denominator: int) -> float:
    return numerator / denominator if denominator else 0.0


def _mean_f1(scores: Sequence[Score]) -> float:
    return sum(score.f1 for score in scores) / len(scores) if scores else 0.0
