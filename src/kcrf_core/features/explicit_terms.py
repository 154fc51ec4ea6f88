"""Terms with explicit maps: the linear kernel's own features, those with a constant, and conjunctions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..chains import Problem
from ..config import TermConfig
from ..encoding import Dataset, Translation
from ..errors import ConfigError
from ..kernels import Inputs, PolynomialKernel, fit_kernel, inverse_roots
from ..maps import (
    Affine,
    ColumnOrder,
    CompressedRows,
    Conjunctions,
    ExplicitMap,
    FeatureMap,
    MergedColumns,
    MergedMap,
    SparseWeights,
    Weights,
    as_dense,
    conjunction_count,
    find_conjunctions,
    matrix_of,
    merged_columns,
    scaled_rows,
    shared_conjunctions,
    why_not,
)
from ..solvers import Observer
from ..system import Workers, counted
from .feature_terms import AffineTerm, ConjunctionTerm, ExplicitTerm, FeatureTerm
from .label_match import LabelMatch
from .observed_features import places_seen
from .term import Term
from .terms import (
    FitContext,
    FittedTerm,
    MappedTerm,
    TermFootprint,
    TermPlan,
    check_memory,
    distinct_by_portion,
    worth_sharing,
)

if TYPE_CHECKING:
    import scipy.sparse

# An automatic map enumerates no more than this: above it, pivots take less memory.
MOST_CONJUNCTIONS = 300_000_000
# Numbers, keys and hashes while columns are merged, if every conjunction were seen once: what is refused beforehand.
BYTES_PER_CONJUNCTION = 60
# An entry of a sparse map: its index by rows and by columns; where entries of a column differ, both of these with
# values in single and in double precision, too. On the way there are features before they are merged, or values.
BYTES_PER_ENTRY, BYTES_PER_VALUE, BYTES_ON_THE_WAY = 8, 24, 12
# A conjunction that is kept has its key and the number of its column; a column its norm and where its entries begin.
BYTES_PER_KEY, BYTES_PER_COLUMN = 12, 24
# While they are found, each distinct one has its key, a slot to be found by, a hash of its rows, how many these are,
# its weight and four numbers; one in a row has its number, that of its column, and its place among those that stay.
BYTES_PER_DISTINCT, BYTES_PER_FOUND = 64, 24
# Conjunctions that a forecast goes through, to estimate how many are distinct.
SAMPLED_CONJUNCTIONS = 2_000_000
# Where only some weights are solved for: each has its place, and is held once more by a pass, in double precision for a
# proof, some rows of them whole; and of every column it is known where its own begin.
BYTES_PER_KEPT, BYTES_PER_KEPT_COLUMN = 32, 16


def explicit_plan(term: TermConfig, features: tuple[str, ...], inputs: Inputs) -> TermPlan:
    """The explicit map of a term; an error where its kernel has none on these inputs."""
    if term.kernel.type == "linear":
        return LinearPlan(term, features, inputs)
    reason = why_not(inputs, term.kernel.degree)
    if reason is None:
        return ConjunctionPlan(term, features, inputs, conjunction_count(inputs, term.kernel.degree))
    if term.kernel.degree == 1 and not term.kernel.cosine:
        return AffinePlan(term, features, inputs)
    raise ConfigError(f"term '{term.name}': map 'explicit' cannot hold this kernel: {reason}; 'reduced' can")


@dataclass(frozen=True)
class FittedFeatures(MappedTerm):
    """A term with a weight for every feature, or for those pairs of features and labels that were observed."""

    has_features: ClassVar[bool] = True

    def observed(self, problem: Problem, observer: Observer) -> FittedTerm:
        kept, places = places_seen(self.map, self.config.clique, problem)
        observer.note(f"term {self.name}: {counted(len(kept), 'weight')} of {places:,}, those of pairs seen")
        return replace(self, kept=kept)

    def _stored(self, weights: Weights) -> Weights:
        if isinstance(weights, SparseWeights):
            return weights
        return np.ascontiguousarray(weights) if self.kept is None else SparseWeights.of(weights)

    @abstractmethod
    def to_model(self, weights: Weights, precision: str) -> FeatureTerm: ...


# ----------------------------------------------------------------------------- linear


@dataclass(frozen=True)
class FittedLinear(FittedFeatures):
    """The linear kernel's own features."""

    takes_over: ClassVar[frozenset[str]] = frozenset({ExplicitTerm.kind, AffineTerm.kind})

    @property
    def feature_count(self) -> int:
        return self.map.size

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        return _linear_map(self.config, inputs, dtype)

    def to_model(self, weights: Weights, precision: str) -> ExplicitTerm:
        return ExplicitTerm(*self.about, self._stored(self._of_features(weights)), self.config.kernel.cosine)

    def map_weights(self, term: Term) -> np.ndarray:
        return self._of_columns(as_dense(matrix_of(term.weights)))

    def _of_features(self, weights: Weights) -> Weights:
        """Weights of features out of weights of the map's columns."""
        return weights

    def _of_columns(self, weights: np.ndarray) -> np.ndarray:
        """Inverse of `_of_features`."""
        return weights

    def taken_over(self, old: Term, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        columns, units = between.explicit_columns()
        known = columns >= 0
        weights = np.zeros((len(columns), old.weights.shape[1]))
        weights[known] = as_dense(matrix_of(old.weights)[columns[known]]) * units[known, None]
        weights = labels.weights(weights, old.clique, self.config.clique, self.kept is None)
        return self._of_columns(weights), f"with {int(known.sum()):,} of {counted(self.feature_count, 'feature')}"


@dataclass(frozen=True)
class FittedMerged(FittedLinear):
    """The same where features seen only together share a column."""

    merged: MergedColumns = field(kw_only=True)

    @property
    def feature_count(self) -> int:
        return self.map.size - self.merged.size + len(self.merged.column)

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        return MergedMap(self.merged, inputs, dtype)

    def _of_features(self, weights: Weights) -> Weights:
        return self.merged.spread(weights)

    def _of_columns(self, weights: np.ndarray) -> np.ndarray:
        return self.merged.gathered(weights)


def _linear_map(term: TermConfig, inputs: Inputs, dtype: np.dtype) -> ExplicitMap:
    return (ExplicitMap.of_directions if term.kernel.cosine else ExplicitMap.of)(inputs, dtype)


@dataclass(frozen=True)
class LinearPlan(TermPlan):
    """The linear kernel's own features; columns that are equal are merged where that is worth it."""

    def _merged(self) -> MergedColumns | None:
        mergeable = self.inputs.bag is None and not self.term.kernel.cosine
        return merged_columns(CompressedRows.of_inputs(self.inputs)) if mergeable else None

    def fit(self, context: FitContext) -> FittedLinear:
        term, dtype, merged = self.term, context.dtype, self._merged()
        if merged is None:
            own = self.shared(lambda rows, _: _linear_map(term, rows, dtype), context)
            fitted, columns = FittedLinear(term, self.features, own), ""
        else:
            own = self.shared(lambda rows, _: MergedMap(merged, rows, dtype), context)
            roots = np.ones(own.size)
            roots[: merged.size] = np.sqrt(merged.counts)
            fitted = FittedMerged(term, self.features, own, roots=roots, merged=merged)
            columns = f" in {counted(own.size, 'column')}"
        context.observer.note(
            f"term {term.name}: {term.kernel.title} kernel, explicit map, "
            f"{counted(fitted.feature_count, 'feature')}{columns}"
        )
        return fitted

    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        return self._of_columns(width, dataset, observed, self._merged())

    def _of_columns(
        self, width: int, dataset: Dataset, observed: bool, merged: MergedColumns | None, constant: int = 0
    ) -> TermFootprint:
        """Memory of the columns of inputs, and of so many more that are dense."""
        rows, _ = distinct_by_portion(self.inputs, dataset)
        inputs = self.inputs.take(rows) if worth_sharing(len(rows), len(self.inputs)) else self.inputs
        order, bag = ColumnOrder.of(inputs), inputs.bag
        entries = int((inputs.codes >= 0).sum()) + (0 if bag is None else bag.nnz)
        size = order.size + constant
        what, columns = f"explicit map of {counted(size, 'feature')}", size
        ones = bag is None or bool((bag.data == 1).all())
        if merged is not None:
            columns += merged.size - len(merged.column)
            what += f" in {counted(columns, 'column')}"
            # Of features that share a column all are in a row or none: an entry stands for each of them.
            entries = _entries(inputs, merged)
        real = len(inputs) * (order.real + constant) * 8  # in single precision with what rounding took
        fixed = entries * (BYTES_PER_ENTRY + (0 if ones else BYTES_PER_VALUE)) + real + columns * BYTES_PER_COLUMN
        building = self.inputs.nbytes + fixed + entries * BYTES_ON_THE_WAY
        parameters = columns * width
        if observed:
            labels = dataset.labels
            seen = _pairs(self.inputs, labels if width > 1 else np.minimum(labels, 0), width)
            parameters = min(seen, parameters)
            fixed += BYTES_PER_KEPT * parameters + BYTES_PER_KEPT_COLUMN * columns
            what += f" with {counted(parameters, 'weight')}"
        return TermFootprint(self.term.name, what, 0, fixed, building, parameters)


def _entries(inputs: Inputs, merged: MergedColumns) -> int:
    """Entries of merged columns: a feature's ones, shared by all that are in its column."""
    indices = CompressedRows.of_inputs(inputs).indices
    return round(float((1 / merged.counts)[merged.column[indices]].sum()))


def _pairs(inputs: Inputs, columns: np.ndarray, width: int) -> int:
    """How many pairs of a feature and a column of weights are observed, real columns at most."""
    pairs, bag = inputs.real.shape[1] * width, inputs.bag
    if bag is not None:
        own, known = np.repeat(columns, np.diff(bag.indptr)), np.repeat(columns >= 0, np.diff(bag.indptr))
        pairs += len(np.unique((bag.indices.astype(np.int64) * width + own)[known]))
    for codes in inputs.codes.T.astype(np.int64):
        pairs += len(np.unique((codes * width + columns)[(codes >= 0) & (columns >= 0)]))
    return pairs


# ----------------------------------------------------------------------------- affine


@dataclass(frozen=True)
class FittedAffine(FittedFeatures):
    """Features and a constant, for the polynomial kernel of degree 1 on inputs that are not binary."""

    affine: Affine = field(kw_only=True)

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        return self.affine.map_of(inputs, dtype)

    def to_model(self, weights: Weights, precision: str) -> AffineTerm:
        inner, bias = self.affine.weights(as_dense(matrix_of(weights)))
        return AffineTerm(*self.about, self._stored(inner), bias=np.ascontiguousarray(bias))

    def map_weights(self, term: Term) -> np.ndarray:
        return self.affine.map_weights(as_dense(matrix_of(term.weights)), term.bias)


@dataclass(frozen=True)
class AffinePlan(LinearPlan):
    """The same features and a constant column."""

    def fit(self, context: FitContext) -> FittedAffine:
        kernel = fit_kernel(replace(self.term.kernel, cosine=False), self.inputs, context.seed)
        affine, dtype = Affine.of(kernel), context.dtype
        own = self.shared(lambda rows, _: affine.map_of(rows, dtype), context)
        features = counted(own.size, "feature")
        context.observer.note(f"term {self.term.name}: poly kernel of degree 1, explicit map, {features}")
        return FittedAffine(self.term, self.features, own, affine=affine)

    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        return self._of_columns(width, dataset, observed, None, constant=1)


# ----------------------------------------------------------------------------- conjunctions


@dataclass(frozen=True)
class FittedConjunctions(FittedFeatures):
    """Conjunctions of binary features, for a polynomial kernel."""

    takes_over: ClassVar[frozenset[str]] = frozenset({ConjunctionTerm.kind})

    conjunctions: Conjunctions = field(kw_only=True)

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        return _conjunction_map(self.config, self.conjunctions, self.conjunctions.rows(inputs), inputs, dtype)

    def to_model(self, weights: Weights, precision: str) -> ConjunctionTerm:
        if isinstance(weights, SparseWeights):
            stored = weights.times(1 / self.conjunctions.norms)
        else:
            stored = self._stored(weights / self.conjunctions.norms[:, None])
        return ConjunctionTerm(*self.about, self.conjunctions, stored, self.config.kernel.cosine)

    def map_weights(self, term: Term) -> np.ndarray:
        return as_dense(matrix_of(term.weights)) * self.conjunctions.norms[:, None]

    def taken_over(self, old: Term, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        found = self.conjunctions
        shares, taken = shared_conjunctions(found, old.conjunctions, between.explicit_columns()[0])
        weights = as_dense(shares @ matrix_of(old.weights))
        weights = labels.weights(weights, old.clique, self.config.clique, self.kept is None)
        return weights, f"with {taken:,} of {counted(len(found.keys), 'conjunction')}"


def _conjunction_map(
    term: TermConfig, found: Conjunctions, phi: scipy.sparse.csr_array, inputs: Inputs, dtype: np.dtype
) -> ExplicitMap:
    """Phi [N, D] of conjunctions, with rows of length one where the kernel is a cosine."""
    if term.kernel.cosine:
        phi = scaled_rows(phi, inverse_roots(found.kernel.diagonal(inputs)))
    return ExplicitMap(phi, np.zeros((len(inputs), 0)), dtype)


@dataclass(frozen=True)
class ConjunctionPlan(TermPlan):
    """All conjunctions of the features that training inputs have."""

    entries: int  # conjunctions, each counted once for every position

    def fit(self, context: FitContext) -> FittedConjunctions:
        term, observer = self.term, context.observer
        kernel = fit_kernel(replace(term.kernel, cosine=False), self.inputs, context.seed)
        table = f"a table of {counted(self.entries, 'conjunction')}"
        check_memory(term, table, BYTES_PER_CONJUNCTION * self.entries, context.workers)
        observer.note(
            f"term {term.name}: {term.kernel.title} kernel of degree {kernel.degree} on binary features, explicit map; "
            f"going through {counted(self.entries, 'conjunction')}"
        )
        # An L1 penalty is that of one column only where all weights in it are equal.
        by_degree = bool(context.config.training.c1)
        found, phi = find_conjunctions(
            self.inputs, kernel, term.map.cut_off, by_degree=by_degree, workers=context.workers
        )
        distinct, columns = counted(len(found.keys), "distinct conjunction"), counted(found.size, "column")
        observer.note(f"term {term.name}: {distinct} in {columns}")
        own = _conjunction_map(term, found, phi, self.inputs, context.dtype)
        roots = np.sqrt(np.bincount(found.columns, minlength=found.size)) if by_degree else None
        return FittedConjunctions(term, self.features, own, roots=roots, conjunctions=found)

    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        keys, columns, entries = self._sizes()
        what = f"{counted(self.entries, 'conjunction')}, some {keys:,} distinct ones in {counted(columns, 'column')}"
        values = BYTES_PER_VALUE if self.term.kernel.cosine else 0  # else all entries of a column have the same
        fixed = entries * (BYTES_PER_ENTRY + values) + keys * BYTES_PER_KEY + columns * BYTES_PER_COLUMN
        finding = keys * BYTES_PER_DISTINCT + self.entries * BYTES_PER_FOUND + entries * BYTES_ON_THE_WAY
        building = self.inputs.nbytes + max(finding, fixed + entries * BYTES_ON_THE_WAY)
        return TermFootprint(self.term.name, what, 0, fixed, building, columns * width)

    def _sizes(self) -> tuple[int, int, int]:
        """How many conjunctions are distinct, their columns and entries of those: an estimate.

        Each grows with a power of the number of rows, which two samples tell, one twice as large as the other.
        """
        N, kernel = len(self.inputs), PolynomialKernel(self.term.kernel.degree, 1.0, 1.0, 1.0)
        most = N if self.entries <= SAMPLED_CONJUNCTIONS else int(N * SAMPLED_CONJUNCTIONS / self.entries)
        found = []
        for rows in (most // 2, most) if most < N else (N,):
            sample = self.inputs.take(np.linspace(0, N - 1, max(rows, 1)).astype(np.int64))
            conjunctions, phi = find_conjunctions(sample, kernel, self.term.map.cut_off)
            found.append((len(conjunctions.keys), conjunctions.size, phi.nnz))
        if len(found) == 1:
            return found[0]
        doublings = np.log2(N / most)
        grown = [int(much * (much / max(less, 1)) ** doublings) for less, much in zip(*found, strict=True)]
        return min(grown[0], self.entries), min(grown[1], self.entries), min(grown[2], self.entries)
