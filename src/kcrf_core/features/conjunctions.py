"""Conjunctions of binary features, for polynomial kernels: plan, fit, term of a model (`maps.conjunction_table`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import comb
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..encoding import conjunction_name
from ..kernels import PolynomialKernel, fit_kernel, inverse_roots
from ..maps import (
    Conjunctions,
    SparseWeights,
    as_dense,
    feature_base,
    matrix_of,
    present_columns,
    why_not,
    without_zeros,
)
from ..system import Workers, counted, offsets_of
from .fitted import TermPlan, check_memory
from .linear import FeatureTerm, FittedFeatures
from .term import PartsOfRow, StoredTerm, WeightTable

if TYPE_CHECKING:
    import scipy.sparse

    from ..encoding import Encoding, Translation
    from ..kernels import Inputs
    from ..maps import CompressedRows, FeatureMap, Weights
    from .fitted import FitContext, LabelMatch

# An automatic map enumerates no more than this: above it, pivots take less memory.
MOST_CONJUNCTIONS = 300_000_000
# Numbers, keys and hashes while columns are merged, if every conjunction were seen once: what is refused beforehand.
BYTES_PER_CONJUNCTION = 60


@dataclass(frozen=True)
class ConjunctionPlan(TermPlan):
    """All conjunctions of the features that training inputs have."""

    entries: int  # conjunctions, each counted once for every position

    def fit(self, context: FitContext) -> FittedConjunctions:
        from ..maps import ColumnValues, ConjunctionCounter, ExplicitMap, scaled_rows

        term, observer, workers = self.term, context.observer, context.workers
        fitted_to, seed = self.data.fitted_to(), context.config.training.seed
        kernel: Any = fit_kernel(replace(term.kernel, cosine=False), fitted_to, seed, term=term.name)
        if self.data.in_memory:
            table = f"a table of {counted(self.entries, 'conjunction')}"
            check_memory(term, table, BYTES_PER_CONJUNCTION * self.entries, workers)
        observer.note(
            f"term {term.name}: {term.kernel.title} kernel of degree {kernel.degree} on binary features, explicit map; "
            f"going through {counted(self.entries, 'conjunction')}"
        )
        counter = ConjunctionCounter(kernel, feature_base(self.data.like), workers)
        for inputs in self.data:
            counter.add(inputs)
        # An L1 penalty is that of one column only where all weights in it are equal.
        by_degree = bool(context.config.training.c1)
        # In memory the rows that were counted last are all of them.
        found, counted_rows = counter.conjunctions(term.map.cut_off, by_degree, rows=self.data.in_memory)
        distinct, columns = counted(len(found.keys), "distinct conjunction"), counted(found.size, "column")
        observer.note(f"term {term.name}: {distinct} in {columns}")

        def rows_of(inputs: Inputs) -> CompressedRows:
            return found.training_rows(inputs) if counted_rows is None else counted_rows

        def directions(inputs: Inputs) -> scipy.sparse.csr_array:
            return scaled_rows(rows_of(inputs).matrix(), inverse_roots(kernel.diagonal(inputs)))

        values = ColumnValues()  # those of all partitions decide how entries are held
        for inputs in self.data if term.kernel.cosine and not self.data.in_memory else ():
            values.add(directions(inputs))

        def made(inputs: Inputs, rows: np.ndarray | slice) -> ExplicitMap:
            own = values.compressed(directions(inputs)) if term.kernel.cosine else rows_of(inputs)
            return ExplicitMap(own, np.zeros((len(inputs), 0)), context.dtype)

        rows = self.data.mapped(made, False, workers)
        roots = np.sqrt(np.bincount(found.columns, minlength=found.size)) if by_degree else None
        return FittedConjunctions(**self.about(rows, context), roots=roots, conjunctions=found)


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedConjunctions(FittedFeatures):
    """Conjunctions of binary features."""

    takes_over: ClassVar[frozenset[str]] = frozenset({"conjunctions"})

    conjunctions: Conjunctions

    @property
    def least_rows(self) -> int:
        return self.config.map.cut_off

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        from ..maps import ExplicitMap, scaled_rows

        phi = self.conjunctions.rows(inputs)
        if self.config.kernel.cosine:
            phi = scaled_rows(phi, inverse_roots(self.conjunctions.kernel.diagonal(inputs)))
        return ExplicitMap(phi, np.zeros((len(inputs), 0)), dtype)

    def to_model(self, weights: Weights, precision: str) -> ConjunctionTerm:
        if isinstance(weights, SparseWeights):
            stored: Weights = weights.times(1 / self.conjunctions.norms)
        else:
            stored = self._stored(weights / self.conjunctions.norms[:, None])
        return ConjunctionTerm(*self.about, self.conjunctions, stored, self.config.kernel.cosine)

    def map_weights(self, term: ConjunctionTerm) -> np.ndarray:
        return as_dense(matrix_of(term.weights)) * self.conjunctions.norms[:, None]

    def taken_over(self, old: ConjunctionTerm, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        from ..maps import shared_conjunctions

        found = self.conjunctions
        shares, taken = shared_conjunctions(found, old.conjunctions, between.explicit_columns()[0])
        weights = as_dense(shares @ matrix_of(old.weights))
        weights = labels.weights(weights, old.clique, self.config.clique, self.places is None)
        return weights, f"with {taken:,} of {counted(len(found.keys), 'conjunction')}"


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

    def _reach(self, inputs: Inputs, features: int) -> tuple[np.ndarray, int]:
        most = sum(comb(features, j) for j in range(self.conjunctions.kernel.degree + 1))
        return np.square(self.conjunctions.norms), most  # all of a column in one row

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        found, (entry, arrays) = self.conjunctions, super().pack(at)
        own = {f"{at}.keys": found.keys, f"{at}.columns": found.columns, f"{at}.norms": found.norms}
        return {"map": self.kind, "kernel": found.kernel.to_dict()} | entry, own | arrays

    @classmethod
    def unpack(cls, stored: StoredTerm) -> ConjunctionTerm:
        kernel, like = stored.kernel(), stored.like
        if not isinstance(kernel, PolynomialKernel) or why_not(like, kernel.degree) is not None:
            raise stored.contents.error(f"'{stored.at}' has a kernel without conjunctions")
        arrays = [stored.array(*one, 1) for one in (("keys", "int64"), ("columns", "int32"), ("norms", "float64"))]
        found = Conjunctions(kernel, feature_base(like), *arrays)
        try:
            found.check()
        except ValueError:
            raise stored.contents.error(f"the conjunctions of '{stored.at}' do not fit") from None
        return cls(*stored.about, found, stored.weights(found.size, "conjunctions"), stored.cosine)

    def described(self) -> dict[str, Any]:
        return self._of_cosine(self.conjunctions.kernel.to_dict())

    def table(self, encoding: Encoding) -> WeightTable:
        found, names, matrix = self.conjunctions, encoding.feature_names(self.features), matrix_of(self.weights)

        def rows(part: slice) -> np.ndarray:
            return as_dense(matrix[found.columns[part]]) * found.squares_of(part)[:, None]

        return WeightTable(len(found.keys), lambda q: conjunction_name(map(names.__getitem__, found.features(q))), rows)

    def parts(self, encoding: Encoding, inputs: Inputs) -> Iterator[PartsOfRow]:
        found, names = self.conjunctions, encoding.feature_names(self.features)
        ends, numbers = found.known(inputs)
        squares, scales = found.squares_of(numbers), self._inverse_lengths(inputs)

        def name(own: np.ndarray, t: int, e: int) -> str:
            values = dict(zip(*(part.tolist() for part in present_columns(inputs, t)), strict=True))
            return conjunction_name(names.with_value(column, values[column]) for column in found.features(int(own[e])))

        for t in range(len(inputs)):
            own = numbers[ends[t] : ends[t + 1]]
            values = squares[ends[t] : ends[t + 1]] * scales[t]
            yield PartsOfRow(found.columns[own], values, partial(name, own, t))

    def compacted(self) -> ConjunctionTerm:
        found, weights = self.conjunctions, without_zeros(self.weights)
        counts = np.diff(weights.ends)
        used = counts > 0
        kept = used[found.columns]
        number = np.cumsum(used) - 1
        smaller = replace(
            found, keys=found.keys[kept], columns=number[found.columns[kept]].astype(np.int32), norms=found.norms[used]
        )
        ends = offsets_of(counts[used])
        thinned = replace(self, conjunctions=smaller, weights=replace(weights, ends=ends))
        return super(ConjunctionTerm, thinned).compacted()
