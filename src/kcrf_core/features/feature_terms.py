"""Terms with a weight for every feature: linear kernels, affine ones, and conjunctions for polynomial ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..encoding import CONSTANT, Encoding, FeatureNames, conjunction_name
from ..kernels import Inputs, PolynomialKernel, inverse_roots, kernel_to_dict
from ..maps import (
    Conjunctions,
    Weights,
    add_products,
    as_dense,
    feature_base,
    held_values,
    largest_values,
    matrix_of,
    pack_weights,
    present_columns,
    why_not,
    without_zeros,
)
from ..system import Workers
from .pruning import needless_limit
from .stored_terms import StoredTerm
from .term import PartsOfRow, Term, TermParts, WeightTable

if TYPE_CHECKING:
    from typing_extensions import Self


class FeatureTerm(Term):
    """Weights of features; with `cosine` inputs count by their direction alone."""

    weights: Weights  # [D, C] float64
    cosine: bool

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        if not self.cosine:
            self._add_products(inputs, self.weights, out)
            return
        scores = np.zeros_like(out)
        self._add_products(inputs, self.weights, scores)
        out += scores * self._inverse_lengths(inputs)[:, None]

    @abstractmethod
    def _add_products(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        """out += Phi W, without the lengths of inputs."""

    @abstractmethod
    def _squared_lengths(self, inputs: Inputs) -> np.ndarray:
        """k(x, x) of each input before a cosine divides by it, [n]."""

    @abstractmethod
    def _largest_parts(self, inputs: Inputs) -> np.ndarray:
        """By how much a weight of each row can change a score of these inputs at most, [D], without their lengths."""

    @abstractmethod
    def _most_parts(self, features: int) -> int:
        """How many parts an input of that many features has at most."""

    def _inverse_lengths(self, inputs: Inputs) -> np.ndarray:
        """What products are multiplied with, [n]."""
        return inverse_roots(self._squared_lengths(inputs)) if self.cosine else np.ones(len(inputs))

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry, arrays = pack_weights(self.weights, f"{at}.weights")
        return ({"cosine": True} if self.cosine else {}) | entry, arrays

    @property
    def weight_count(self) -> int:
        return held_values(self.weights).size

    @property
    def nonzero(self) -> int:
        return int(np.count_nonzero(held_values(self.weights)))

    def _of_cosine(self, kernel: dict[str, Any]) -> dict[str, Any]:
        return {"map": "explicit", "kernel": {"type": "cosine", "kernel": kernel} if self.cosine else kernel}

    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> FeatureTerm:
        weights = without_zeros(self.weights)
        reach = self._largest_parts(inputs) * self._inverse_lengths(inputs).max(initial=0.0)
        influence = np.abs(weights.values) * np.repeat(reach, np.diff(weights.ends))
        active = inputs.codes.shape[1] + inputs.real.shape[1]
        if inputs.bag is not None:
            active += int(np.diff(inputs.bag.indptr).max(initial=0))

        def change(limit: float) -> Callable[[Inputs], np.ndarray]:
            """By how much scores of inputs change, at most, if all weights of no more influence go."""
            gone = weights.where(influence <= limit)
            sizes = replace(gone, values=np.abs(gone.values))

            def of(rows: Inputs) -> np.ndarray:
                out = np.zeros((len(rows), weights.width))
                self._add_products(rows, sizes, out)
                return out * self._inverse_lengths(rows)[:, None] if self.cosine else out

            return of

        positive = replace(inputs, real=np.abs(inputs.real), bag=None if inputs.bag is None else abs(inputs.bag))
        limit = needless_limit(change, positive, budget, self._most_parts(active), workers)
        return replace(self, weights=weights.where(influence > limit))  # type: ignore[call-arg]  # a field of subclasses

    def compacted(self) -> Self:
        weights = without_zeros(self.weights)
        dense = weights.dense()
        smaller = weights if weights.bytes < dense.nbytes else dense
        return replace(self, weights=smaller)  # type: ignore[call-arg]  # a field of subclasses


@dataclass(frozen=True)
class ExplicitTerm(FeatureTerm):
    """Weights of the linear kernel's own features."""

    kind: ClassVar[str] = "explicit"

    weights: Weights  # [D, C] float64, for edge-x [D, Y^2]; rows in the order of `ColumnOrder`
    cosine: bool = False

    def _add_products(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        add_products(inputs, weights, out)

    def _squared_lengths(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()

    def _largest_parts(self, inputs: Inputs) -> np.ndarray:
        return largest_values(inputs)

    def _most_parts(self, features: int) -> int:
        return features

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry, arrays = super().pack(at)
        return {"map": self.kind} | entry, arrays

    @classmethod
    def unpack(cls, stored: StoredTerm) -> ExplicitTerm:
        return cls(*stored.about, stored.weights(stored.size, "features"), stored.cosine)

    def described(self) -> dict[str, Any]:
        return self._of_cosine({"type": "linear"})

    @property
    def is_linear(self) -> bool:
        return not self.cosine

    def table(self, encoding: Encoding) -> WeightTable:
        names, matrix = encoding.feature_names(self.features), matrix_of(self.weights)
        return WeightTable(len(names), names.__getitem__, lambda rows: as_dense(matrix[rows]))

    def parts(self, encoding: Encoding) -> TermParts:
        names = encoding.feature_names(self.features)

        def of(inputs: Inputs) -> Iterator[PartsOfRow]:
            scales = self._inverse_lengths(inputs)
            for t in range(len(inputs)):
                columns, values = present_columns(inputs, t)
                yield PartsOfRow(columns, values * scales[t], _named(names, columns, values))

        return TermParts(as_dense(matrix_of(self.weights)), of)


def _named(names: FeatureNames, columns: np.ndarray, values: np.ndarray) -> Callable[[int], tuple[str, None]]:
    """Names of the features that an input has, with its values."""
    return lambda e: (names.with_value(int(columns[e]), float(values[e])), None)


@dataclass(frozen=True)
class AffineTerm(ExplicitTerm):
    """Weights of features and a constant, for the polynomial kernel of degree 1."""

    kind: ClassVar[str] = "affine"

    bias: np.ndarray = field(kw_only=True)  # [C] float64, for edge-x [Y^2]

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        super().add_scores(inputs, out)
        out += self.bias

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry, arrays = super().pack(at)
        return entry, {f"{at}.bias": self.bias} | arrays

    @classmethod
    def unpack(cls, stored: StoredTerm) -> AffineTerm:
        weights = stored.weights(stored.size, "features")
        bias = stored.array("bias", "float64", 1)
        if bias.shape != (stored.columns,) or stored.cosine:
            raise stored.error(f"'{stored.at}.bias' does not fit its term")
        return cls(*stored.about, weights, bias=bias)

    def described(self) -> dict[str, Any]:
        return {"map": "explicit", "kernel": {"type": "poly", "degree": 1}}

    @property
    def weight_count(self) -> int:
        return super().weight_count + len(self.bias)

    @property
    def nonzero(self) -> int:
        return super().nonzero + len(self.bias)

    @property
    def is_linear(self) -> bool:
        return False

    def table(self, encoding: Encoding) -> WeightTable:
        inner = super().table(encoding)
        D = inner.items

        def rows(part: slice) -> np.ndarray:
            own = inner.rows(slice(part.start, min(part.stop, D)))
            return np.concatenate([own, self.bias[None]]) if part.stop > D else own

        return WeightTable(D + 1, lambda k: CONSTANT if k == D else inner.name(k), rows)

    def parts(self, encoding: Encoding) -> TermParts:
        inner = super().parts(encoding)
        D = len(inner.weights)

        def of(inputs: Inputs) -> Iterator[PartsOfRow]:
            for own in inner.of(inputs):
                yield PartsOfRow(np.append(own.rows, D), np.append(own.values, 1.0), _or_constant(own))

        return TermParts(np.vstack([inner.weights, self.bias]), of)


def _or_constant(own: PartsOfRow) -> Callable[[int], tuple[str, int | None]]:
    return lambda e: own.name(e) if e < len(own.rows) else (CONSTANT, None)


@dataclass(frozen=True)
class ConjunctionTerm(FeatureTerm):
    """Conjunctions of features, for a polynomial kernel on binary ones."""

    kind: ClassVar[str] = "conjunctions"

    conjunctions: Conjunctions
    weights: Weights  # [D, C] float64, for edge-x [D, Y^2], divided by the columns' norms
    cosine: bool = False

    def _add_products(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        self.conjunctions.add_scores(inputs, weights, out)

    def _squared_lengths(self, inputs: Inputs) -> np.ndarray:
        return self.conjunctions.kernel.diagonal(inputs)

    def _largest_parts(self, inputs: Inputs) -> np.ndarray:
        return np.square(self.conjunctions.norms)  # all of a column in one row

    def _most_parts(self, features: int) -> int:
        return sum(comb(features, j) for j in range(self.conjunctions.kernel.degree + 1))

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        found, (entry, arrays) = self.conjunctions, super().pack(at)
        own = {f"{at}.keys": found.keys, f"{at}.columns": found.columns, f"{at}.norms": found.norms}
        return {"map": self.kind, "kernel": kernel_to_dict(found.kernel)} | entry, own | arrays

    @classmethod
    def unpack(cls, stored: StoredTerm) -> ConjunctionTerm:
        kernel, like = stored.kernel(), stored.like
        if not isinstance(kernel, PolynomialKernel) or why_not(like, kernel.degree) is not None:
            raise stored.error(f"'{stored.at}' has a kernel without conjunctions")
        arrays = [stored.array(*one, 1) for one in (("keys", "int64"), ("columns", "int32"), ("norms", "float64"))]
        found = Conjunctions(kernel, feature_base(like), *arrays)
        try:
            found.check()
        except ValueError:
            raise stored.error(f"the conjunctions of '{stored.at}' do not fit") from None
        return cls(*stored.about, found, stored.weights(found.size, "conjunctions"), stored.cosine)

    def described(self) -> dict[str, Any]:
        return self._of_cosine(kernel_to_dict(self.conjunctions.kernel))

    def table(self, encoding: Encoding) -> WeightTable:
        found, names, matrix = self.conjunctions, encoding.feature_names(self.features), matrix_of(self.weights)

        def rows(part: slice) -> np.ndarray:
            return as_dense(matrix[found.columns[part]]) * found.squares_of(part)[:, None]

        return WeightTable(len(found.keys), lambda q: conjunction_name(map(names.__getitem__, found.features(q))), rows)

    def parts(self, encoding: Encoding) -> TermParts:
        found, names = self.conjunctions, encoding.feature_names(self.features)

        def of(inputs: Inputs) -> Iterator[PartsOfRow]:
            ends, numbers = found.known(inputs)
            squares, scales = found.squares_of(numbers), self._inverse_lengths(inputs)
            for t in range(len(inputs)):
                own = numbers[ends[t] : ends[t + 1]]
                values = squares[ends[t] : ends[t + 1]] * scales[t]
                yield PartsOfRow(found.columns[own], values, _conjunction_names(found, names, own, inputs, t))

        return TermParts(as_dense(matrix_of(self.weights)), of)

    def compacted(self) -> ConjunctionTerm:
        return super(ConjunctionTerm, self._without_empty_columns()).compacted()

    def _without_empty_columns(self) -> ConjunctionTerm:
        found, weights = self.conjunctions, without_zeros(self.weights)
        counts = np.diff(weights.ends)
        used = counts > 0
        kept = used[found.columns]
        number = np.cumsum(used) - 1
        smaller = replace(
            found, keys=found.keys[kept], columns=number[found.columns[kept]].astype(np.int32), norms=found.norms[used]
        )
        ends = np.concatenate([[0], np.cumsum(counts[used], dtype=np.int64)])
        return replace(self, conjunctions=smaller, weights=replace(weights, ends=ends))


def _conjunction_names(
    found: Conjunctions, names: FeatureNames, numbers: np.ndarray, inputs: Inputs, t: int
) -> Callable[[int], tuple[str, None]]:
    """Names of the conjunctions that row t of some inputs has, their features with its values."""

    def name(e: int) -> tuple[str, None]:
        values = dict(zip(*(part.tolist() for part in present_columns(inputs, t)), strict=True))
        columns = found.features(int(numbers[e]))
        return conjunction_name(names.with_value(column, values[column]) for column in columns), None

    return name
