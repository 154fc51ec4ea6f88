"""Errors of a labelling by their kind, by words that training has seen, and the words that are most often wrong.

Each gold span that is not predicted is paired with at most one predicted span that is not gold, and the reverse, if
they share a position: first those with the same positions, then those of the same type, then others, of several the
pair that shares most positions, then the first. The kinds of errors are

    type               a pair with the same positions and different types
    boundary           a pair with the same type and different positions
    boundary_and_type  a pair with different types and positions
    missed             a gold span without a partner
    spurious           a predicted span without a partner

so that gold = correct + pairs + missed, and predicted = correct + pairs + spurious: each span is counted once.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..corpora import CodedColumn
from .labelling import Labelling
from .spans import Score, SpanFinder, Spans, ratio

PAIRS = ("type", "boundary", "boundary_and_type")
SPAN_ERRORS = (*PAIRS, "missed", "spurious")
MOST_WORDS = 20  # that are listed as most often wrong


@dataclass(frozen=True)
class SpanErrors:
    """Errors of spans by kind: of all spans, and of each type; pairs count for the type of the gold span."""

    total: dict[str, int]
    types: dict[str, dict[str, int]]

    def to_dict(self) -> dict[str, Any]:
        return {**self.total, "types": self.types}


@dataclass(frozen=True)
class WordFigures:
    """Figures of positions whose words training has seen, or has not."""

    positions: int
    correct: int
    spans: Score | None  # of spans all of whose words are seen, or of which one is not

    def to_dict(self) -> dict[str, Any]:
        spans = None if self.spans is None else self.spans.to_dict()
        return {"positions": self.positions, "correct": self.correct, "accuracy": self.accuracy, "spans": spans}

    @property
    def accuracy(self) -> float:
        return ratio(self.correct, self.positions)


@dataclass(frozen=True)
class WrongWord:
    """A word, how often it is wrong and occurs, and the most frequent of its confusions."""

    word: str
    wrong: int
    positions: int
    gold: str
    predicted: str
    confusions: int  # positions with these two labels


@dataclass(frozen=True)
class ErrorAnalysis:
    """The result of `analyse_errors`."""

    spans: SpanErrors | None  # None without a scheme
    seen: WordFigures | None  # None where nothing says which words training has seen
    unseen: WordFigures | None
    rare: bool  # words that training has seen, but too rarely, are among the unseen ones
    words: tuple[WrongWord, ...] | None  # None without words

    def to_dict(self) -> dict[str, Any]:
        return {
            "errors": None if self.spans is None else self.spans.to_dict(),
            "seen_words": None if self.seen is None else self.seen.to_dict(),
            "unseen_words": None if self.unseen is None else {**self.unseen.to_dict(), "rare": self.rare},
            "wrong_words": None if self.words is None else [asdict(word) for word in self.words],
        }


def analyse_errors(labelling: Labelling, scheme: str | None, strict: bool = False) -> ErrorAnalysis:
    """Return errors by kind and by word; with `strict`, of spans that are written as the scheme demands."""
    gold, predicted = CodedColumn.of(labelling.gold), CodedColumn.of(labelling.predicted)
    spans, errors = None, None
    if scheme is not None:
        spans, types = found_spans(labelling, scheme if strict else None)
        errors = _span_errors(*spans, types)
    seen, figures = labelling.seen, dict[bool, WordFigures]()
    if seen is not None:
        for side in (True, False):
            own, score = seen.values == side, None
            if spans is not None:
                # A span has an unseen word where the count of these grows within it.
                unseen = np.concatenate([[0], np.cumsum(~seen.values)])
                inside = [each.take((unseen[each.ends] == unseen[each.starts]) == side) for each in spans]
                right = int(np.count_nonzero(among(*inside)))
                score = Score("", len(inside[0].starts), len(inside[1].starts), right)
            figures[side] = WordFigures(int(own.sum()), int(np.count_nonzero(labelling.right & own)), score)
    words = None
    if labelling.words is not None:
        words = _wrong_words(CodedColumn.of(labelling.words), gold, predicted, ~labelling.right)
    rare = seen is not None and not seen.complete
    return ErrorAnalysis(errors, figures.get(True), figures.get(False), rare, words)


def found_spans(labelling: Labelling, strict: str | None = None) -> tuple[tuple[Spans, Spans], list[str]]:
    """Return gold and predicted spans, those that are written strictly if a scheme is given, and their types."""
    gold, predicted = CodedColumn.of(labelling.gold), CodedColumn.of(labelling.predicted)
    alphabet = sorted(gold.present | predicted.present)
    finder, offsets = SpanFinder(alphabet), np.unique(labelling.offsets)
    first, second = (finder.find(each.numbered(alphabet), offsets) for each in (gold, predicted))
    if strict is not None:
        first, second = first.well_formed(strict), second.well_formed(strict)
    return (first, second), finder.types


def among(spans: Spans, others: Spans) -> np.ndarray:
    """Return True for each of the spans that is one of the others, [n]; those of a labelling are in order."""
    at = np.searchsorted(others.starts, spans.starts)
    found = at < len(others.starts)
    for own, other in ((spans.starts, others.starts), (spans.ends, others.ends), (spans.kinds, others.kinds)):
        found[found] = own[found] == other[at[found]]
    return found


def _span_errors(gold: Spans, predicted: Spans, types: list[str]) -> SpanErrors:
    right, wanted = among(gold, predicted), among(predicted, gold)
    correct = np.bincount(gold.kinds[right], minlength=len(types)).tolist()
    counts = {name: {"correct": n, **dict.fromkeys(SPAN_ERRORS, 0)} for name, n in zip(types, correct, strict=True)}
    gold, predicted = gold.take(~right), predicted.take(~wanted)
    # Spans of one labelling are in order and do not overlap: those that share positions with one are a run.
    first = np.searchsorted(predicted.ends, gold.starts, side="right")
    last = np.maximum(np.searchsorted(predicted.starts, gold.ends), first)
    mine = np.repeat(np.arange(len(first)), last - first)
    yours = np.arange(len(mine)) - np.repeat(np.cumsum(last - first) - (last - first), last - first) + first[mine]
    shared = np.minimum(gold.ends[mine], predicted.ends[yours]) - np.maximum(gold.starts[mine], predicted.starts[yours])
    same_place = (gold.starts[mine] == predicted.starts[yours]) & (gold.ends[mine] == predicted.ends[yours])
    rank = np.where(same_place, 0, np.where(gold.kinds[mine] == predicted.kinds[yours], 1, 2))
    partners = [np.zeros(len(gold.starts), dtype=bool), np.zeros(len(predicted.starts), dtype=bool)]
    for pair in np.lexsort((np.arange(len(mine)), -shared, rank)).tolist():
        if not partners[0][mine[pair]] and not partners[1][yours[pair]]:
            partners[0][mine[pair]] = partners[1][yours[pair]] = True
            counts[types[gold.kinds[mine[pair]]]][PAIRS[rank[pair]]] += 1
    for spans, paired, kind in zip((gold, predicted), partners, ("missed", "spurious"), strict=True):
        for number in spans.kinds[~paired].tolist():
            counts[types[number]][kind] += 1
    occurring = {name: each for name, each in counts.items() if any(each.values())}
    total = {kind: sum(each[kind] for each in counts.values()) for kind in ("correct", *SPAN_ERRORS)}
    return SpanErrors(total, occurring)


def _wrong_words(
    words: CodedColumn, gold: CodedColumn, predicted: CodedColumn, wrong: np.ndarray
) -> tuple[WrongWord, ...]:
    """Return the words that are wrong most often; of equal ones those that occur less often, then the first."""
    V = len(words.values)
    errors, positions = np.bincount(words.codes[wrong], minlength=V), np.bincount(words.codes, minlength=V)
    order = np.lexsort((np.arange(V), positions, -errors))[:MOST_WORDS]
    found = []
    for word in order[errors[order] > 0].tolist():
        at = np.flatnonzero(wrong & (words.codes == word))
        pairs = gold.codes[at].astype(np.int64) * len(predicted.values) + predicted.codes[at]
        values, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        best = np.lexsort((first, -counts))[0]
        own, other = divmod(int(values[best]), len(predicted.values))
        names = gold.values[own], predicted.values[other]
        found.append(WrongWord(words.values[word], int(errors[word]), int(positions[word]), *names, int(counts[best])))
    return tuple(found)
