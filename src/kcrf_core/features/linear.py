"""The linear kernel's own features: plan, fit, term of a model.

`FittedFeatures` and `FeatureTerm` are what all kinds with a weight for every feature share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..kernels import Inputs, inverse_roots
from ..maps import (
    SparseWeights,
    add_products,
    as_dense,
    held_values,
    largest_values,
    matrix_of,
    pack_weights,
    present_columns,
    without_zeros,
)
from ..system import Workers, counted, ranges
from .fitted import MappedTerm, TermPlan
from .term import ROWS_PER_TASK, PartsOfRow, StoredTerm, Term, WeightTable

if TYPE_CHECKING:
    import scipy.sparse
    from typing_extensions import Self

    from ..chains import Problem
    from ..config import TermConfig
    from ..encoding import Encoding, Translation
    from ..maps import ExplicitMap, FeatureMap, MergedColumns, Weights
    from ..objective.solvers import Observer
    from .fitted import FitContext, LabelMatch

HALVINGS = 10  # of the range, on a logarithmic scale, in which the largest influence of pruned weights is searched


class FittedFeatures(MappedTerm):
    """A term with a weight for every feature, or for those pairs of features and labels that were observed."""

    def observed(self, problem: Problem, workers: Workers, observer: Observer) -> FittedFeatures:
        """Return the term with weights for those pairs of features and labels alone that the problem has."""
        clique, width, places = self.config.clique, self.columns, self.size
        if self.map is not None:
            rows, columns = clique.observed_columns(problem)
            kept = self.map.seen_with(rows, columns, width)
        else:
            assert self.distant is not None
            seen = np.zeros(places, dtype=bool)
            for number, source in enumerate(self.distant.sources):
                rows, columns = clique.observed_columns(problem.partition(number))
                own = source.load(workers).seen_with(rows, columns, width)
                assert source.columns is not None
                seen[source.columns[own // width].astype(np.int64) * width + own % width] = True
            kept = np.flatnonzero(seen)
        observer.note(f"term {self.config.name}: {counted(len(kept), 'weight')} of {places:,}, those of pairs seen")
        return self.keeping(kept)

    def keeping(self, kept: np.ndarray) -> FittedFeatures:
        """Return the term with parameters at these places of W [K] alone."""
        from ..maps import KeptPlaces

        return replace(self, places=KeptPlaces(kept, self.rows, self.columns))

    def _stored(self, weights: Weights) -> Weights:
        if isinstance(weights, SparseWeights):
            return weights
        return np.ascontiguousarray(weights) if self.places is None else SparseWeights.of(weights)


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

    @property
    def part_weights(self) -> np.ndarray:
        return as_dense(matrix_of(self.weights))

    @abstractmethod
    def parts(self, encoding: Encoding, inputs: Inputs) -> Iterator[PartsOfRow]:
        """Yield the parts that make up the score of each input."""

    @abstractmethod
    def _add_products(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        """Add Phi W to `out`, without the lengths of inputs."""

    @abstractmethod
    def _squared_lengths(self, inputs: Inputs) -> np.ndarray:
        """Return k(x, x) of each input before a cosine divides by it, [n]."""

    @abstractmethod
    def _reach(self, inputs: Inputs, features: int) -> tuple[np.ndarray, int]:
        """Return the largest parts of inputs by rows of weights, [D], and the most parts of one of so many features."""

    def _inverse_lengths(self, inputs: Inputs) -> np.ndarray:
        """Return the factors of products, [n]."""
        return inverse_roots(self._squared_lengths(inputs)) if self.cosine else np.ones(len(inputs))

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry, arrays = pack_weights(self.weights, f"{at}.weights")
        return {"map": self.kind} | ({"cosine": True} if self.cosine else {}) | entry, arrays

    @property
    def weight_count(self) -> int:
        return self.weights.size

    @property
    def nonzero(self) -> int:
        return int(np.count_nonzero(held_values(self.weights)))

    def _of_cosine(self, kernel: dict[str, Any]) -> dict[str, Any]:
        return {"map": "explicit", "kernel": {"type": "cosine", "kernel": kernel} if self.cosine else kernel}

    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> FeatureTerm:
        """Return the term without weights whose influence |w| max_t |x_t| is at most a limit.

        The limit is the largest found for which, at every position t of the inputs and for every label y,

            sum over dropped weights of |x_tf w_fy| <= budget.
        """
        weights = without_zeros(self.weights)
        active = inputs.codes.shape[1] + inputs.real.shape[1]
        if inputs.bag is not None:
            active += int(np.diff(inputs.bag.indptr).max(initial=0))
        largest, most_parts = self._reach(inputs, active)
        reach = largest * self._inverse_lengths(inputs).max(initial=0.0)
        influence = np.abs(weights.values) * np.repeat(reach, np.diff(weights.ends))

        positive = replace(inputs, real=np.abs(inputs.real), bag=None if inputs.bag is None else abs(inputs.bag))

        def fits(limit: float) -> bool:
            """Return True if dropping all weights of no more influence changes no score by more than the budget."""
            gone = weights.where(influence <= limit)
            sizes = replace(gone, values=np.abs(gone.values))

            def largest_change(rows: slice) -> float:
                some = positive.take(rows)
                out = np.zeros((len(some), weights.width))
                self._add_products(some, sizes, out)
                return float((out * self._inverse_lengths(some)[:, None]).max(initial=0.0))

            return all(most <= budget for most in workers.map(largest_change, ranges(len(inputs), ROWS_PER_TASK)))

        low, high = budget / max(most_parts, 1), budget  # the first fits, and none above the second does
        if high <= 0 or fits(high):
            low = high
        else:
            for _ in range(HALVINGS):
                middle = float(np.sqrt(low * high))
                low, high = (middle, high) if fits(middle) else (low, middle)
        return replace(self, weights=weights.where(influence > low))  # type: ignore[call-arg]  # a field of subclasses

    def compacted(self) -> Self:
        weights = without_zeros(self.weights)
        dense = weights.dense()
        smaller = weights if weights.bytes < dense.nbytes else dense
        return replace(self, weights=smaller)  # type: ignore[call-arg]  # a field of subclasses


@dataclass(frozen=True)
class LinearPlan(TermPlan):
    """The linear kernel's own features; columns that are equal are merged where that is worth it."""

    def fit(self, context: FitContext) -> FittedLinear:
        from ..maps import ColumnSupports, ColumnValues, ExplicitMap

        data, term, columns = self.data, self.term, ""
        if context.config.training.observed_features:  # a value of zero is seen with its label, too
            data = context.data.inputs_of(data.features, zeros=True)
        supports, values, merged = ColumnSupports(data.like), ColumnValues(), None
        ones = data.like.bag is None and not term.kernel.cosine  # whatever the data

        def visit(inputs: Inputs) -> None:
            if not term.kernel.cosine:
                supports.add(inputs)
            if not (ones or data.in_memory):
                values.add(linear_columns(term, inputs)[0])

        def made(inputs: Inputs, rows: np.ndarray | slice) -> ExplicitMap:
            if merged is not None:
                return merged.map_of(inputs, context.dtype)
            if ones or (data.in_memory and not term.kernel.cosine):
                return ExplicitMap.of(inputs, context.dtype)
            sparse, dense = linear_columns(term, inputs)
            return ExplicitMap(values.compressed(sparse), dense, context.dtype)

        shared = data.scanned(term.name, context.observer, visit)
        if not term.kernel.cosine:
            merged = supports.merged()
        found = data.mapped(made, shared, context.workers)
        fitted = FittedLinear(**self.about(found, context), merged=merged)
        if merged is not None:
            roots = np.ones(fitted.rows)
            roots[: merged.size] = np.sqrt(merged.counts)
            fitted, columns = replace(fitted, roots=roots), f" in {counted(fitted.rows, 'column')}"
        columns = counted(fitted.feature_count, "feature") + columns
        context.observer.note(f"term {term.name}: {term.kernel.title} kernel, explicit map, {columns}")
        return fitted


def linear_columns(term: TermConfig, inputs: Inputs) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return sparse and real columns of inputs, divided by their lengths for a cosine kernel."""
    from ..maps import scaled_rows, sparse_block

    if not term.kernel.cosine:
        return sparse_block(inputs), inputs.real
    scales = inverse_roots(inputs.squared_norms())
    return scaled_rows(sparse_block(inputs), scales), inputs.real * scales[:, None]


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedLinear(FittedFeatures):
    """The linear kernel's own features, those seen only together in one column."""

    takes_over: ClassVar[frozenset[str]] = frozenset({"explicit"})

    merged: MergedColumns | None = None  # None: each feature has a column

    @property
    def feature_count(self) -> int:
        return self.rows + (0 if self.merged is None else len(self.merged.column) - self.merged.size)

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        from ..maps import ExplicitMap

        if self.merged is not None:
            return self.merged.map_of(inputs, dtype)
        if not self.config.kernel.cosine:
            return ExplicitMap.of(inputs, dtype)
        return ExplicitMap(*linear_columns(self.config, inputs), dtype)

    def to_model(self, weights: Weights, precision: str) -> ExplicitTerm:
        weights = weights if self.merged is None else self.merged.spread(weights)
        return ExplicitTerm(*self.about, self._stored(weights), self.config.kernel.cosine)

    def map_weights(self, term: ExplicitTerm) -> np.ndarray:
        return self._of_columns(as_dense(matrix_of(term.weights)))

    def _of_columns(self, weights: np.ndarray) -> np.ndarray:
        """Return weights of the map's columns out of weights of features."""
        return weights if self.merged is None else self.merged.gathered(weights)

    def taken_over(self, old: ExplicitTerm, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        columns, units = between.explicit_columns()
        known = columns >= 0
        weights = np.zeros((len(columns), old.weights.shape[1]))
        weights[known] = as_dense(matrix_of(old.weights)[columns[known]]) * units[known, None]
        share = int(np.count_nonzero(weights)) / max(int(np.count_nonzero(held_values(old.weights))), 1)
        weights = labels.weights(weights, old.clique, self.config.clique, self.places is None)
        how = f"with {int(known.sum()):,} of {counted(self.feature_count, 'feature')} ({share:.1%} of its weights)"
        return self._of_columns(weights), how


@dataclass(frozen=True)
class ExplicitTerm(FeatureTerm):
    """Weights of the linear kernel's own features."""

    kind: ClassVar[str] = "explicit"
    is_quick: ClassVar[bool] = True

    weights: Weights  # [D, C] float64, for edge-x [D, Y^2]; rows in the order of `ColumnOrder`
    cosine: bool = False

    def _add_products(self, inputs: Inputs, weights: Weights, out: np.ndarray) -> None:
        add_products(inputs, weights, out)

    def _squared_lengths(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()

    def _reach(self, inputs: Inputs, features: int) -> tuple[np.ndarray, int]:
        return largest_values(inputs), features

    @classmethod
    def unpack(cls, stored: StoredTerm) -> ExplicitTerm:
        return cls(*stored.about, stored.weights(stored.size, "features"), stored.cosine)

    def described(self) -> dict[str, Any]:
        return self._of_cosine({"type": "linear"})

    @property
    def is_linear(self) -> bool:
        return not self.cosine

    def table(self, encoding: Encoding) -> WeightTable:
        names = encoding.feature_names(self.features)
        matrix = cache(lambda: matrix_of(self.weights))
        return WeightTable(len(names), names.__getitem__, lambda rows: as_dense(matrix()[rows]))

    def parts(self, encoding: Encoding, inputs: Inputs) -> Iterator[PartsOfRow]:
        names, scales = encoding.feature_names(self.features), self._inverse_lengths(inputs)

        def name(columns: np.ndarray, values: np.ndarray, e: int) -> str:
            return names.with_value(int(columns[e]), float(values[e]))

        for t in range(len(inputs)):
            columns, values = present_columns(inputs, t)
            yield PartsOfRow(columns, values * scales[t], partial(name, columns, values))
