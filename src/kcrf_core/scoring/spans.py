"""Spans of labels given as numbers, and precision, recall and F1, of positions and of spans.

With g gold items, p predicted ones and c correct ones, precision is c / p, recall c / g and F1 2 c / (g + p), each 0
where its denominator is. A span is correct if start, end and type are. `macro_f1` is the mean over types that occur.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from ..corpora import CodedColumn
from ..errors import DataError
from ..system import without_empty
from . import SCHEMES
from .schemes import CLOSING, OPENING, WHOLE, Ends, labels_of_spans, split_label


@dataclass(frozen=True)
class Transitions:
    """Labels that may follow each other, begin and end a sequence."""

    pairs: np.ndarray  # [Y, Y] bool
    first: np.ndarray  # [Y] bool
    last: np.ndarray  # [Y] bool

    @classmethod
    def every(cls, Y: int) -> Transitions:
        return cls(np.ones((Y, Y), dtype=bool), np.ones(Y, dtype=bool), np.ones(Y, dtype=bool))

    def __and__(self, other: Transitions) -> Transitions:
        return Transitions(
            *(own & theirs for own, theirs in zip(vars(self).values(), vars(other).values(), strict=True))
        )

    @property
    def usable(self) -> np.ndarray:
        """Labels [Y] that some whole sequence has."""
        return _reached(self.first, self.pairs) & _reached(self.last, self.pairs.T)


def _reached(labels: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return labels [Y] that can be reached from some labels by any number of allowed transitions."""
    while not np.array_equal(more := labels | (labels @ pairs), labels):
        labels = more
    return labels


def allowed_transitions(labels: Sequence[str], scheme: str, others: bool = False) -> Transitions:
    """Find the pairs of labels that a well-formed sequence of the scheme can have.

    Labels of another form are an error, or, where `others` may be there, stand nowhere.
    """
    rules = SCHEMES[scheme]
    parts = [split_label(label) for label in labels]
    known = np.array([part is not None and part[0] in rules.letters for part in parts], dtype=bool)
    if not known.all():
        if not others:
            label = labels[int(np.argmin(known))]
            raise DataError(f"label '{label}' does not belong to the scheme {scheme} ({', '.join(rules.letters)})")
        own = allowed_transitions([label for label, one in zip(labels, known, strict=True) if one], scheme)
        first, last, pairs = known.copy(), known.copy(), np.outer(known, known)
        first[known], last[known], pairs[pairs] = own.first, own.last, own.pairs.ravel()
        return Transitions(pairs, first, last)
    outside = ("O", "")
    own_parts = [part for part in parts if part is not None]  # all
    pairs = np.array([[rules.follows(before, after) for after in own_parts] for before in own_parts], dtype=bool)
    first = np.array([rules.follows(outside, after) for after in own_parts], dtype=bool)
    last = np.ones(len(parts), dtype=bool)
    if rules.closed:
        last = np.array([rules.follows(before, outside) for before in own_parts], dtype=bool)
    return Transitions(pairs, first, last)


def tell_iob_apart(scheme: str, found: Spans) -> str:
    """Return the scheme that explains the spans of a labelling best, among those with the letters of `scheme`."""
    rivals = [name for name, other in SCHEMES.items() if other.letters == SCHEMES[scheme].letters and name != scheme]
    explained = {name: np.count_nonzero(SCHEMES[name].well_formed(found.written)) for name in (scheme, *rivals)}
    return max(explained, key=explained.__getitem__)  # the first of those that are equal


@dataclass(frozen=True, eq=False)
class Spans:
    """All spans of a labelling, in order."""

    starts: np.ndarray  # [n] int64
    ends: np.ndarray  # [n] int64, exclusive
    kinds: np.ndarray  # [n] indices into the types of the finder
    written: Ends  # the labels at their ends

    def well_formed(self, scheme: str) -> Spans:
        """Return the spans that are written as a scheme demands."""
        return self.take(SCHEMES[scheme].well_formed(self.written))

    def take(self, some: np.ndarray) -> Spans:
        """Return some of the spans, given by [n] bool."""
        if some.all():
            return self
        written = Ends(*(each[some] for each in vars(self.written).values()))
        return Spans(self.starts[some], self.ends[some], self.kinds[some], written)


class SpanFinder:
    """Finder of spans in many sequences at once, over labels given as numbers.

    `alphabet[y]` is the label with number y; `types` are the types of its labels, sorted, and
    `kinds` [Y] the number of that of each label, -1 for O.
    """

    def __init__(self, alphabet: Sequence[str]):
        parts = []
        for label in alphabet:
            part = split_label(label)
            if part is None:
                raise DataError(f"label {label!r} is not of the form B-TYPE, I-TYPE, O (or E, S, L, U)")
            parts.append(part)
        # The type of O, bare or not, names no span.
        self.types = sorted({kind for letter, kind in parts if letter != "O"})
        number = {kind: k for k, kind in enumerate(self.types)}
        # [Y] each, by label
        self.kinds = np.array([-1 if letter == "O" else number[kind] for letter, kind in parts], dtype=np.int16)
        self._opening = np.array([letter in OPENING for letter, _ in parts], dtype=bool)
        self._closing = np.array([letter in CLOSING for letter, _ in parts], dtype=bool)
        self._whole = np.array([letter in WHOLE for letter, _ in parts], dtype=bool)
        # [Y, Y] bool, pairs of neighbouring labels between which a span ends or begins
        self.apart = (self.kinds[:, None] != self.kinds) | self._opening | self._closing[:, None]

    def find(self, codes: np.ndarray, offsets: np.ndarray) -> Spans:
        """Find all spans; `codes` are the labels of N positions, sequence s is positions offsets[s]:offsets[s+1]."""
        N = len(codes)
        kind = self.kinds[codes]  # [N], -1 outside
        begins = np.zeros(N + 1, dtype=bool)  # [N+1], a sequence begins at the position, or has ended before it
        begins[offsets] = True
        # O is a type of its own here (-1), so that the cut beside it needs no case.
        changes = kind[1:] != kind[:-1]  # [N-1]
        opening, closing = self._opening[codes], self._closing[codes]
        boundary = begins.copy()  # [N+1], boundary[t] lies before position t
        boundary[1:N] |= changes | opening[1:] | closing[:-1]
        inside = kind >= 0
        starts = np.flatnonzero(inside & boundary[:-1])
        ends = np.flatnonzero(inside & boundary[1:]) + 1
        follows = np.zeros(N, dtype=bool)  # [N]; the position before is of the same type
        np.logical_not(changes | begins[1:N], out=follows[1:])
        whole = self._whole[codes[starts]]
        written = Ends(opening[starts], closing[ends - 1], whole, ends - starts == 1, follows[starts])
        return Spans(starts, ends, kind[starts], written)


@dataclass(frozen=True)
class Score:
    """Counts for one label, for one span type, or for all of them, and the three figures."""

    name: str  # the label or type; empty for a bare type and for totals
    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return ratio(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return ratio(self.correct, self.gold)

    @property
    def f1(self) -> float:
        return ratio(2 * self.correct, self.gold + self.predicted)

    def to_dict(self) -> dict:
        keys = ("gold", "predicted", "correct", "precision", "recall", "f1")
        return {key: getattr(self, key) for key in keys}


def score_rows(names: Sequence[str], gold: np.ndarray, predicted: np.ndarray, correct: np.ndarray) -> tuple[Score, ...]:
    """Make one score for each name, from counts in the order of the names."""
    rows = zip(names, gold.tolist(), predicted.tolist(), correct.tolist(), strict=True)
    return tuple(Score(*row) for row in rows)


def ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else 0.0


def mean_f1(scores: Sequence[Score], weighted: bool = False) -> float:
    """Return the plain mean of F1 over scores (macro average), or the mean weighted by gold counts."""
    weights = [score.gold if weighted else 1 for score in scores]
    pairs = zip(weights, scores, strict=True)
    return ratio(math.fsum(weight * score.f1 for weight, score in pairs), sum(weights))


@dataclass(frozen=True)
class SpanScores:
    """Scores of spans: over all of them, and by type (sorted; those in gold or prediction)."""

    total: Score
    types: tuple[Score, ...]
    macro_f1: float
    weighted_f1: float

    def to_dict(self) -> dict:
        return {
            **self.total.to_dict(),
            "macro_f1": self.macro_f1,
            "weighted_f1": self.weighted_f1,
            "types": [{"type": score.name, **score.to_dict()} for score in self.types],
        }


class SpanMatches:
    """The gold and predicted spans of two labellings of N positions, and those that agree."""

    def __init__(self, types: list[str], gold: Spans, predicted: Spans, N: int):
        self.types, self.gold, self.predicted, self.N = types, gold, predicted, N
        # Spans of one labelling do not overlap, so a start names at most one of them: the gold span that begins where
        # a predicted one does is looked up by it.
        number_at = np.full(N, -1, dtype=np.int32)  # [N] of the gold span that begins there
        number_at[gold.starts] = np.arange(len(gold.starts), dtype=np.int32)
        rivals = number_at[predicted.starts]
        agree = rivals >= 0
        agree[agree] = (gold.ends[rivals[agree]] == predicted.ends[agree]) & (
            gold.kinds[rivals[agree]] == predicted.kinds[agree]
        )
        self.correct = agree  # of predicted spans, bool
        self.found = np.zeros(len(gold.starts), dtype=bool)  # of gold spans
        self.found[rivals[agree]] = True

    def strict(self, scheme: str | None) -> SpanMatches:
        """Return the spans that are written as a scheme demands; all of them for None."""
        if scheme is None:
            return self
        gold, predicted = self.gold.well_formed(scheme), self.predicted.well_formed(scheme)
        same = gold is self.gold and predicted is self.predicted
        return self if same else SpanMatches(self.types, gold, predicted, self.N)

    @property
    def items(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Starts and types of gold, predicted and correct spans."""
        gold, predicted, right = self.gold, self.predicted, self.correct
        both = predicted.starts[right], predicted.kinds[right]
        return [(gold.starts, gold.kinds), (predicted.starts, predicted.kinds), both]

    def scores(self) -> SpanScores:
        counts = [np.bincount(kinds, minlength=len(self.types)) for _, kinds in self.items]
        total, types = Score("", *(int(count.sum()) for count in counts)), score_rows(self.types, *counts)
        return SpanScores(total, types, mean_f1(types), mean_f1(types, weighted=True))

    def by_unit(self, units: np.ndarray) -> np.ndarray:
        """Count gold, predicted and correct spans [U, 3] that begin in each unit; `units` [U+1] are offsets."""
        # Starts are in order: those of a unit stand between the first from its beginning and from that of the next.
        return np.stack([np.diff(np.searchsorted(starts, units)) for starts, _ in self.items], axis=1)


def match_spans(
    gold: CodedColumn, predicted: CodedColumn, offsets: np.ndarray, odd: Collection[str] = ()
) -> SpanMatches:
    """Find the spans of two labellings; odd labels are O, sequence s is offsets[s]:offsets[s+1]."""
    alphabet = sorted(gold.present | predicted.present)
    finder, offsets = SpanFinder(labels_of_spans(alphabet, odd)), without_empty(offsets)
    first, second = (finder.find(each.numbered(alphabet), offsets) for each in (gold, predicted))
    return SpanMatches(finder.types, first, second, len(gold))
