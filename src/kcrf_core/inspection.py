"""What the weights of a model say, term by term: which feature, or pivot, speaks for which label, and how much.

A weight is told as what it adds to the score of a label, or of two labels in a row, where its feature is there: for two
labels the one column of weights is told as both, for a conjunction with the weight that the kernel gives it. With a
cosine kernel scores are divided by the length of the input afterwards. A pivot is told by the line that it stands on in
the training data, with its coefficient, which its kernel value is still to be multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .conjunctions import squared_weights
from .feature_names import CONSTANT, FeatureNames
from .model import AffineTerm, ConjunctionTerm, KernelTerm, Model, Term
from .problem import spread
from .sparse_weights import as_dense, matrix_of

# Features that are told at a time: bounds memory, whatever the size of the model.
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class TermWeights:
    """The weights of one term as a table of items and labels."""

    items: int  # features, conjunctions or pivots
    name: Callable[[int], str]  # of each
    rows: Callable[[slice], np.ndarray]  # [n, Y] of some of them, for edge-x [n, Y^2]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows, some after others, with the number of the first."""
        for first in range(0, self.items, ROWS_AT_ONCE):
            yield first, self.rows(slice(first, min(first + ROWS_AT_ONCE, self.items)))

    def strongest(self, count: int) -> list[list[tuple[str, float]]]:
        """For each label, or pair of labels, the largest weights by size: names and weights, the largest first."""
        best: list[list[tuple[float, int, float]]] = []
        for first, weights in self.blocks():
            if not best:
                best = [[] for _ in range(weights.shape[1])]
            for y, kept in enumerate(best):
                column = weights[:, y]
                size = np.abs(column)
                limit = kept[-1][0] if len(kept) == count else -1.0
                found = np.flatnonzero((size > limit) & (size > 0))
                if len(found) > count:
                    found = found[np.argsort(-size[found], kind="stable")[:count]]
                kept += [(float(size[k]), first + int(k), float(column[k])) for k in found]
                kept.sort(key=lambda each: (-each[0], each[1]))
                del kept[count:]
        told = [[(self.name(item), weight) for _, item, weight in kept] for kept in best]
        return [sorted(kept, key=lambda each: -each[1]) for kept in told]


def term_weights(model: Model, term: Term) -> TermWeights:
    labels = len(model.labels)

    def told(weights: np.ndarray) -> np.ndarray:
        return spread(weights, labels) if term.type == "node" else weights

    if isinstance(term, KernelTerm):
        return TermWeights(len(term.lines), lambda m: f"line:{term.lines[m]}", lambda rows: told(term.alpha[rows]))
    names, matrix = FeatureNames(model.encoding, term.features), matrix_of(term.weights)
    if isinstance(term, ConjunctionTerm):
        found = term.conjunctions
        sizes = np.searchsorted([1, found.base, found.base**2], found.keys, side="right")
        squares = squared_weights(found.kernel)[np.minimum(sizes, found.kernel.degree)]  # [Q]

        def rows(part: slice) -> np.ndarray:
            return told(as_dense(matrix[found.columns[part]]) * squares[part, None])

        return TermWeights(len(found.keys), lambda q: names.conjunction(int(found.keys[q]), found), rows)
    D = len(names)
    if not isinstance(term, AffineTerm):
        return TermWeights(D, names.__getitem__, lambda rows: told(as_dense(matrix[rows])))

    def with_bias(rows: slice) -> np.ndarray:
        inner = as_dense(matrix[rows.start : min(rows.stop, D)])
        return told(np.concatenate([inner, term.bias[None]]) if rows.stop > D else inner)

    return TermWeights(D + 1, lambda k: CONSTANT if k == D else names[k], with_bias)


def weight_count(term: Term) -> int:
    """Numbers that the file holds for a term, but for what its features or pivots are."""
    if isinstance(term, KernelTerm):
        return term.alpha.size
    own = term.weights.size if isinstance(term.weights, np.ndarray) else len(term.weights.values)
    return own + (len(term.bias) if isinstance(term, AffineTerm) else 0)


def dump(model: Model) -> Iterator[list[str]]:
    """Every weight that is not zero, as the cells of a line: the term, what it looks at, labels, the weight."""
    labels = list(model.labels)
    pairs = [[before, after] for before in labels for after in labels]
    for term in model.terms:
        weights = term_weights(model, term)
        names = [[label] for label in labels] if term.type == "node" else pairs
        for first, block in weights.blocks():
            name, last = "", -1
            for row, column in zip(*(axis.tolist() for axis in np.nonzero(block)), strict=True):
                if row != last:
                    name, last = weights.name(first + row), row
                yield [term.name, name, *names[column], _number(block[row, column])]
    edges = model.edges
    for kind, table in (("start", edges.start), ("end", edges.end), ("transition", edges.transitions)):
        yield from _table(kind, table, labels)
    if edges.triples is not None:
        yield from _table("triple", edges.triples, labels)


def _table(kind: str, table: np.ndarray, labels: list[str]) -> Iterator[list[str]]:
    for place in zip(*(axis.tolist() for axis in np.nonzero(table)), strict=True):
        yield [kind, *(labels[y] for y in place), _number(table[place])]


def _number(value: float) -> str:
    return f"{value:.6g}"
