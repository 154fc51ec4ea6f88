"""Why a position has its label: what speaks for it, against the label that would do second best in its place.

With all other labels as they are, putting z in place of y at t changes the score of a labelling by

    F[t, y] - F[t, z] + E_t[y_{t-1}, y] - E_t[y_{t-1}, z] + E_{t+1}[y, y_{t+1}] - E_{t+1}[z, y_{t+1}] + ...

(triples, first and last labels likewise). The runner-up is the z with which the score is largest. F is a sum over
features, or over pivots, F[t, y] = sum_m k(x_t, b_m) alpha[m, y], and each of them adds its own difference: with
transitions they add up to the whole.

The terms of a model taken apart: of what a score at a position is the sum.

Every term is a sum of value_e W[row_e, :] over its parts e: pivots, features or conjunctions. Here parts have names.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..chains import Edges, positions_within, spread
from ..encoding import AttributeFeature, Dataset, Encoding, RealFeature
from ..kernels import Inputs, Pivots, inverse_roots
from ..maps import as_dense, matrix_of
from .model import ROWS_AT_ONCE, AffineTerm, ConjunctionTerm, ExplicitTerm, KernelTerm, Model, Term, empty_inputs

# What a part is called, and its line of training data if it is a pivot, by its number.
Namer = Callable[[int], tuple[str, int | None]]


@dataclass(frozen=True)
class PartsOfRow:
    """Of what the score of one position is the sum."""

    parts: np.ndarray  # [E] numbers for a namer
    rows: np.ndarray  # [E] of the weights
    values: np.ndarray  # [E]


class TermParts(Protocol):
    """A term, and what its scores are made of."""

    term: Term
    weights: np.ndarray  # [D, C]

    def of(self, inputs: Inputs) -> Iterator[PartsOfRow]: ...

    def namer(self, dataset: Dataset, position: int) -> Namer: ...


def parts_of(term: Term, encoding: Encoding) -> TermParts:
    if isinstance(term, KernelTerm):
        return _KernelParts(term)
    names = _Names(encoding, term.features)
    return _ConjunctionParts(term, names) if isinstance(term, ConjunctionTerm) else _ExplicitParts(term, names)


class _Names:
    """Names of the features of a term, numbered as its explicit map does: codes, attributes, real columns."""

    def __init__(self, encoding: Encoding, features: tuple[str, ...]):
        inputs = empty_inputs(encoding, features)
        self._encoding = encoding
        self._ends = np.concatenate([[0], np.cumsum(inputs.sizes)]).astype(np.int64)  # [C+1] of the codes of each field
        self._attributes = 0 if inputs.bag is None else inputs.bag.shape[1]
        self._codes: list[int] = []  # which of the descriptions of a position are codes of the term, and which are real
        self._real: list[int] = []
        place = self._before_bag = 0  # descriptions that come before those of attributes
        for feature in encoding.features:
            if isinstance(feature, AttributeFeature):
                self._before_bag = place
                continue
            real = isinstance(feature, RealFeature)
            end = place + len(feature.config.window) * (len(feature.mean) if real else 1)
            if feature.config.name in features:
                (self._real if real else self._codes).extend(range(place, end))
            place = end

    def at(self, dataset: Dataset, position: int) -> Callable[[int], str]:
        """Names of the features that a position has."""
        described = self._encoding.describe(dataset, position)
        codes, attributes = int(self._ends[-1]), {}
        if dataset.bag is not None:
            own = slice(dataset.bag.indptr[position], dataset.bag.indptr[position + 1])
            here = slice(self._before_bag, self._before_bag + own.stop - own.start)
            attributes = dict(zip(dataset.bag.indices[own].tolist(), described[here], strict=True))
            del described[here]

        def name(number: int) -> str:
            if number < codes:
                return described[self._codes[int(np.searchsorted(self._ends, number, side="right")) - 1]]
            number -= codes
            if number < self._attributes:
                return attributes[number]
            number -= self._attributes
            return described[self._real[number]] if number < len(self._real) else "constant"

        return name


class _KernelParts:
    """Pivots: scores are k(x, B) alpha."""

    def __init__(self, term: KernelTerm):
        self.term = term
        dtype = np.float32 if term.precision == "single" else np.float64
        self.weights = term.alpha.astype(dtype).astype(np.float64)
        self._pivots = Pivots(term.pivots, term.kernel, dtype)

    def of(self, inputs: Inputs) -> Iterator[PartsOfRow]:
        every = np.arange(len(self._pivots))
        for values in self._pivots.gram(inputs):
            yield PartsOfRow(every, every, values.astype(np.float64))

    def namer(self, dataset: Dataset, position: int) -> Namer:
        return lambda m: ("pivot", int(self.term.lines[m]))


class _ExplicitParts:
    """Features of a linear kernel, and the constant that a polynomial kernel of degree 1 has."""

    def __init__(self, term: ExplicitTerm, names: _Names):
        self.term, self._names, self.weights = term, names, as_dense(matrix_of(term.weights))
        if isinstance(term, AffineTerm):
            self.weights = np.vstack([self.weights, term.bias])

    def of(self, inputs: Inputs) -> Iterator[PartsOfRow]:
        starts = np.cumsum(inputs.sizes) - inputs.sizes
        codes, bag = int(inputs.sizes.sum()), inputs.bag
        roots = inverse_roots(inputs.squared_norms()) if self.term.cosine else np.ones(len(inputs))
        real = np.arange(codes + (0 if bag is None else bag.shape[1]), len(self.weights))  # and the constant
        constant = np.ones(len(real) - inputs.real.shape[1])
        for t in range(len(inputs)):
            own = inputs.codes[t]
            known = own >= 0
            rows, values = [starts[known] + own[known]], [np.ones(np.count_nonzero(known))]
            if bag is not None:
                entries = slice(bag.indptr[t], bag.indptr[t + 1])
                rows.append(codes + bag.indices[entries])
                values.append(bag.data[entries])
            numbers = np.concatenate([*rows, real])
            yield PartsOfRow(numbers, numbers, np.concatenate([*values, inputs.real[t], constant]) * roots[t])

    def namer(self, dataset: Dataset, position: int) -> Namer:
        name = self._names.at(dataset, position)
        return lambda number: (name(number), None)


class _ConjunctionParts:
    """Conjunctions of binary features."""

    def __init__(self, term: ConjunctionTerm, names: _Names):
        self.term, self._names, self.weights = term, names, as_dense(matrix_of(term.weights))

    def of(self, inputs: Inputs) -> Iterator[PartsOfRow]:
        found = self.term.conjunctions
        ends, numbers = found.known(inputs)
        squares = found.squares_of(numbers)
        roots = np.ones(len(inputs))
        if self.term.cosine:
            roots = inverse_roots(found.kernel.diagonal(inputs))
        for t in range(len(inputs)):
            own = slice(ends[t], ends[t + 1])
            yield PartsOfRow(numbers[own], found.columns[numbers[own]], squares[own] * roots[t])

    def namer(self, dataset: Dataset, position: int) -> Namer:
        name, found = self._names.at(dataset, position), self.term.conjunctions
        return lambda number: (" & ".join(map(name, found.features(number))) or "constant", None)


@dataclass(frozen=True)
class Contribution:
    """What one pivot, feature or transition says for a label against another."""

    term: str
    what: str
    value: float  # a difference of log scores
    line: int | None = None  # of training data, where it is a pivot


@dataclass(frozen=True)
class Explanation:
    """Why one position has its label."""

    label: int
    against: int | None  # None: no other label is possible in its place
    difference: float  # of the scores of the whole labelling, with the one and with the other
    contributions: tuple[Contribution, ...]  # those that speak most for it, in descending order
    others: float  # all others together


@dataclass(frozen=True)
class _Question:
    """Where two labels of a position meet a term: a row of its inputs, and one column of weights for each."""

    position: int
    row: int
    plus: int
    minus: int


class Explainer:
    """Explains labellings of one model."""

    def __init__(self, model: Model):
        self._model = model
        self._parts = []  # each with its weights for labels, [D, Y], or pairs of them, [D, Y^2]
        for term in model.terms:
            parts = parts_of(term, model.encoding)
            weights = spread(parts.weights, len(model.labels)) if term.type == "node" else parts.weights
            self._parts.append((parts, weights))

    def explain(
        self, dataset: Dataset, scores: np.ndarray, edges: Edges, labels: np.ndarray, count: int
    ) -> list[Explanation]:
        """Each position explained by at most `count` contributions, for potentials that may be constrained."""
        Y = len(self._model.labels)
        N = len(labels)
        own, others = _in_place(scores, edges, dataset.offsets, labels)
        against = others.argmax(axis=1)
        rivals = others[np.arange(N), against]
        found: list[list[Contribution]] = [[] for _ in range(N)]
        totals = np.zeros(N)
        asked = np.flatnonzero(rivals > -np.inf)
        for parts, weights in self._parts:
            questions = _questions(parts.term.type, asked, labels, against, dataset.offsets, Y)
            for t, total, some in self._answers(parts, weights, questions, dataset, count):
                totals[t] += total
                found[t].extend(some)
        # Transitions as the model has them; edge-x terms have told their part already.
        for t, what, value in self._of_edges(asked, labels, against, dataset.offsets):
            totals[t] += value
            found[t].append(Contribution("edge", what, value))
        out = []
        for t in range(N):
            shown = [one for one in found[t] if one.value > 0]
            shown = heapq.nlargest(count, shown, key=lambda one: one.value)
            rest = float(totals[t]) - sum(one.value for one in shown)
            if rivals[t] == -np.inf:
                out.append(Explanation(int(labels[t]), None, np.inf, (), 0.0))
            else:
                difference = float(own[t] - rivals[t])
                out.append(Explanation(int(labels[t]), int(against[t]), difference, tuple(shown), rest))
        return out

    def _answers(
        self, parts: TermParts, weights: np.ndarray, questions: list[_Question], dataset: Dataset, count: int
    ) -> Iterator[tuple[int, float, list[Contribution]]]:
        """For each question its position, the sum of all contributions, and the largest of them."""
        term = parts.term
        inputs = self._model.encoding.inputs(dataset, term.features)
        for first in range(0, len(questions), ROWS_AT_ONCE):
            some = questions[first : first + ROWS_AT_ONCE]
            rows = np.array([question.row for question in some], dtype=np.intp)
            for question, own in zip(some, parts.of(inputs.take(rows)), strict=True):
                products = own.values * (weights[own.rows, question.plus] - weights[own.rows, question.minus])
                best = np.argsort(-products, kind="stable")[:count]
                name = parts.namer(dataset, question.row)
                contributions = []
                for e in best[products[best] > 0].tolist():
                    what, line = name(int(own.parts[e]))
                    if question.row != question.position:
                        what = f"next: {what}"  # of the two positions that a transition looks at, the second
                    contributions.append(Contribution(term.name, what, float(products[e]), line))
                yield question.position, float(products.sum()), contributions

    def _of_edges(
        self, asked: np.ndarray, labels: np.ndarray, against: np.ndarray, offsets: np.ndarray
    ) -> Iterator[tuple[int, str, float]]:
        """Position, what it is and its difference, of all potentials between labels."""
        edges, names = self._model.edges, self._model.labels
        T, U, start, end = edges.transitions, edges.triples, edges.start, edges.end
        back = positions_within(offsets)
        ahead = np.repeat(offsets[1:], np.diff(offsets)) - 1 - np.arange(len(labels))
        for t in asked.tolist():
            y, z = int(labels[t]), int(against[t])
            before = [int(label) for label in labels[max(t - 2, t - int(back[t])) : t]]
            after = [int(label) for label in labels[t + 1 : t + 1 + min(2, int(ahead[t]))]]
            if before:
                yield t, f"after {names[before[-1]]}", float(T[before[-1], y] - T[before[-1], z])
            else:
                yield t, "at the beginning", float(start[y] - start[z])
            if after:
                yield t, f"before {names[after[0]]}", float(T[y, after[0]] - T[z, after[0]])
            else:
                yield t, "at the end", float(end[y] - end[z])
            if U is None:
                continue
            if len(before) == 2:
                a, b = before
                yield t, f"after {names[a]} {names[b]}", float(U[a, b, y] - U[a, b, z])
            if before and after:
                a, b = before[-1], after[0]
                yield t, f"between {names[a]} and {names[b]}", float(U[a, y, b] - U[a, z, b])
            if len(after) == 2:
                a, b = after
                yield t, f"before {names[a]} {names[b]}", float(U[y, a, b] - U[z, a, b])


def _in_place(
    scores: np.ndarray, edges: Edges, offsets: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What a labelling's score has of each position [N], and what it would have with every other label there [N, Y],
    minus infinity for the label itself.
    """
    N, Y = scores.shape
    stacked = np.broadcast_to(edges.stacked(), (N, Y, Y)) if N else edges.stacked()
    within = positions_within(offsets)
    ahead = np.repeat(offsets[1:], np.diff(offsets)) - 1 - np.arange(N)
    every = scores.copy()
    every[within == 0] += edges.start
    every[ahead == 0] += edges.end
    t = np.flatnonzero(within > 0)
    every[t] += stacked[t, labels[t - 1]]
    t = np.flatnonzero(ahead > 0)
    every[t] += stacked[t + 1, :, labels[t + 1]]
    if edges.triples is not None:
        U = edges.triples
        t = np.flatnonzero(within > 1)
        every[t] += U[labels[t - 2], labels[t - 1]]
        t = np.flatnonzero((within > 0) & (ahead > 0))
        every[t] += U[labels[t - 1], :, labels[t + 1]]
        t = np.flatnonzero(ahead > 1)
        every[t] += U[:, labels[t + 1], labels[t + 2]].T
    rows = np.arange(N)
    own = every[rows, labels]
    every[rows, labels] = -np.inf
    return own, every


def _questions(
    kind: str, asked: np.ndarray, labels: np.ndarray, against: np.ndarray, offsets: np.ndarray, Y: int
) -> list[_Question]:
    """What to ask of a term: a node term at the position itself, an edge-x term there and one position on."""
    triples = [(t, int(labels[t]), int(against[t])) for t in asked.tolist()]
    if kind == "node":
        return [_Question(t, t, y, z) for t, y, z in triples]
    first = set(offsets[:-1].tolist())
    out = []
    for t, y, z in triples:
        if t not in first:
            before = int(labels[t - 1]) * Y
            out.append(_Question(t, t, before + y, before + z))
        if t + 1 < len(labels) and t + 1 not in first:
            after = int(labels[t + 1])
            out.append(_Question(t, t + 1, y * Y + after, z * Y + after))
    return out
