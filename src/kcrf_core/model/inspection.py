"""The weights of a model, term by term: which feature, or pivot, speaks for which label, and how much.

A weight is shown as what it adds to the score of a label, or of two labels in a row, where its feature is there: for
two labels the one column of weights is shown as both, for a conjunction with the weight that the kernel gives it. With
a cosine kernel scores are divided by the length of the input afterwards. A pivot is named by its line of the training
data and shown with its coefficient, which its kernel value is still to be multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..features import Term
from .model import Model

# Weights that are held at a time: bounds memory, whatever the size of the model.
VALUES_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class TermWeights:
    """The weights of one term as a table of items and labels."""

    items: int  # features, conjunctions or pivots
    columns: int  # labels, or pairs of them
    name: Callable[[int], str]  # of each
    rows: Callable[[slice], np.ndarray]  # [n, Y] of some of them, for edge-x [n, Y^2]

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows, some after others, with the number of the first."""
        step = max(VALUES_AT_ONCE // max(self.columns, 1), 1)
        for first in range(0, self.items, step):
            yield first, self.rows(slice(first, min(first + step, self.items)))

    def strongest(self, count: int, together: bool = False) -> dict[int, list[tuple[str, float]]]:
        """The largest weights by size of each column, or of all columns `together`: names and weights by column.

        Columns that have none are left out; weights are in descending order.
        """
        best: dict[int, list[tuple[float, int, int, float]]] = {}  # size, item, column, weight, the largest first
        limits = np.zeros(1 if together else self.columns)  # what a weight has to exceed
        for first, weights in self.blocks():
            sizes = np.abs(weights)
            above = sizes > limits
            for place in [0] if together else np.flatnonzero(above.any(axis=0)).tolist():
                rows, columns = np.nonzero(above) if together else (np.flatnonzero(above[:, place]), place)
                found = sizes[rows, columns]
                kept = np.argsort(-found, kind="stable")[:count]
                rows, columns = rows[kept], np.broadcast_to(columns, len(found))[kept]
                entries = zip(found[kept], rows, columns, weights[rows, columns], strict=True)
                ranked = best.setdefault(place, [])
                ranked += [(float(size), first + int(row), int(y), float(weight)) for size, row, y, weight in entries]
                ranked.sort(key=lambda each: (-each[0], *each[1:3]))
                del ranked[count:]
                if len(ranked) == count:
                    limits[place] = ranked[-1][0]
        named: dict[int, list[tuple[str, float]]] = {}
        for place in sorted(best):
            for _, item, column, weight in best[place]:
                named.setdefault(column, []).append((self.name(item), weight))
        return {column: sorted(each, key=lambda pair: -pair[1]) for column, each in named.items()}


def term_weights(model: Model, term: Term) -> TermWeights:
    Y, table = len(model.labels), term.table(model.encoding)

    def rows(part: slice) -> np.ndarray:
        return term.by_labels(table.rows(part), Y)

    return TermWeights(table.items, term.clique.states(Y), table.name, rows)


def dump(model: Model) -> Iterator[list[str]]:
    """Every weight that is not zero, as the cells of a line: the term, what it looks at, labels, the weight."""
    labels = list(model.labels)
    for term in model.terms:
        weights = term_weights(model, term)
        places = [term.labels_of_column(column, len(labels)) for column in range(weights.columns)]
        names = [[labels[y] for y in place] for place in places]
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
