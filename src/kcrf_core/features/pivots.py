"""Terms with pivots (inducing points, Nystroem landmarks): plan, fit, term of a model.

Scores of a model are k(x, B) alpha for the dual coefficients alpha = L^-T W (`maps.reduced`).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._lazy import cached_property
from ..errors import ConfigError
from ..kernels import Inputs, Kernel, Pivots, fit_kernel, inverse_roots
from ..system import Factor, Workers, counted, ranges, size_text
from . import TERMS
from .fitted import DataInMemory, InputsInMemory, MappedTerm, TermPlan, check_memory
from .term import ROWS_PER_TASK, StoredTerm, Term, TermBasis, WeightTable, pack_pivots

if TYPE_CHECKING:
    from ..config import TermConfig
    from ..device import Device
    from ..encoding import Encoding, Translation
    from ..maps import Basis, FeatureMap, GrowingBasis, PivotHead, ReducedMap, Weights
    from .fitted import FitContext, LabelMatch

# For each pair of pivots: their kernel matrix in double precision, factorised in place; `full` takes copies of it.
BYTES_PER_PAIR, FULL_BYTES_PER_PAIR = 8, 24


def pivot_limits(term: TermConfig, positions: int) -> tuple[int, float]:
    """Return the most pivots that a term may have, and the share of the trace that is little enough to stop before."""
    from ..maps import LITTLE_LEFT, automatic_size

    if term.map.size is not None:
        return min(term.map.size, positions), term.map.residual
    return automatic_size(positions), term.map.residual or LITTLE_LEFT


@dataclass(frozen=True)
class PivotPlan(TermPlan):
    """A reduced map on so many pivots at most."""

    has_pivots: ClassVar[bool] = True
    bytes_per_pair: ClassVar[int] = BYTES_PER_PAIR
    whole: ClassVar[bool] = False  # True if the map stands for the whole space of the kernel

    size: int

    @abstractmethod
    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray | None]:
        """Return pivots, and the residual of every training position where that is known."""

    def fit(self, context: FitContext) -> FittedPivots:
        return self._fitted(*self.chosen(context), context)

    def _fitted(
        self, basis: TermBasis, residual: np.ndarray | None, context: FitContext, growing: GrowingBasis | None = None
    ) -> FittedPivots:
        """Return the term with its map on data in memory; the residual of positions is given where it is known."""
        from ..maps import ReducedMap

        workers, dtype = context.workers, context.dtype

        def made(inputs: Inputs, rows: np.ndarray | slice) -> ReducedMap:
            own = None if residual is None else residual[rows]
            return ReducedMap.of(inputs, basis.kernel, basis.pivots, basis.curve, workers, dtype, own, self.whole)

        shared = self.data.scanned(self.term.name, context.observer)
        about = self.about(self.data.mapped(made, shared, workers), context)
        fitted = FittedPivots(**about, basis=basis, growing=growing)
        rows = len(self.data.distinct(self.data.whole)[0] if shared else self.data.whole)
        table = rows * fitted.rows * dtype.itemsize
        if workers.device is None and table > workers.memory.total:
            context.observer.report(
                f"term {self.term.name}: {size_text(table)} of kernel values do not all fit into "
                f"{size_text(workers.memory.total)} of memory: some are computed again in every pass"
            )
        return fitted

    def _kernel(self, what: str, context: FitContext) -> Kernel:
        """Return the kernel; an error where the matrix of so many pivots, in words, takes too much memory."""
        groups, inputs = context.data.encoding.groups(self.data.features), self.data.whole
        same = len(inputs) > 1 and all((part == part[:1]).all() for part in (inputs.codes, inputs.real))
        if same and len(inputs.distinct()[0]) == 1:
            same_inputs = f"warning: term {self.term.name}: all inputs are alike and tell no label from others"
            context.observer.report(same_inputs)
        kernel = fit_kernel(self.term.kernel, inputs, context.config.training.seed, groups, self.term.name)
        needed = self.bytes_per_pair * self.size**2
        check_memory(self.term, f"the kernel matrix of {self.size:,} {what}", needed, context.workers)
        return kernel

    def _basis(self, kernel: Kernel, found: Basis, kind: str, how: str, context: FitContext) -> TermBasis:
        """Report the pivots that were found, and return them."""
        term = self.term
        context.observer.note(
            f"term {term.name}: {term.kernel.title} kernel, {kind} map, {counted(len(found.rows), 'pivot')} ({how}), "
            f"{100 * found.unexplained:.2g} % of the trace unexplained"
        )
        self._warn(found, context)
        return self._kept(kernel, found)

    def _warn(self, found: Basis, context: FitContext) -> None:
        """Report a kernel that no feature map has."""
        if found.negative:
            context.observer.report(
                f"warning: term {self.term.name}: the {self.term.kernel.title} kernel is not "
                "positive semidefinite: its factorisation found a negative diagonal at "
                f"{counted(found.negative, 'input')}, and stopped at "
                f"{counted(len(found.rows), 'pivot')}: these do not stand for the kernel, and "
                "nothing bounds what others would add"
            )

    def _kept(self, kernel: Kernel, chosen: Basis) -> TermBasis:
        """Return chosen pivots as they are kept."""
        rows, dataset = chosen.rows, self.data.dataset
        labels = None if dataset.labels is None else dataset.labels[rows].astype(np.int32)
        pivots, lines, curve = self.data.whole.take(rows), dataset.lines[rows], chosen.curve / chosen.trace
        return TermBasis(self.term.name, self.data.features, kernel, pivots, lines, curve, labels)


@dataclass(frozen=True)
class ChosenPlan(PivotPlan):
    """Pivots chosen by a method, until little enough of the trace is left."""

    enough: float
    select: str

    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray]:
        from ..maps import MOST_PIVOTS, choose_pivots

        kernel, observer = self._kernel("pivots", context), context.observer
        observer.steps("choosing pivots", 0, self.size)
        found = choose_pivots(
            self.select,
            self.data.whole,
            kernel,
            self.size,
            np.random.default_rng(context.config.training.seed),
            context.workers,
            context.dtype,
            partial(observer.steps, "choosing pivots"),
            self.enough,
        )
        positions, why = len(self.data.whole), ""
        if self.term.map.size is None:
            if len(found.rows) < self.size:
                why = ", automatic: more explain little"
            elif self.size == positions:
                why = ", every position"
            elif self.size == MOST_PIVOTS:
                why = ", the largest automatic number"
            else:
                why = f", automatic for {counted(positions, 'position')}"
        return self._basis(kernel, found, "reduced", self.select + why, context), found.residual


@dataclass(frozen=True)
class FullPlan(PivotPlan):
    """Every distinct input as a pivot."""

    bytes_per_pair: ClassVar[int] = FULL_BYTES_PER_PAIR
    whole: ClassVar[bool] = True

    def chosen(self, context: FitContext) -> tuple[TermBasis, np.ndarray]:
        from ..maps import full_basis

        kernel = self._kernel("inputs", context)
        found = full_basis(self.data.whole, kernel)
        how = "every distinct input"
        if len(found.rows) < self.size:
            how = f"of {self.size:,} distinct inputs; the others are mixtures of these as double precision sees it"
        return self._basis(kernel, found, "full", how, context), found.residual


@dataclass(frozen=True)
class StoredPlan(PivotPlan):
    """Pivots of a basis file."""

    stored: TermBasis

    def chosen(self, context: FitContext) -> tuple[TermBasis, None]:
        if self.stored.features != self.data.features:
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

    def fit(self, context: FitContext) -> FittedPivots:
        from ..maps import GrowingBasis

        term, workers, dtype = self.term, context.workers, context.dtype
        kernel, rng = self._kernel("pivots", context), np.random.default_rng(context.config.training.seed)
        growing = GrowingBasis(self.data.whole, kernel, self.size, rng, workers, dtype, term.map.residual)
        context.observer.note(
            f"term {term.name}: {term.kernel.title} kernel, reduced map that grows by gradient from {len(growing):,} "
            f"random pivots to {growing.size:,} at most"
        )
        self._warn(growing.basis, context)
        return self.grown(growing, context)

    def grown(self, growing: GrowingBasis, context: FitContext) -> FittedPivots:
        """Return the term with the pivots that a basis has by now."""
        return self._fitted(self._kept(growing.kernel, growing.basis), growing.basis.residual, context, growing)


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedPivots(MappedTerm):
    """A reduced map on pivots, to which training may add."""

    takes_over: ClassVar[frozenset[str]] = frozenset(TERMS)  # any function has values at the pivots

    basis: TermBasis

    @property
    def head(self) -> PivotHead:
        """Triangle L of the pivots."""
        return super().head  # type: ignore[return-value]  # that of a reduced map, perhaps of repeated inputs

    def map_of(self, inputs: Inputs, workers: Workers, dtype: np.dtype) -> FeatureMap:
        from ..maps import KernelRows, ReducedMap

        kernel = self.basis.kernel
        rows = KernelRows.of(inputs, kernel, self.basis.pivots, workers.memory, dtype)
        return ReducedMap(rows, self.head, kernel.diagonal(inputs))

    def to_model(self, weights: Weights, precision: str) -> KernelTerm:
        assert isinstance(weights, np.ndarray)
        alpha = np.ascontiguousarray(self.head.dual(weights))
        return KernelTerm(
            *self.about, self.basis.kernel, self.basis.pivots, self.basis.lines, alpha, precision, self.basis.labels
        )

    def map_weights(self, term: KernelTerm) -> np.ndarray:
        return self.head.triangle.T @ term.alpha

    def taken_over(self, old: Term, between: Translation, labels: LabelMatch) -> tuple[np.ndarray, str]:
        from ..system import linear_algebra

        pivots = between.inputs(self.basis.pivots)
        values = np.zeros((len(pivots), old.clique.columns(len(labels.old))))
        old.add_scores(pivots, values)
        weights = labels.weights(values, old.clique, self.config.clique)
        found = linear_algebra.solve_triangular(self.head.triangle, weights, lower=True, check_finite=False)
        return found, f"at its {counted(self.rows, 'pivot')}"

    def grown(self, context: FitContext) -> FittedPivots:
        """Return the term with the pivots that its basis has by now; the columns that were there stay as they are."""
        growing, data = self.growing, context.data
        assert growing is not None and isinstance(data, DataInMemory)
        inputs = InputsInMemory(self.features, growing.inputs, data.dataset)
        return GrowingPlan(self.config, inputs, growing.size).grown(growing, context)


@dataclass(frozen=True)
class KernelTerm(Term):
    """Pivots and their dual coefficients."""

    kind: ClassVar[str] = "reduced"
    has_pivots: ClassVar[bool] = True

    kernel: Kernel
    pivots: Inputs  # [M]
    lines: np.ndarray  # [M] int64, where the pivots stand in the training data
    alpha: np.ndarray  # [M, C] float64, for edge-x [M, Y^2]
    precision: str = "double"  # of kernel values and their products with alpha: that of training
    labels: np.ndarray | None = None  # [M] int32, numbers of the pivots' labels in the training data

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(np.float32 if self.precision == "single" else np.float64)

    @cached_property
    def _prepared(self) -> tuple[Pivots, Factor]:
        return Pivots(self.pivots, self.kernel, self.dtype), Factor(self.alpha.astype(self.dtype, copy=False))

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        pivots, alpha = self._prepared
        out += alpha.products(pivots.gram(inputs))

    @cached_property
    def _inverse_lengths(self) -> np.ndarray:
        """Inverse lengths 1/sqrt(k(b, b)) of all pivots, [M]."""
        return inverse_roots(self.kernel.diagonal(self.pivots))

    def similarities(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """Return k(x, b) of inputs and all pivots, [n, M] float64, and these divided by the lengths of both."""
        values = self._prepared[0].gram(inputs).astype(np.float64)
        lengths = inverse_roots(self.kernel.diagonal(inputs))
        return values, values * lengths[:, None] * self._inverse_lengths

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry = {"map": self.kind, "kernel": self.kernel.to_dict(), "precision": self.precision}
        return entry, {f"{at}.alpha": self.alpha} | pack_pivots(self.pivots, self.lines, self.labels, at)

    @classmethod
    def unpack(cls, stored: StoredTerm) -> KernelTerm:
        kernel, (pivots, lines, labels) = stored.kernel(), stored.pivots()
        alpha = stored.array("alpha", "float64", 2)
        if alpha.shape != (len(pivots), stored.columns):
            raise stored.contents.error(f"'{stored.at}.alpha' does not fit its pivots")
        found = cls(*stored.about, kernel, pivots, lines, alpha, stored.precision(), labels)
        with np.errstate(over="ignore", invalid="ignore"):
            rows, factor = found._prepared
            values = (factor.values, kernel.diagonal(pivots), rows.gram(pivots.take(slice(0, 1))))
        if not all(np.isfinite(value).all() for value in values):
            raise stored.contents.error(
                f"the pivots of '{stored.at}' have kernel values or coefficients that are not finite"
            )
        return found

    def described(self) -> dict[str, Any]:
        return {"map": self.kind, "kernel": self.kernel.to_dict()}

    @property
    def weight_count(self) -> int:
        return self.alpha.size

    @property
    def nonzero(self) -> int:
        return int(np.count_nonzero(self.alpha))

    def table(self, encoding: Encoding) -> WeightTable:
        return WeightTable(len(self.lines), lambda m: f"line:{self.lines[m]}", self.alpha.__getitem__)

    @property
    def part_weights(self) -> np.ndarray:
        return self._prepared[1].values.astype(np.float64)

    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> KernelTerm:
        """Return the term without the pivots of the least max_y |alpha_y| sqrt(k(b, b)).

        As many go as keep the sum over them of |k(x_t, b) alpha_y| within the budget at every position t.
        """
        sizes = np.abs(self.alpha).max(axis=1, initial=0.0)
        order = np.argsort(sizes * np.sqrt(np.maximum(self.kernel.diagonal(self.pivots), 0.0)), kind="stable")
        pivots, shares = Pivots(self.pivots.take(order), self.kernel), np.abs(self.alpha[order])

        def dispensable(rows: slice) -> int:
            K = np.abs(pivots.gram(inputs.take(rows)))
            few, many = 0, len(shares)
            while few < many:
                middle = (few + many + 1) // 2
                if (K[:, :middle] @ shares[:middle]).max(initial=0.0) <= budget:
                    few = middle
                else:
                    many = middle - 1
            return few

        count = min([len(shares), *workers.map(dispensable, ranges(len(inputs), ROWS_PER_TASK))])
        alpha = self.alpha.copy()
        alpha[order[: min(count, len(order) - 1)]] = 0.0  # one has to stay
        return replace(self, alpha=alpha)

    def compacted(self) -> KernelTerm:
        left = np.flatnonzero(self.alpha.any(axis=1))
        left = left if len(left) else np.arange(1)
        labels = None if self.labels is None else self.labels[left]
        rows = self.pivots.take(left), self.lines[left], self.alpha[left]
        return replace(self, pivots=rows[0], lines=rows[1], alpha=rows[2], labels=labels)

    def on_device(self, device: Device) -> DeviceKernelTerm | None:
        scorer = device.scorer(self.pivots, self.kernel, self.alpha, self.dtype)
        if scorer is None:
            return None
        return DeviceKernelTerm(**{item.name: getattr(self, item.name) for item in fields(self)}, scorer=scorer)


@dataclass(frozen=True)
class DeviceKernelTerm(KernelTerm):
    """Pivots and their dual coefficients on a device."""

    likes_many_rows: ClassVar[bool] = True

    scorer: Any = field(kw_only=True)

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        out += self.scorer.scores(inputs)
