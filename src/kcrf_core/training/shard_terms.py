"""Terms fitted to a folder of shards, of which one at a time is in memory.

Explicit maps need to know of all data: which columns are equal and become one, which conjunctions there are, whether
inputs recur. Passes over the shards find it, by hashes over all rows, and find the same as if all rows were in memory.
Pivots, and kernels that have them, are chosen on a sample before and only used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..chains import Problem
from ..config import GRADIENT, Config, TermConfig
from ..encoding import Encoding
from ..errors import ConfigError, DataError
from ..features import (
    DTYPES,
    MOST_CONJUNCTIONS,
    FittedAffine,
    FittedConjunctions,
    FittedLabels,
    FittedLinear,
    FittedMerged,
    FittedTerm,
    by_label,
    worth_sharing,
)
from ..kernels import Inputs, PolynomialKernel, fit_kernel, inverse_roots
from ..maps import (
    Affine,
    ColumnOrder,
    ColumnSupports,
    CompressedRows,
    ConjunctionCounter,
    Conjunctions,
    ExplicitHead,
    ExplicitMap,
    FeatureMap,
    RepeatedMap,
    conjunction_count,
    feature_base,
    scaled_rows,
    sparse_block,
    why_not,
)
from ..objective import MapRecipe
from ..solvers import Observer
from ..system import Workers, counted
from .shard_maps import Scratch, ShardedData, ShardKernel, ShardPart, rows_of

if TYPE_CHECKING:
    import scipy.sparse

NO_VALUES = np.empty(0)


@dataclass(frozen=True, eq=False)
class DistantMap:
    """What is here of an explicit map whose rows are in shards."""

    head: ExplicitHead
    scale: float  # mean of k(x, x)

    nested = beyond_single = False

    @property
    def size(self) -> int:
        return self.head.size

    @property
    def real_size(self) -> int:
        return self.head.real_size

    @property
    def dense_size(self) -> int:
        return self.head.real_size

    def mean_diagonal(self) -> float:
        return self.scale

    def without_counts(self) -> DistantMap:
        """The same for some of the rows, which are scaled as those of a map in memory of which rows were taken away."""
        return replace(self, head=replace(self.head, counts=None))


@dataclass(frozen=True)
class ShardedTerm:
    """A fitted term, and the recipe of its map in each part of the data; None for a term over labels alone."""

    fitted: FittedTerm
    recipes: tuple[MapRecipe, ...] | None = None


def shard_map_type(term: TermConfig, encoding: Encoding, data: ShardedData) -> str:
    """The map of a term, as it is on all of the data in memory: see `term_plans.map_type`."""
    if term.map.type != "auto":
        return term.map.type
    if term.map.size is not None or term.map.select == GRADIENT or not term.kernel.kernel.explicit:
        return "reduced"
    if term.kernel.type == "linear" or (term.kernel.degree == 1 and not term.kernel.cosine):
        return "explicit"
    entries, degree = 0, term.kernel.degree
    for inputs in data.inputs(encoding.term_features(term)):
        if why_not(inputs, degree) is not None:
            return "reduced"
        entries += conjunction_count(inputs, degree)
        if entries > MOST_CONJUNCTIONS:
            return "reduced"
    return "explicit"


def check_shard_terms(config: Config) -> None:
    """An error for terms that look at all positions at once."""
    for term in config.mapped_terms:
        if term.map.type == "full":
            raise ConfigError(
                f"term '{term.name}': map 'full' has every position as a pivot, and shards are not in memory at once; "
                "'reduced' can",
                settings=["map"],
            )
        if term.map.select == GRADIENT:
            raise ConfigError(
                f"term '{term.name}': 'select: gradient' looks at all positions after each fit, and shards are not in "
                "memory at once: choose another way to find pivots",
                settings=["select"],
            )


class ShardFitter:
    """Fits terms to shards; pivots are those of `chosen` terms, fitted to a sample."""

    def __init__(
        self,
        encoding: Encoding,
        data: ShardedData,
        config: Config,
        chosen: Mapping[str, FittedTerm],
        scratch: Scratch,
        workers: Workers,
        observer: Observer,
    ):
        self._encoding, self._data, self._config, self._chosen = encoding, data, config, chosen
        self._scratch, self._workers, self._observer = scratch, workers, observer
        self.dtype = DTYPES[config.training.precision]

    def fit(self, terms: Iterable[TermConfig], kept: Sequence[np.ndarray | None]) -> list[ShardedTerm]:
        """Terms on all of the data; of each part the sequences `kept` alone have rows in its maps, None: all."""
        out = [self._fit(term, kept) for term in terms if term in self._config.mapped_terms]
        empty = [own.fitted for own in out if not own.fitted.map.size]
        for term in empty:
            self._observer.note(
                f"warning: term {term.name} has no feature in the data: the model is trained without it"
            )
        out = [own for own in out if own.fitted.map.size]
        if not out:
            raise DataError("no feature of any term occurs in the data: nothing would look at the input")
        return out + [ShardedTerm(FittedLabels(term)) for term in terms if term not in self._config.mapped_terms]

    def _fit(self, term: TermConfig, kept: Sequence[np.ndarray | None]) -> ShardedTerm:
        features = tuple(self._encoding.term_features(term))
        known = self._chosen.get(term.name)
        if known is not None and known.basis is not None:
            return self._with_pivots(known, features, kept)
        if self._config.training.c1 and shard_map_type(term, self._encoding, self._data) != "explicit":
            raise ConfigError(f"term '{term.name}': 'c1' makes weights of features sparse, and this term has pivots")
        like = self._encoding.inputs(self._encoding.empty_dataset(), features)
        if term.kernel.type == "linear":
            return self._linear(term, features, like, kept)
        reasons = {why_not(inputs, term.kernel.degree) for inputs in self._data.inputs(features)} - {None}
        if not reasons:
            return self._conjunctions(term, features, like, kept)
        if term.kernel.degree == 1 and not term.kernel.cosine:
            return self._affine(term, features, like, kept)
        raise ConfigError(f"term '{term.name}': map 'explicit' cannot hold this kernel: {reasons.pop()}; 'reduced' can")

    # ------------------------------------------------------------------------- pivots

    def _with_pivots(
        self, known: FittedTerm, features: tuple[str, ...], kept: Sequence[np.ndarray | None]
    ) -> ShardedTerm:
        distinct = positions = 0
        sizes = []
        for inputs in self._data.inputs(features):
            distinct, positions = distinct + len(inputs.distinct()[0]), positions + len(inputs)
            sizes.append((len(inputs), inputs.nbytes // max(len(inputs), 1)))
        shared = self._shared(known.config, distinct, positions)
        basis = known.basis
        recipes = [
            ShardKernel(part, features, basis.kernel, basis.pivots, self.dtype, *size, shared, self._rows(part, own))
            for part, size, own in zip(self._data.parts, sizes, kept, strict=True)
        ]
        return ShardedTerm(known, tuple(recipes))

    def _rows(self, part: ShardPart, sequences: np.ndarray | None) -> np.ndarray | None:
        return None if sequences is None else rows_of(part.dataset().offsets, sequences)

    def _shared(self, term: TermConfig, distinct: int, positions: int) -> bool:
        """Whether enough inputs recur within shards."""
        if not worth_sharing(distinct, positions):
            return False
        inputs, where = counted(distinct, "distinct input"), counted(positions, "position")
        self._observer.note(f"term {term.name}: {inputs} at {where}, each computed once in its shard")
        return True

    # ------------------------------------------------------------------------- explicit maps

    def _linear(
        self, term: TermConfig, features: tuple[str, ...], like: Inputs, kept: Sequence[np.ndarray | None]
    ) -> ShardedTerm:
        order = ColumnOrder.of(like)
        one_hot = like.bag is None and not term.kernel.cosine
        supports = ColumnSupports(order.first_attribute) if one_hot else None
        form, distinct, positions = _Form(order.first_real), 0, 0
        for inputs in self._data.inputs(features):
            if supports is not None:
                rows = CompressedRows.of_inputs(inputs)
                supports.add(rows.indptr, rows.indices)
            else:
                form.add(_linear_matrix(term, inputs)[0])
            distinct, positions = distinct + len(inputs.distinct()[0]), positions + len(inputs)
        merged = None if supports is None else supports.merged()
        del supports

        def rows(inputs: Inputs) -> tuple[CompressedRows, np.ndarray]:
            if merged is not None:
                return merged.compressed(inputs), inputs.real
            if one_hot:
                return CompressedRows.of_inputs(inputs), inputs.real
            matrix, dense = _linear_matrix(term, inputs)
            return form.compressed(matrix), dense

        scale = form.scale if merged is None else np.sqrt(merged.counts)
        sparse = order.first_real if merged is None else merged.size
        head = ExplicitHead(sparse + order.real, order.real, scale, None if merged is None else merged.counts)
        shared = self._shared(term, distinct, positions)
        own, recipes = self._written(term, features, rows, head, shared, kept)
        fitted: FittedLinear = FittedLinear(term, features, own)
        columns = ""
        if merged is not None:
            roots = np.ones(own.size)
            roots[: merged.size] = np.sqrt(merged.counts)
            fitted = FittedMerged(term, features, own, roots=roots, merged=merged)
            columns = f" in {counted(own.size, 'column')}"
        self._observer.note(
            f"term {term.name}: {term.kernel.title} kernel, explicit map, "
            f"{counted(fitted.feature_count, 'feature')}{columns}"
        )
        return ShardedTerm(fitted, recipes)

    def _affine(
        self, term: TermConfig, features: tuple[str, ...], like: Inputs, kept: Sequence[np.ndarray | None]
    ) -> ShardedTerm:
        affine, order = Affine.of(self._kernel(term, features)), ColumnOrder.of(like)
        form, distinct, positions = _Form(order.first_real), 0, 0
        for inputs in self._data.inputs(features):
            form.add(affine.matrix(inputs)[0])
            distinct, positions = distinct + len(inputs.distinct()[0]), positions + len(inputs)

        def rows(inputs: Inputs) -> tuple[CompressedRows, np.ndarray]:
            matrix, dense = affine.matrix(inputs)
            return form.compressed(matrix), dense

        head = ExplicitHead(order.size + 1, order.real + 1, form.scale)
        own, recipes = self._written(term, features, rows, head, self._shared(term, distinct, positions), kept)
        self._observer.note(f"term {term.name}: poly kernel of degree 1, explicit map, {counted(own.size, 'feature')}")
        return ShardedTerm(FittedAffine(term, features, own, affine=affine), recipes)

    def _conjunctions(
        self, term: TermConfig, features: tuple[str, ...], like: Inputs, kept: Sequence[np.ndarray | None]
    ) -> ShardedTerm:
        kernel = self._kernel(term, features)
        counter, entries = ConjunctionCounter(kernel, feature_base(like)), 0
        for inputs in self._data.inputs(features):
            entries += conjunction_count(inputs, kernel.degree)
            counter.add(inputs)
        self._observer.note(
            f"term {term.name}: {term.kernel.title} kernel of degree {kernel.degree} on binary features, explicit map; "
            f"going through {counted(entries, 'conjunction')}"
        )
        by_degree = bool(self._config.training.c1)
        found = counter.conjunctions(term.map.cut_off, by_degree)
        distinct, columns = counted(len(found.keys), "distinct conjunction"), counted(found.size, "column")
        self._observer.note(f"term {term.name}: {distinct} in {columns}")
        if term.kernel.cosine:
            form = _Form(found.size)
            for inputs in self._data.inputs(features):
                form.add(_cosine_rows(found, inputs))
            rows, scale = partial(_cosine_conjunctions, found, form), form.scale
        else:
            rows, scale = partial(_conjunctions, found), NO_VALUES if (found.norms == 1).all() else found.norms
        own, recipes = self._written(term, features, rows, ExplicitHead(found.size, 0, scale), False, kept)
        roots = np.sqrt(np.bincount(found.columns, minlength=found.size)) if by_degree else None
        return ShardedTerm(FittedConjunctions(term, features, own, roots=roots, conjunctions=found), recipes)

    def _kernel(self, term: TermConfig, features: tuple[str, ...]) -> PolynomialKernel:
        """The kernel, fitted to the lengths of all inputs."""
        norms, first = [], None
        for inputs in self._data.inputs(features):
            first = inputs if first is None else first
            norms.append(inputs.squared_norms())
        whole = _Lengths(first.codes, first.sizes, first.real, first.bag, first.unseen, np.concatenate(norms))
        return fit_kernel(replace(term.kernel, cosine=False), whole, self._config.training.seed, term=term.name)

    def _written(
        self,
        term: TermConfig,
        features: tuple[str, ...],
        rows: Callable[[Inputs], tuple[CompressedRows, np.ndarray]],
        head: ExplicitHead,
        shared: bool,
        kept: Sequence[np.ndarray | None],
    ) -> tuple[DistantMap, tuple[MapRecipe, ...]]:
        """Maps of all parts, each made once and written to scratch space."""
        recipes, squares, positions, whole = [], 0.0, 0, True
        for part, sequences in zip(self._data.parts, kept, strict=True):
            dataset = part.dataset()
            inputs = self._encoding.inputs(dataset, features).seen()
            if shared:
                first, group = inputs.distinct()
                made: FeatureMap = RepeatedMap(ExplicitMap(*rows(inputs.take(first)), self.dtype), group, self._workers)
            else:
                made = ExplicitMap(*rows(inputs), self.dtype)
            squares, positions = squares + made.mean_diagonal() * len(inputs), positions + len(inputs)
            chosen = rows_of(dataset.offsets, sequences)
            if chosen is None:
                chosen = np.arange(len(inputs))
            else:
                whole = whole and shared and len(np.unique(group[chosen])) == len(first)
            recipes.append(self._scratch.keep(made.recipe(chosen)))
        own = DistantMap(head, squares / max(positions, 1))
        return own if whole else own.without_counts(), tuple(recipes)


@dataclass(frozen=True)
class _Lengths(Inputs):
    """Some inputs, with the squared lengths of many more."""

    norms: np.ndarray

    def squared_norms(self) -> np.ndarray:
        return self.norms


class _Form:
    """Whether entries of a sparse map have values of their own: as `CompressedRows.of` finds it, over all parts."""

    def __init__(self, width: int):
        self._common, self._seen = np.ones(width), np.zeros(width, dtype=bool)
        self._alike = self._ones = True

    def add(self, matrix: scipy.sparse.csr_array) -> None:
        """Take the rows of one more part."""
        values, columns = matrix.data, matrix.indices
        self._ones = self._ones and bool((values == 1).all())
        if self._alike:
            known = self._seen[columns]
            before = self._common[columns]
            self._common[columns] = values
            self._seen[columns] = True
            self._alike = bool((self._common[columns] == values).all() and (before[known] == values[known]).all())

    @property
    def scale(self) -> np.ndarray:
        """Factors of columns, [D] or none."""
        return self._common if self._alike and not self._ones else NO_VALUES

    def compressed(self, matrix: scipy.sparse.csr_array) -> CompressedRows:
        indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)
        values = NO_VALUES if self._ones or self._alike else matrix.data.astype(np.float64, copy=False)
        return CompressedRows(matrix.shape[1], indptr, indices, values, self.scale)


def _linear_matrix(term: TermConfig, inputs: Inputs) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Sparse and real columns of the linear kernel's own features."""
    if not term.kernel.cosine:
        return sparse_block(inputs), inputs.real
    scales = inverse_roots(inputs.squared_norms())
    return scaled_rows(sparse_block(inputs), scales), inputs.real * scales[:, None]


def _conjunctions(found: Conjunctions, inputs: Inputs) -> tuple[CompressedRows, np.ndarray]:
    return found.training_rows(inputs), np.zeros((len(inputs), 0))


def _cosine_rows(found: Conjunctions, inputs: Inputs) -> scipy.sparse.csr_array:
    """The same with rows of length one."""
    import scipy.sparse

    rows = found.training_rows(inputs)
    phi = scipy.sparse.csr_array((found.norms[rows.indices], rows.indices, rows.indptr), shape=rows.shape)
    return scaled_rows(phi, inverse_roots(found.kernel.diagonal(inputs)))


def _cosine_conjunctions(found: Conjunctions, form: _Form, inputs: Inputs) -> tuple[CompressedRows, np.ndarray]:
    return form.compressed(_cosine_rows(found, inputs)), np.zeros((len(inputs), 0))


def observed_in_shards(
    terms: Sequence[ShardedTerm], problem: Problem, workers: Workers, observer: Observer
) -> list[ShardedTerm]:
    """The same terms; those with explicit maps have weights for pairs of features and labels that the problem has.

    Portions of the problem are those that the recipes are of.
    """
    if not any(term.fitted.has_features for term in terms):
        raise ConfigError(
            "'observed_features' is for explicit maps, such as that of the linear kernel: there is none",
            settings=["observed_features"],
        )
    return [_observed(term, problem, workers, observer) for term in terms]


def _observed(term: ShardedTerm, problem: Problem, workers: Workers, observer: Observer) -> ShardedTerm:
    fitted = by_label(term.fitted, problem)
    if not fitted.has_features:
        return replace(term, fitted=fitted.observed(problem, observer))
    clique = fitted.config.clique
    width = clique.columns(problem.label_count)
    seen = np.zeros(fitted.map.size * width, dtype=bool)
    for number, recipe in enumerate(term.recipes):
        own = recipe.load(workers).seen_with(*clique.observed_columns(problem.portion(number)), width)
        seen[recipe.columns[own // width].astype(np.int64) * width + own % width] = True
    kept = np.flatnonzero(seen)
    observer.note(f"term {fitted.name}: {counted(len(kept), 'weight')} of {len(seen):,}, those of pairs seen")
    return replace(term, fitted=replace(fitted, kept=kept))
