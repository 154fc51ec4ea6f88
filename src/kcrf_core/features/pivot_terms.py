"""Terms with pivots: training inputs chosen before, all of them, those of a basis file, or some more after each fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from ..chains import Problem
from ..config import GRADIENT, TermConfig
from ..encoding import Dataset, Translation
from ..errors import ConfigError
from ..kernels import Inputs, Kernel, fit_kernel
from ..maps import (
    LITTLE_LEFT,
    MOST_PIVOTS,
    Basis,
    FeatureMap,
    GrowingBasis,
    ReducedMap,
    automatic_size,
    choose_pivots,
    full_basis,
    inverse_bytes,
)
from ..objective import certificates
from ..solvers import Observer
from ..system import Workers, counted, linear_algebra
from . import TERMS
from .bases import TermBasis
from .kernel_term import KernelTerm
from .label_match import LabelMatch
from .term import Term
from .terms import (
    FitContext,
    FittedTerm,
    MappedTerm,
    TermFootprint,
    TermPlan,
    check_memory,
    distinct_by_portion,
    shared_map,
    worth_sharing,
)

# For each pair of pivots: their kernel matrix in double precision, factorised in place; `full` takes copies of it.
BYTES_PER_PAIR, FULL_BYTES_PER_PAIR = 8, 24


# ----------------------------------------------------------------------------- fitted


@dataclass(frozen=True)
class FittedPivots(MappedTerm):
    """A reduced map on pivots."""

    takes_over: ClassVar[frozenset[str]] = frozenset(TERMS)  # any function has values at the pivots

    basis: TermBasis = field(kw_only=True)

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        return self.map.of_inputs(inputs, self.basis.kernel, self.basis.pivots, workers, dtype)

    def to_model(self, weights: np.ndarray, precision: str) -> KernelTerm:
        alpha = np.ascontiguousarray(self.map.dual(weights))
        return KernelTerm(*self.about, self.basis.kernel, self.basis.pivots, self.basis.lines, alpha, precision)

    def map_weights(self, term: Term) -> np.ndarray:
        return self.map.triangle.T @ term.alpha

    def taken_over(self, old: Term, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        """W = L^-1 f(B)."""
        pivots = between.inputs(self.basis.pivots)
        values = np.zeros((len(pivots), old.clique.columns(len(labels.old))))
        old.add_scores(pivots, values)
        weights = labels.weights(values, old.clique, self.config.clique)
        found = linear_algebra.solve_triangular(self.map.triangle, weights, lower=True, check_finite=False)
        return found, f"at its {counted(self.map.size, 'pivot')}"

    def observed(self, problem: Problem, observer: Observer) -> FittedTerm:
        observer.note(f"term {self.name}: pivots keep all coefficients, features that are observed have none here")
        return self

    def begun_growth(self, context: FitContext) -> FittedTerm:
        if self.config.map.select != GRADIENT:
            return self
        inputs = context.encoding.inputs(context.dataset, self.features).seen()
        return growing_plan(self.config, self.features, inputs).fit(context)

    def outside_gain(
        self,
        errors: Callable[[], np.ndarray],
        inputs: Callable[[], Inputs],
        sigma2: float,
        certify: str,
        workers: Workers,
    ) -> float:
        if certify == "exact":
            return certificates.bound(errors(), self.map, inputs(), self.basis.kernel, sigma2, workers)
        return certificates.estimate(errors(), self.map, sigma2, workers)


@dataclass(frozen=True)
class FittedGrowing(FittedPivots):
    """A reduced map whose pivots training adds to."""

    growing: GrowingBasis = field(kw_only=True)

    def begun_growth(self, context: FitContext) -> FittedTerm:
        return self

    def grown(
        self, dataset: Dataset, workers: Workers, dtype: np.dtype, observer: Observer | None = None
    ) -> FittedGrowing:
        """The same term with the pivots that its basis has by now; the columns that were there stay as they are."""
        return _on_grown(self.config, self.features, self.growing, dataset, workers, dtype, observer or Observer())


def _on_grown(
    term: TermConfig,
    features: tuple[str, ...],
    growing: GrowingBasis,
    dataset: Dataset,
    workers: Workers,
    dtype: np.dtype,
    observer: Observer,
) -> FittedGrowing:
    chosen = _term_basis(term, features, growing.inputs, dataset, growing.kernel, growing.basis)
    make = partial(_reduced, chosen, growing.basis.residual, workers, dtype)
    own = shared_map(term, growing.inputs, dataset, make, workers, observer)
    return FittedGrowing(term, features, own, basis=chosen, growing=growing)


def _reduced(
    chosen: TermBasis,
    residual: np.ndarray | None,
    workers: Workers,
    dtype: np.dtype,
    inputs: Inputs,
    rows: np.ndarray | slice,
    whole: bool = False,
) -> FeatureMap:
    own = None if residual is None else residual[rows]
    return ReducedMap.of(inputs, chosen.kernel, chosen.pivots, chosen.curve, workers, dtype, own, whole)


def _term_basis(
    term: TermConfig, features: tuple[str, ...], inputs: Inputs, dataset: Dataset, kernel: Kernel, chosen: Basis
) -> TermBasis:
    curve = chosen.curve / chosen.trace
    return TermBasis(term.name, features, kernel, inputs.take(chosen.rows), dataset.lines[chosen.rows], curve)


# ----------------------------------------------------------------------------- plans


def reduced_plan(term: TermConfig, features: tuple[str, ...], inputs: Inputs) -> ChosenPlan:
    """Pivots chosen before training; random ones for a basis that is to grow later on."""
    size, enough = pivot_limits(term, len(inputs))
    if term.map.select == GRADIENT:  # to choose sigma2 and terms by, before it grows
        return ChosenPlan(term, features, inputs, min(size, automatic_size(len(inputs))), enough, "random")
    return ChosenPlan(term, features, inputs, size, enough, term.map.select)


def full_plan(term: TermConfig, features: tuple[str, ...], inputs: Inputs) -> FullPlan:
    return FullPlan(term, features, inputs, len(inputs.distinct()[0]))


def growing_plan(term: TermConfig, features: tuple[str, ...], inputs: Inputs) -> GrowingPlan:
    return GrowingPlan(term, features, inputs, pivot_limits(term, len(inputs))[0])


def pivot_limits(term: TermConfig, positions: int) -> tuple[int, float]:
    """How many pivots a term may have, and the part of the trace that is little enough to stop before."""
    if term.map.size is not None:
        return min(term.map.size, positions), term.map.residual
    return automatic_size(positions), term.map.residual or LITTLE_LEFT


@dataclass(frozen=True)
class PivotPlan(TermPlan):
    """A reduced map on so many pivots at most."""

    has_pivots: ClassVar[bool] = True
    bytes_per_pair: ClassVar[int] = BYTES_PER_PAIR
    whole: ClassVar[bool] = False  # whether the map stands for the whole space of the kernel

    size: int

    @abstractmethod
    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray | None]:
        """Pivots, and the residual of every training position where that is known."""

    def fit(self, context: FitContext) -> FittedPivots:
        basis, residual = self.chosen(context)
        make = partial(_reduced, basis, residual, context.workers, context.dtype, whole=self.whole)
        return FittedPivots(self.term, self.features, self.shared(make, context), basis=basis)

    def footprint(self, width: int, itemsize: int, dataset: Dataset, observed: bool) -> TermFootprint:
        N, distinct = len(self.inputs), len(distinct_by_portion(self.inputs, dataset)[0])
        rows = distinct if worth_sharing(distinct, N) else N
        what = f"kernel values of {rows:,} {'distinct inputs' if rows < N else 'positions'} with {self._pivots_text()}"
        # A map holds L and its inputs, to compute rows with; while it is made the kernel matrix of pivots is there too.
        fixed = BYTES_PER_PAIR * self.size**2 + self.inputs.nbytes * rows // max(N, 1)
        fixed += inverse_bytes(self.size) if itemsize < 8 else 0
        building = (BYTES_PER_PAIR + self.bytes_per_pair) * self.size**2 + self.inputs.nbytes
        return TermFootprint(self.term.name, what, rows * self.size * itemsize, fixed, building, self.size * width)

    def _pivots_text(self) -> str:
        return counted(self.size, "pivot")

    def _kernel(self, context: FitContext) -> Kernel:
        groups, inputs = context.encoding.groups(self.features), self.inputs
        same = len(inputs) > 1 and all((part == part[:1]).all() for part in (inputs.codes, inputs.real))
        if same and len(inputs.distinct()[0]) == 1:
            context.observer.note(f"warning: term {self.term.name}: all inputs are alike and tell no label from others")
        return fit_kernel(self.term.kernel, self.inputs, context.seed, groups, self.term.name)

    def _check_memory(self, what: str, context: FitContext) -> None:
        needed = self.bytes_per_pair * self.size**2
        check_memory(self.term, f"the kernel matrix of {self.size:,} {what}", needed, context.workers)

    def _basis(self, kernel: Kernel, found: Basis, kind: str, how: str, context: FitContext) -> TermBasis:
        """What was found, said and kept."""
        term = self.term
        context.observer.note(
            f"term {term.name}: {term.kernel.title} kernel, {kind} map, {counted(len(found.rows), 'pivot')} ({how}), "
            f"{100 * found.unexplained:.2g} % of the trace unexplained"
        )
        return _term_basis(term, self.features, self.inputs, context.dataset, kernel, found)


@dataclass(frozen=True)
class ChosenPlan(PivotPlan):
    """Pivots chosen by a method, until little enough of the trace is left."""

    enough: float
    select: str

    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray]:
        kernel = self._kernel(context)
        self._check_memory("pivots", context)
        observer, rng = context.observer, np.random.default_rng(context.seed)
        observer.stage("choosing pivots", self.size)
        found = choose_pivots(
            self.select,
            self.inputs,
            kernel,
            self.size,
            rng,
            context.workers,
            context.dtype,
            observer.pivots,
            self.enough,
        )
        how = self.select + self._why_so_many(len(found.rows))
        return self._basis(kernel, found, "reduced", how, context), found.residual

    def _why_so_many(self, found: int) -> str:
        """What decided the number of pivots, where no option did."""
        if self.term.map.size is not None:
            return ""
        if found < self.size:
            return ", as many as matter"
        if self.size == len(self.inputs):
            return ", every position"
        if self.size == MOST_PIVOTS:
            return ", the most where no size is given"
        return f", as many as are soon chosen among {counted(len(self.inputs), 'position')}"


@dataclass(frozen=True)
class FullPlan(PivotPlan):
    """Every distinct input as a pivot."""

    bytes_per_pair: ClassVar[int] = FULL_BYTES_PER_PAIR
    whole: ClassVar[bool] = True

    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray]:
        kernel = self._kernel(context)
        self._check_memory("inputs", context)
        found = full_basis(self.inputs, kernel)
        how = "every distinct input"
        if len(found.rows) < self.size:
            how = f"of {self.size:,} distinct inputs; the others are mixtures of these as double precision sees it"
        return self._basis(kernel, found, "full", how, context), found.residual

    def _pivots_text(self) -> str:
        return f"every one of {counted(self.size, 'distinct input')} as a pivot"


@dataclass(frozen=True)
class StoredPlan(PivotPlan):
    """Pivots of a basis file."""

    stored: TermBasis

    def chosen(self, context: FitContext) -> tuple[TermBasis, None]:
        if self.stored.features != self.features:
            raise ConfigError(f"term '{self.term.name}': its pivots in the basis have other features than the term")
        context.observer.note(
            f"term {self.term.name}: {self.term.kernel.title} kernel, {counted(self.size, 'pivot')} of the basis file"
        )
        return self.stored, None


@dataclass(frozen=True)
class GrowingPlan(PivotPlan):
    """The first pivots of a basis that grows by gradient while a model is trained."""

    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray]:
        raise ConfigError(
            f"term '{self.term.name}': 'gradient' chooses pivots while a model is trained: name another way to choose "
            "them before",
            settings=["select"],
        )

    def fit(self, context: FitContext) -> FittedGrowing:
        term, workers, dtype = self.term, context.workers, context.dtype
        kernel = self._kernel(context)
        self._check_memory("pivots", context)
        rng = np.random.default_rng(context.seed)
        growing = GrowingBasis(self.inputs, kernel, self.size, rng, workers, dtype, term.map.residual)
        context.observer.note(
            f"term {term.name}: {term.kernel.title} kernel, reduced map that grows by gradient from {len(growing):,} "
            f"random pivots to {growing.size:,} at most"
        )
        return _on_grown(term, self.features, growing, context.dataset, workers, dtype, context.observer)
