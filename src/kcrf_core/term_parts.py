"""The terms of a model taken apart: of what a score at a position is the sum.

Every term is a sum of value_e W[row_e, :] over its parts e: pivots, features or conjunctions. Here parts have names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .dataset import Dataset, Inputs
from .encoding import Encoding
from .features import AttributeFeature, RealFeature
from .kernel_values import inverse_roots
from .kernels import Pivots
from .model import AffineTerm, ConjunctionTerm, ExplicitTerm, KernelTerm, Term, empty_inputs
from .sparse_weights import as_dense, matrix_of

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
