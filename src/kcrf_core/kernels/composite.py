"""Kernels made of kernels.

sum       sum_i weight_i k_i(x_i, x'_i), x_i some of the columns of x; divided by its mean diagonal, unless all
          parts are linear
product   scale prod_i k_i(x_i, x'_i), divided by its mean diagonal
cosine    k(x, x') / sqrt(k(x, x) k(x', x')), zero where either is zero; a key of other kernels asks for it
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from .._lazy import deferred
from ..system import Number, Whole
from .kernel import (
    VALUE_ERROR,
    Fitting,
    Kernel,
    KernelConfig,
    fitted,
    kernel_from_dict,
    matching_features,
    stored_value,
)
from .plain import mean_diagonal

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from ..system import Array
    from .gram_blocks import Fill
    from .inputs import Group, Inputs
    from .kernel import Prepared
else:
    np = deferred("numpy")


SMALLEST_DIAGONAL = 1e-150  # products on the way to a smaller k(x, x) may be too small for a double


@dataclass(frozen=True)
class Part:
    """A kernel on some of the columns."""

    group: Group
    kernel: Kernel

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Part:
        from .inputs import Group

        names = matching_features(config.features, list(fitting.groups), f"{fitting.term}', kernel '{config.type}")
        codes, real, bag = list[int](), list[int](), False
        within: dict[str, Group] = {}
        for name in names:
            at = fitting.groups[name]
            last_code, last_real = len(codes) + len(at.codes), len(real) + len(at.real)
            within[name] = Group(tuple(range(len(codes), last_code)), tuple(range(len(real), last_real)), at.bag)
            codes += at.codes
            real += at.real
            bag = bag or at.bag
        group = Group(tuple(codes), tuple(real), bag)
        return cls(group, replace(fitting, groups=within).kernel(config, inputs.columns(group)))

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.kernel.diagonal(inputs.columns(self.group))

    def to_dict(self) -> dict[str, Any]:
        codes, real = list(self.group.codes), list(self.group.real)
        return {"codes": codes, "real": real, "bag": self.group.bag, "kernel": self.kernel.to_dict()}

    @classmethod
    def from_dict(cls, values: Any, like: Inputs, depth: int) -> Part:
        from .inputs import Group

        if not isinstance(values, dict) or values.keys() != {"codes", "real", "bag", "kernel"}:
            raise ValueError("kernel part")
        sides = [values[name] for name in ("codes", "real")]
        if not all(isinstance(side, list) for side in sides) or not isinstance(values["bag"], bool):
            raise ValueError("kernel part")
        codes, real = (tuple(stored_value(Whole(0), column) for column in side) for side in sides)
        group = Group(codes, real, values["bag"])
        # Columns that the inputs have, each named once.
        for columns, count in ((codes, like.codes.shape[1]), (real, like.real.shape[1])):
            if len(set(columns)) < len(columns) or max(columns, default=-1) >= count:
                raise ValueError("kernel part")
        if group.bag and like.bag is None:
            raise ValueError("kernel part")
        return cls(group, kernel_from_dict(values["kernel"], like.columns(group), depth))


@dataclass(frozen=True)
class CompositeKernel(Kernel):
    """Kernels of parts of the columns, put together."""

    parts: tuple[Part, ...] = fitted(tuple)

    composite: ClassVar[bool] = True

    @classmethod
    def has_array_form(cls) -> bool:
        return True

    def prepared(self, pivots: Inputs, dtype: np.dtype) -> Prepared:
        # One kernel after the other, on columns of its own, while the block is in cache.
        parts = [(part.group, part.kernel.prepared(pivots.columns(part.group), dtype)) for part in self.parts]

        def against(rows: Inputs) -> Fill:
            fills = [prepared(rows.columns(group)) for group, prepared in parts]
            return lambda part, out: self.put_together(fills, part, out, np)

        return against

    def value_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        # Relative errors of factors add up; those of summands are no more than the largest.
        errors = (
            part.kernel.value_errors(inputs.columns(part.group), pivots.columns(part.group)) for part in self.parts
        )
        return sum(errors, np.zeros(len(inputs)))

    def relative_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray | None:
        # By Cauchy's inequality a sum of roots is at most the root of the product of sums.
        total = np.zeros(len(inputs))
        for part in self.parts:
            rows, others = inputs.columns(part.group), pivots.columns(part.group)
            errors = part.kernel.relative_errors(rows, others)
            if errors is None:
                return None
            total += errors
        return total

    @abstractmethod
    def put_together(self, fills: list[Fill], part: slice, out: Array, xp: ModuleType) -> None:
        """Write kernel values of some of the rows; `fills` write those of the parts, in arrays of numpy or torch."""

    @classmethod
    def _stored(cls, name: str, stored: Any, like: Inputs, depth: int) -> Any:
        if name != "parts":
            return super()._stored(name, stored, like, depth)
        if not isinstance(stored, list) or not stored:
            raise ValueError("kernel parts")
        return tuple(Part.from_dict(value, like, depth + 1) for value in stored)


def _numbers(values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list):
        raise ValueError("kernel weights")
    return tuple(map(Number(0), values))


@dataclass(frozen=True)
class SumKernel(CompositeKernel):
    weights: tuple[float, ...] = fitted(_numbers)

    type: ClassVar[str] = "sum"
    weighs_parts: ClassVar[bool] = True

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        weights = tuple(part.weight for part in config.parts)
        kernel = cls(tuple(Part.fit(part, inputs, fitting) for part in config.parts), weights)
        if kernel.linear:
            return kernel
        mean = mean_diagonal(kernel, inputs)
        return replace(kernel, weights=tuple(weight / mean for weight in weights))

    @property
    def linear(self) -> bool:
        return all(part.kernel.linear for part in self.parts)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        parts = (weight * part.diagonal(inputs) for weight, part in zip(self.weights, self.parts, strict=True))
        return sum(parts, np.zeros(len(inputs)))

    def put_together(self, fills: list[Fill], part: slice, out: Array, xp: ModuleType) -> None:
        fills[0](part, out)
        out *= self.weights[0]
        other = xp.empty_like(out)
        for weight, fill in zip(self.weights[1:], fills[1:], strict=True):
            fill(part, other)
            other *= weight
            out += other

    def why_not(self, inputs: Inputs) -> str | None:
        return None if len(self.weights) == len(self.parts) else "kernel weights"


@dataclass(frozen=True)
class ProductKernel(CompositeKernel):
    scale: float = fitted(Number(0))

    type: ClassVar[str] = "product"

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        kernel = cls(tuple(Part.fit(part, inputs, fitting) for part in config.parts), 1.0)
        return replace(kernel, scale=1.0 / mean_diagonal(kernel, inputs))

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.scale * np.prod([part.diagonal(inputs) for part in self.parts], axis=0)

    def put_together(self, fills: list[Fill], part: slice, out: Array, xp: ModuleType) -> None:
        fills[0](part, out)
        out *= self.scale
        other = xp.empty_like(out)
        for fill in fills[1:]:
            fill(part, other)
            out *= other


@dataclass(frozen=True)
class CosineKernel(Kernel):
    kernel: Kernel = field(metadata={"kind": dict})

    type: ClassVar[str] = "cosine"
    configured: ClassVar[bool] = False

    @classmethod
    def has_array_form(cls) -> bool:
        return True

    def roots(self, inputs: Inputs, dtype: np.dtype) -> np.ndarray:
        """Return 1 / sqrt(k(x, x)) of rows as factors of values, finite: zero times infinity would be no number."""
        return np.minimum(inverse_roots(self.kernel.diagonal(inputs)), np.finfo(dtype).max).astype(dtype)

    def divided(self, inner: Fill, roots: Array, pivot_roots: Array) -> Fill:
        """Return a function that writes the kernel's values, from one that writes those of the kernel inside."""

        def fill(part: slice, out: Array) -> None:
            inner(part, out)
            out *= roots[part][:, None]
            out *= pivot_roots

        return fill

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.where(self.kernel.diagonal(inputs) > 0, 1.0, 0.0)

    def value_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        own, others = self.kernel.diagonal(inputs), self.kernel.diagonal(pivots)
        # Errors are a part of the largest k(x, x) of a row and the pivots: over roots of two.
        largest = np.maximum(own, others.max(initial=0.0))
        ratios = largest * inverse_roots(own) * inverse_roots(others).max(initial=0.0)
        errors = self.kernel.value_errors(inputs, pivots) * np.maximum(ratios, 1.0)
        relative = self.kernel.relative_errors(inputs, pivots)
        if relative is None or (others[others > 0] < SMALLEST_DIAGONAL).any():
            return errors
        return np.where(own < SMALLEST_DIAGONAL, errors, np.minimum(errors, relative + VALUE_ERROR))

    def relative_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        return self.value_errors(inputs, pivots)

    def prepared(self, pivots: Inputs, dtype: np.dtype) -> Prepared:
        inner, roots = self.kernel.prepared(pivots, dtype), self.roots(pivots, dtype)
        return lambda rows: self.divided(inner(rows), self.roots(rows, roots.dtype), roots)

    @classmethod
    def _stored(cls, name: str, stored: Any, like: Inputs, depth: int) -> Any:
        return kernel_from_dict(stored, like, depth + 1)


def inverse_roots(diagonal: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(d) of each d, and zero for zero."""
    above = diagonal > 0
    return np.where(above, 1.0 / np.sqrt(np.where(above, diagonal, 1.0)), 0.0)
