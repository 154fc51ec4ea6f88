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
from .spans import Score, SpanMatches, ratio

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
    spans = None if scheme is None else labelling.spans.strict(scheme if strict else None)
    errors = None if spans is None else _span_errors(spans)
    seen, figures = labelling.seen, dict[bool, WordFigures]()
    if seen is not None:
        # A span has an unseen word where the count of these grows within it.
        unseen = np.concatenate([[0], np.cumsum(~seen.values)])
        for side in (True, False):
            own, score = seen.values == side, None
            if spans is not None:
                inside = [(unseen[each.ends] == unseen[each.starts]) == side for each in (spans.gold, spans.predicted)]
                score = Score("", *(int(np.count_nonzero(each)) for each in (*inside, inside[0] & spans.found)))
            figures[side] = WordFigures(int(own.sum()), int(np.count_nonzero(labelling.right & own)), score)
    words = None
    if labelling.words is not None:
        words = _wrong_words(CodedColumn.of(labelling.words), gold, predicted, ~labelling.right)
    rare = seen is not None and not seen.complete
    return ErrorAnalysis(errors, figures.get(True), figures.get(False), rare, words)


def _span_errors(spans: SpanMatches) -> SpanErrors:
    types, K = spans.types, len(spans.types)
    gold, predicted = spans.gold.take(~spans.found), spans.predicted.take(~spans.correct)
    # Spans of one labelling are in order and do not overlap: those that share positions with one are a run.
    first = np.searchsorted(predicted.ends, gold.starts, side="right")
    last = np.maximum(np.searchsorted(predicted.starts, gold.ends), first)
    mine = np.repeat(np.arange(len(first)), last - first)
    yours = np.arange(len(mine)) - np.repeat(np.cumsum(last - first) - (last - first), last - first) + first[mine]
    shared = np.minimum(gold.ends[mine], predicted.ends[yours]) - np.maximum(gold.starts[mine], predicted.starts[yours])
    same_place = (gold.starts[mine] == predicted.starts[yours]) & (gold.ends[mine] == predicted.ends[yours])
    rank = np.where(same_place, 0, np.where(gold.kinds[mine] == predicted.kinds[yours], 1, 2))
    pairs = np.zeros((len(PAIRS), K), dtype=np.int64)
    alone = [np.ones(len(each.starts), dtype=bool) for each in (gold, predicted)]
    order = np.lexsort((-shared, rank))
    for own, other, kind in np.stack([mine, yours, rank])[:, order].T.tolist():
        if alone[0][own] and alone[1][other]:
            alone[0][own] = alone[1][other] = False
            pairs[kind, gold.kinds[own]] += 1
    columns = (
        np.bincount(spans.gold.kinds[spans.found], minlength=K),
        *pairs,
        *(np.bincount(each.kinds[one], minlength=K) for each, one in zip((gold, predicted), alone, strict=True)),
    )
    named = zip(types, np.stack(columns, axis=1).tolist(), strict=True)
    counts = {name: dict(zip(("correct", *SPAN_ERRORS), row, strict=True)) for name, row in named}
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
