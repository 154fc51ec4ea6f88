"""Terms fitted to training data: their kernels, pivots and maps, before any weight is estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse

from ..chains import Clique
from ..config import GRADIENT, Config, TermConfig
from ..encoding import Dataset, Encoding
from ..errors import ConfigError
from ..kernels import Inputs, Kernel, fit_kernel, inverse_roots
from ..maps import (
    Affine,
    Conjunctions,
    ExplicitMap,
    FeatureMap,
    GrowingBasis,
    MergedColumns,
    MergedMap,
    ReducedMap,
    RepeatedMap,
    SparseWeights,
    Weights,
    as_dense,
    conjunction_count,
    find_conjunctions,
    matrix_of,
    merged_columns,
    scaled_rows,
    sparse_block,
    why_not,
)
from ..maps import pivots as pivot_selection
from ..model import AffineTerm, ConjunctionTerm, ExplicitTerm, KernelTerm, StoredBasis, Term, TermBasis
from ..objective import Posterior, certificates
from ..system import Workers
from .observer import Observer
from .term_choices import (
    BYTES_PER_CONJUNCTION,
    BYTES_PER_PAIR,
    FULL_BYTES_PER_PAIR,
    check_memory,
    map_type,
    pivot_limits,
    why_so_many,
    worth_sharing,
)

DTYPES = {"single": np.dtype(np.float32), "double": np.dtype(np.float64)}


@dataclass(frozen=True)
class FittedTerm:
    """A term with its map on the training data, and what the model keeps of it."""

    config: TermConfig
    features: tuple[str, ...] = ()
    map: FeatureMap | None = None  # None: the term looks at labels alone
    basis: TermBasis | None = None  # None: no pivots
    conjunctions: Conjunctions | None = None  # of an explicit polynomial kernel
    affine: Affine | None = None  # of one of degree 1 on inputs that are not binary
    merged: MergedColumns | None = None  # of a linear kernel, where features share columns
    growing: GrowingBasis | None = None  # pivots that training adds to
    kept: np.ndarray | None = None  # [K] places in W that have weights, see `observed_features`; None: all

    @property
    def name(self) -> str:
        return self.config.name

    def score_scale(self) -> float:
        """Mean of k(x, x): sigma2 times this is the prior variance of a score."""
        return 1.0 if self.map is None else self.map.mean_diagonal()

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        """The same map on other data."""
        if self.conjunctions is not None:
            return _conjunction_map(self.config, self.conjunctions, self.conjunctions.rows(inputs), inputs, dtype)
        if self.affine is not None:
            return self.affine.map_of(inputs, dtype)
        if self.basis is None:
            return _linear_map(self.config, inputs, self.merged, dtype)
        return self.map.of_inputs(inputs, self.basis.kernel, self.basis.pivots, workers, dtype)

    def to_model(self, weights: np.ndarray, precision: str) -> Term:
        """With its weights [D, columns] found in the given precision, as the model keeps it."""
        about = (self.config.name, self.config.type, self.features)

        def stored(weights: np.ndarray) -> Weights:
            return np.ascontiguousarray(weights) if self.kept is None else SparseWeights.of(weights)

        if self.conjunctions is not None:
            weights = stored(weights / self.conjunctions.norms[:, None])
            return ConjunctionTerm(*about, self.conjunctions, weights, self.config.kernel.cosine)
        if self.affine is not None:
            inner, bias = self.affine.weights(weights)
            return AffineTerm(*about, stored(inner), bias=np.ascontiguousarray(bias))
        if self.basis is None:
            weights = weights if self.merged is None else self.merged.spread(weights)
            return ExplicitTerm(*about, stored(weights), self.config.kernel.cosine)
        alpha = np.ascontiguousarray(self.map.dual(weights))
        return KernelTerm(*about, self.basis.kernel, self.basis.pivots, self.basis.lines, alpha, precision)

    def map_weights(self, term: Term) -> np.ndarray:
        """Inverse of `to_model`: weights [D, columns] of the map that say what a term made of it says."""
        if isinstance(term, KernelTerm):
            return self.map.triangle.T @ term.alpha
        weights = as_dense(matrix_of(term.weights))
        if self.conjunctions is not None:
            return weights * self.conjunctions.norms[:, None]
        if self.affine is not None:
            return self.affine.map_weights(weights, term.bias)
        return weights if self.merged is None else self.merged.gathered(weights)

    def grown(
        self, dataset: Dataset, workers: Workers, dtype: np.dtype, observer: Observer | None = None
    ) -> FittedTerm:
        """With the pivots that its growing basis has by now; the columns that were there stay as they are."""
        growing = self.growing
        chosen = _term_basis(self.config, self.features, growing.inputs, dataset, growing.kernel, growing.basis)
        make = partial(_reduced, chosen, growing.basis.residual, workers, dtype)
        shared = _shared(self.config, growing.inputs, make, workers, observer or Observer())
        return replace(self, map=shared, basis=chosen)


def select_bases(
    encoding: Encoding, dataset: Dataset, config: Config, workers: Workers, observer: Observer
) -> StoredBasis:
    """Pivots for every term that needs them."""
    found = []
    for term in config.mapped_terms:
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features).seen()
        if map_type(term, inputs) == "explicit":
            observer.note(f"term {term.name}: {term.kernel.title} kernel, explicit map; it needs no pivots")
            continue
        if term.map.select == GRADIENT:
            raise ConfigError(
                f"term '{term.name}': 'gradient' chooses pivots while a model is trained: give it to train (--select)"
            )
        found.append(_select(term, encoding, features, inputs, dataset, config, workers, observer)[0])
    if not found:
        raise ConfigError("no term needs pivots: give a kernel such as --kernel poly, or a map such as --map reduced")
    return StoredBasis(encoding, config, tuple(found))


def fit_terms(
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    basis: StoredBasis | None,
    workers: Workers,
    observer: Observer,
    rehearse: bool = False,
) -> list[FittedTerm]:
    """Terms with maps first, in the order of the configuration, then those over labels alone.

    A basis that is to grow has its first pivots only or, to `rehearse` with, as many random ones as others have; then
    `begin_growth` is still to be called.
    """
    dtype = DTYPES[config.training.precision]
    stored = {} if basis is None else {term.name: term for term in basis.terms}
    fitted = []
    for term in config.mapped_terms:
        features = tuple(encoding.term_features(term))
        inputs = encoding.inputs(dataset, features).seen()
        if term.map.select == GRADIENT and not rehearse:
            fitted.append(_growing(term, encoding, features, inputs, dataset, config, workers, observer))
            continue
        if term.name not in stored and map_type(term, inputs) == "explicit":
            fitted.append(_explicit(term, features, inputs, config, workers, observer))
            continue
        residual = None
        if term.name in stored:
            chosen = stored[term.name]
            if chosen.features != features:
                raise ConfigError(f"term '{term.name}': its pivots in the basis have other features than the term")
            observer.note(
                f"term {term.name}: {term.kernel.title} kernel, {len(chosen.pivots):,} pivots of the basis file"
            )
        else:
            chosen, residual = _select(term, encoding, features, inputs, dataset, config, workers, observer)
        make = partial(_reduced, chosen, residual, workers, dtype)
        fitted.append(FittedTerm(term, features, _shared(term, inputs, make, workers, observer), chosen))
    return fitted + [FittedTerm(term) for term in (config.edge_term, config.edge2_term) if term is not None]


def begin_growth(
    fitted: Sequence[FittedTerm],
    encoding: Encoding,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> list[FittedTerm]:
    """The same terms; those whose basis is to grow have their first pivots."""
    out = []
    for term in fitted:
        if term.config.map.select == GRADIENT and term.growing is None:
            inputs = encoding.inputs(dataset, term.features).seen()
            term = _growing(term.config, encoding, term.features, inputs, dataset, config, workers, observer)
        out.append(term)
    return out


def _growing(
    term: TermConfig,
    encoding: Encoding,
    features: tuple[str, ...],
    inputs: Inputs,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> FittedTerm:
    """A term with the first pivots of a basis that is to grow."""
    training = config.training
    dtype = DTYPES[training.precision]
    kernel = fit_kernel(term.kernel, inputs, training.seed, encoding.groups(features), term.name)
    size = pivot_limits(term, len(inputs))[0]
    check_memory(term, f"the kernel matrix of {size:,} pivots", BYTES_PER_PAIR * size**2, workers)
    rng = np.random.default_rng(training.seed)
    growing = GrowingBasis(inputs, kernel, size, rng, workers, dtype, term.map.residual)
    observer.note(
        f"term {term.name}: {term.kernel.title} kernel, reduced map that grows by gradient from {len(growing):,} "
        f"random pivots to {growing.size:,} at most"
    )
    return FittedTerm(term, features, growing=growing).grown(dataset, workers, dtype, observer)


def _reduced(
    chosen: TermBasis,
    residual: np.ndarray | None,
    workers: Workers,
    dtype: np.dtype,
    inputs: Inputs,
    rows: np.ndarray | slice,
) -> FeatureMap:
    own = None if residual is None else residual[rows]
    return ReducedMap.of(inputs, chosen.kernel, chosen.pivots, chosen.curve, workers, dtype, own)


def _shared(
    term: TermConfig,
    inputs: Inputs,
    make: Callable[[Inputs, np.ndarray | slice], FeatureMap],
    workers: Workers,
    observer: Observer,
) -> FeatureMap:
    """A map of inputs, made of distinct ones where enough of them come again; `make` takes rows and their numbers."""
    rows, group = inputs.distinct()
    if not worth_sharing(len(rows), len(inputs)):
        return make(inputs, slice(None))
    observer.note(f"term {term.name}: {len(rows):,} distinct inputs at {len(inputs):,} positions, each computed once")
    return RepeatedMap(make(inputs.take(rows), rows), group, workers)


def _explicit(
    term: TermConfig,
    features: tuple[str, ...],
    inputs: Inputs,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> FittedTerm:
    """The linear kernel's own features, these with a constant for poly of degree 1, or conjunctions."""
    dtype = DTYPES[config.training.precision]
    if term.kernel.type == "linear":
        merged = merged_columns(sparse_block(inputs)) if inputs.bag is None and not term.kernel.cosine else None
        explicit = _shared(term, inputs, lambda rows, _: _linear_map(term, rows, merged, dtype), workers, observer)
        count = explicit.size if merged is None else explicit.size - merged.size + len(merged.column)
        shared = "" if merged is None else f" in {explicit.size:,} columns"
        observer.note(f"term {term.name}: {term.kernel.title} kernel, explicit map, {count:,} features{shared}")
        return FittedTerm(term, features, explicit, merged=merged)
    kernel = fit_kernel(replace(term.kernel, cosine=False), inputs, config.training.seed)
    reason = why_not(inputs, kernel.degree)
    if reason is not None and kernel.degree == 1 and not term.kernel.cosine:
        affine = Affine.of(kernel)
        explicit = _shared(term, inputs, lambda rows, _: affine.map_of(rows, dtype), workers, observer)
        observer.note(f"term {term.name}: poly kernel of degree 1, explicit map, {explicit.size:,} features")
        return FittedTerm(term, features, explicit, affine=affine)
    if reason is not None:
        raise ConfigError(f"term '{term.name}': map 'explicit' cannot hold this kernel: {reason}; 'reduced' can")
    entries = conjunction_count(inputs, kernel.degree)
    check_memory(term, f"a table of {entries:,} conjunctions", BYTES_PER_CONJUNCTION * entries, workers)
    observer.note(
        f"term {term.name}: {term.kernel.title} kernel of degree {kernel.degree} on binary features, explicit map; "
        f"going through {entries:,} conjunctions"
    )
    found, phi = find_conjunctions(inputs, kernel, term.map.cut_off)
    observer.note(f"term {term.name}: {len(found.keys):,} distinct conjunctions in {found.size:,} columns")
    return FittedTerm(term, features, _conjunction_map(term, found, phi, inputs, dtype), conjunctions=found)


def _linear_map(term: TermConfig, inputs: Inputs, merged: MergedColumns | None, dtype: np.dtype) -> ExplicitMap:
    if merged is not None:
        return MergedMap(merged, inputs, dtype)
    if not term.kernel.cosine:
        return ExplicitMap.of(inputs, dtype)
    scales = inverse_roots(inputs.squared_norms())
    return ExplicitMap(scaled_rows(sparse_block(inputs), scales), inputs.real * scales[:, None], dtype)


def _conjunction_map(
    term: TermConfig, found: Conjunctions, phi: scipy.sparse.csr_array, inputs: Inputs, dtype: np.dtype
) -> ExplicitMap:
    """Phi [N, D] of conjunctions, with rows of length one where the kernel is a cosine."""
    if term.kernel.cosine:
        phi = scaled_rows(phi, inverse_roots(found.kernel.diagonal(inputs)))
    return ExplicitMap(phi, np.zeros((len(inputs), 0)), dtype)


def _select(
    term: TermConfig,
    encoding: Encoding,
    features: tuple[str, ...],
    inputs: Inputs,
    dataset: Dataset,
    config: Config,
    workers: Workers,
    observer: Observer,
) -> tuple[TermBasis, np.ndarray]:
    """Pivots of one term, and the residual of every training position."""
    training = config.training
    kernel = fit_kernel(term.kernel, inputs, training.seed, encoding.groups(features), term.name)
    dtype = DTYPES[training.precision]
    kind = "full" if term.map.type == "full" else "reduced"
    if kind == "full":
        distinct = len(inputs.distinct()[0])
        check_memory(term, f"the kernel matrix of {distinct:,} inputs", FULL_BYTES_PER_PAIR * distinct**2, workers)
        chosen = pivot_selection.full_basis(inputs, kernel, dtype)
        how = "every distinct input"
    else:
        size, left = pivot_limits(term, len(inputs))
        select = term.map.select
        if select == GRADIENT:  # to choose sigma2 and terms by, before it grows
            size, select = min(size, pivot_selection.automatic_size(len(inputs))), "random"
        check_memory(term, f"the kernel matrix of {size:,} pivots", BYTES_PER_PAIR * size**2, workers)
        observer.stage("choosing pivots", size)
        rng = np.random.default_rng(training.seed)
        chosen = pivot_selection.choose_pivots(select, inputs, kernel, size, rng, workers, dtype, observer.pivots, left)
        how = select + why_so_many(term, size, len(chosen.rows), len(inputs))
    observer.note(
        f"term {term.name}: {term.kernel.title} kernel, {kind} map, {len(chosen.rows):,} pivots ({how}), "
        f"{100 * chosen.unexplained:.2g} % of the trace unexplained"
    )
    return _term_basis(term, features, inputs, dataset, kernel, chosen), chosen.residual


def _term_basis(
    term: TermConfig,
    features: tuple[str, ...],
    inputs: Inputs,
    dataset: Dataset,
    kernel: Kernel,
    chosen: pivot_selection.Basis,
) -> TermBasis:
    curve = chosen.curve / chosen.trace
    return TermBasis(term.name, features, kernel, inputs.take(chosen.rows), dataset.lines[chosen.rows], curve)


def outside_gain(
    encoding: Encoding,
    dataset: Dataset,
    fitted: Sequence[FittedTerm],
    posterior: Posterior,
    theta: np.ndarray,
    certify: str,
) -> float:
    """What leaving the span of the pivots could still gain, summed over reduced terms."""
    total = 0.0
    errors: dict[Clique, np.ndarray] = {}
    for term, cliques in zip(fitted, posterior.engine.cliques, strict=True):
        if term.basis is None:
            continue
        if cliques.clique not in errors:
            errors[cliques.clique] = posterior.errors(theta, cliques.clique)
        m, sigma2 = errors[cliques.clique], cliques.sigma2
        if certify == "exact":
            inputs = encoding.inputs(dataset, term.features).seen()
            total += certificates.bound(m, term.map, inputs, term.basis.kernel, sigma2, posterior.engine.workers)
        else:
            total += certificates.estimate(m, term.map, sigma2, posterior.engine.workers)
    return total
