"""Terms with pivots: scores are k(x, B) alpha for the dual coefficients alpha = L^-T W."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..encoding import Encoding
from ..kernels import Inputs, Kernel, Pivots, inverse_roots, kernel_to_dict
from ..system import Factor, Workers
from .pruning import needless_first
from .stored_terms import StoredTerm, pack_pivots
from .term import PartsOfRow, Term, TermParts, WeightTable

if TYPE_CHECKING:
    from ..device import Device


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

    @cached_property
    def _prepared(self) -> tuple[Pivots, Factor]:
        dtype = np.float32 if self.precision == "single" else np.float64
        return Pivots(self.pivots, self.kernel, dtype), Factor(self.alpha.astype(dtype, copy=False))

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        pivots, alpha = self._prepared
        out += alpha.products(pivots.gram(inputs))

    @cached_property
    def _inverse_lengths(self) -> np.ndarray:
        """1/sqrt(k(b, b)) of all pivots, [M]."""
        return inverse_roots(self.kernel.diagonal(self.pivots))

    def similarities(self, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
        """k(x, b) of inputs and all pivots, [n, M] float64, and the same divided by the lengths of both."""
        values = self._prepared[0].gram(inputs).astype(np.float64)
        lengths = inverse_roots(self.kernel.diagonal(inputs))
        return values, values * lengths[:, None] * self._inverse_lengths

    def pack(self, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        entry = {"map": self.kind, "kernel": kernel_to_dict(self.kernel), "precision": self.precision}
        return entry, {f"{at}.alpha": self.alpha} | pack_pivots(self.pivots, self.lines, at)

    @classmethod
    def unpack(cls, stored: StoredTerm) -> KernelTerm:
        kernel, (pivots, lines) = stored.kernel(), stored.pivots()
        alpha = stored.array("alpha", "float64", 2)
        if alpha.shape != (len(pivots), stored.columns):
            raise stored.error(f"'{stored.at}.alpha' does not fit its pivots")
        found = cls(*stored.about, kernel, pivots, lines, alpha, stored.precision())
        if not found.computable:
            raise stored.error(f"the pivots of '{stored.at}' have kernel values or coefficients that are not finite")
        return found

    @property
    def computable(self) -> bool:
        """Whether coefficients and kernel values of the pivots are finite in the precision of the term."""
        with np.errstate(over="ignore", invalid="ignore"):
            pivots, alpha = self._prepared
            values = (alpha.values, self.kernel.diagonal(self.pivots), pivots.gram(self.pivots.take(slice(0, 1))))
        return all(np.isfinite(value).all() for value in values)

    def described(self) -> dict[str, Any]:
        return {"map": self.kind, "kernel": kernel_to_dict(self.kernel)}

    @property
    def weight_count(self) -> int:
        return self.alpha.size

    @property
    def nonzero(self) -> int:
        return int(np.count_nonzero(self.alpha))

    def table(self, encoding: Encoding) -> WeightTable:
        return WeightTable(len(self.lines), lambda m: f"line:{self.lines[m]}", self.alpha.__getitem__)

    def parts(self, encoding: Encoding) -> TermParts:
        pivots, alpha = self._prepared
        every = np.arange(len(pivots))

        def name(m: int) -> tuple[str, int]:
            return "pivot", int(self.lines[m])

        def of(inputs: Inputs) -> Iterator[PartsOfRow]:
            for values in pivots.gram(inputs):
                yield PartsOfRow(every, values.astype(np.float64), name)

        return TermParts(alpha.values.astype(np.float64), of)

    def pruned(self, inputs: Inputs, budget: float, workers: Workers) -> KernelTerm:
        sizes = np.abs(self.alpha).max(axis=1, initial=0.0)
        order = np.argsort(sizes * np.sqrt(np.maximum(self.kernel.diagonal(self.pivots), 0.0)), kind="stable")
        pivots, shares = Pivots(self.pivots.take(order), self.kernel), np.abs(self.alpha[order])
        count = needless_first(lambda rows: np.abs(pivots.gram(rows)), shares, inputs, budget, workers)
        alpha = self.alpha.copy()
        alpha[order[: min(count, len(order) - 1)]] = 0.0  # one has to stay
        return replace(self, alpha=alpha)

    def compacted(self) -> KernelTerm:
        left = np.flatnonzero(self.alpha.any(axis=1))
        left = left if len(left) else np.arange(1)
        return replace(self, pivots=self.pivots.take(left), lines=self.lines[left], alpha=self.alpha[left])


@dataclass(frozen=True)
class DeviceKernelTerm(KernelTerm):
    """Pivots and their dual coefficients on a device."""

    likes_many_rows: ClassVar[bool] = True

    scorer: Any = field(kw_only=True)

    @classmethod
    def of(cls, term: KernelTerm, device: Device) -> DeviceKernelTerm | None:
        """The same term there; None where the device does not know its kernel."""
        dtype = np.float32 if term.precision == "single" else np.float64
        scorer = device.scorer(term.pivots, term.kernel, term.alpha, dtype)
        if scorer is None:
            return None
        return cls(**{item.name: getattr(term, item.name) for item in fields(term)}, scorer=scorer)

    def add_scores(self, inputs: Inputs, out: np.ndarray) -> None:
        out += self.scorer.scores(inputs)
