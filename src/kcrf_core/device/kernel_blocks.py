"""Blocks of kernel values computed on a device, from inputs that are there.

Formulas are those of the kernels (`InnerProductKernel.coefficients` and `function`, `put_together` of composite ones);
this module lays inputs out for them. Values are functions of v = a <x, x'> + b (|x|^2 + |x'|^2) + c: one matrix product
gives v of real columns, with squared lengths as two more columns on each side; matches of codes are added column by
column, attributes as a sparse product. Values of a kernel without such a formula are computed on the CPU.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from .._lazy import cached_property
from ..kernels import CompositeKernel, CosineKernel, Fill, InnerProductKernel, Inputs, Kernel
from ..system import DOUBLE, Array, Backend

if TYPE_CHECKING:
    import scipy.sparse

NO_CODE = -1
# Inputs as kernels see them where that takes work, by backend.
KNOWN_INPUTS: weakref.WeakKeyDictionary[Backend, dict[tuple[int, Kernel], tuple[np.ndarray, object]]] = (
    weakref.WeakKeyDictionary()
)

Frame = TypeVar("Frame")  # shared by both sides of blocks, made of pivots or of all inputs
Side = TypeVar("Side")  # inputs laid out on the device, as rows or as pivots


class DeviceKernel(ABC, Generic[Frame, Side]):
    """A kernel whose values a device computes."""

    def __init__(self, dtype: np.dtype, backend: Backend):
        self._dtype, self._backend = np.dtype(dtype), backend

    @abstractmethod
    def frame(self, inputs: Inputs) -> Frame: ...

    @abstractmethod
    def side(self, inputs: Inputs, frame: Frame, pivots: bool = False) -> Side:
        """Lay inputs out, as rows or as pivots."""

    @abstractmethod
    def count(self, side: Side) -> int:
        """Count the inputs that are laid out."""

    @abstractmethod
    def against(self, rows: Side, pivots: Side) -> Fill:
        """Return a function that writes k(rows[part], pivots) into an array [n, M]."""

    def block(self, rows: Side, part: slice, pivots: Side) -> Array:
        """Return k(rows[part], pivots), [n, M]."""
        n = len(range(*part.indices(self.count(rows))))
        out = self._backend.empty((n, self.count(pivots)), self._dtype)
        self.against(rows, pivots)(part, out)
        return out


def laid_out(kernel: Kernel, dtype: np.dtype, backend: Backend) -> DeviceKernel[Any, Any] | None:
    """Return the form of a kernel on a device; None where there is none."""
    if isinstance(kernel, InnerProductKernel):
        return _Inner(kernel, dtype, backend) if kernel.has_array_form() else None
    if isinstance(kernel, CosineKernel):
        inner = laid_out(kernel.kernel, dtype, backend)
        return None if inner is None else _Cosine(kernel, inner, dtype, backend)
    if isinstance(kernel, CompositeKernel):
        parts = [laid_out(part.kernel, dtype, backend) for part in kernel.parts]
        known = [part for part in parts if part is not None]
        return _Parts(kernel, known, dtype, backend) if len(known) == len(parts) else None
    return None


class _Frame(NamedTuple):
    """Origin of real columns, and the attributes that count."""

    middle: np.ndarray | None
    columns: np.ndarray | None


class _Laid:
    """Real columns with squared lengths, codes by column, and attributes of inputs on a device."""

    def __init__(self, real: Array, inputs: Inputs, no_code: int, columns: np.ndarray | None, backend: Backend):
        self.real, self.dtype, self._backend, self.count = real, backend.dtype(real), backend, len(inputs)
        codes = np.where(inputs.codes < 0, no_code, inputs.codes)
        self.codes = [backend.array(np.ascontiguousarray(column), np.dtype(np.int32)) for column in codes.T]
        self._bag: scipy.sparse.csr_array | None = None if columns is None else inputs.own_bag[:, columns].tocsr()
        self._sparse: dict[tuple[int | None, int | None], Any] = {}

    @cached_property
    def bag(self) -> Array | None:
        """Attributes of all inputs, transposed."""
        bag = self._bag
        return None if bag is None else self._backend.array(np.ascontiguousarray(bag.toarray().T), self.dtype)

    def sparse(self, part: slice) -> Any:
        """Return attributes of some rows; they stay there, for the same rows are asked for again."""
        key = (part.start, part.stop)
        if key not in self._sparse:
            assert self._bag is not None
            own = self._bag[part]
            self._sparse[key] = self._backend.sparse(own.indptr, own.indices, own.data, own.shape[1], self.dtype)
        return self._sparse[key]


class _Inner(DeviceKernel[_Frame, _Laid]):
    """Functions of inner products and squared lengths."""

    def __init__(self, kernel: InnerProductKernel, dtype: np.dtype, backend: Backend):
        super().__init__(dtype, backend)
        self._kernel, self._coefficients = kernel, kernel.coefficients()

    def _seen(self, inputs: Inputs) -> Inputs:
        """Return inputs as the kernel sees them; what takes work is done once for as long as they live."""
        known, key = KNOWN_INPUTS.setdefault(self._backend, {}), (id(inputs.real), self._kernel)
        if key in known:
            return replace(inputs, real=known[key][0])
        seen = self._kernel.seen_on(inputs, self._backend)
        if seen.real is not inputs.real:
            known[key] = seen.real, weakref.ref(inputs.real, lambda _: known.pop(key, None))
        return seen

    def frame(self, inputs: Inputs) -> _Frame:
        inputs = self._seen(inputs)
        middle = inputs.real.mean(axis=0) if self._kernel.of_distances and len(inputs) else None
        return _Frame(middle, None if inputs.bag is None else np.unique(inputs.bag.indices))

    def side(self, inputs: Inputs, frame: _Frame, pivots: bool = False) -> _Laid:
        """Lay out real columns from the middle of all, with b times their squared lengths."""
        inputs = self._seen(inputs)
        if frame.middle is not None:
            inputs = replace(inputs, real=inputs.real - frame.middle)
        dtype = DOUBLE if self._kernel.of_distances and inputs.bag is not None else self._dtype
        (a, b, c), concatenate = self._coefficients, self._backend.xp.concatenate
        real, norms = (self._backend.array(each, dtype) for each in (inputs.real, b * inputs.squared_norms()[:, None]))
        ones = norms * 0 + 1
        wide = concatenate([real, ones, norms], 1) if pivots else concatenate([real * a, norms + c, ones], 1)
        # A code that equals no other has another number on each side.
        return _Laid(wide, inputs, NO_CODE - pivots, frame.columns, self._backend)

    def count(self, side: _Laid) -> int:
        return side.count

    def against(self, rows: _Laid, pivots: _Laid) -> Fill:
        backend, kernel, a = self._backend, self._kernel, self._coefficients[0]

        def fill(part: slice, out: Array) -> None:
            block = out if rows.dtype == self._dtype else backend.empty(out.shape, rows.dtype)
            backend.xp.matmul(rows.real[part], pivots.real.T, out=block)
            for own, theirs in zip(rows.codes, pivots.codes, strict=True):
                block += backend.cast(own[part][:, None] == theirs[None, :], rows.dtype) * a
            if pivots.bag is not None:
                block += backend.sparse_product(rows.sparse(part), pivots.bag) * a
            kernel.function(block, backend.xp)
            if block is not out:
                out[:] = block

        return fill


class _Parts(DeviceKernel[Sequence[Any], Sequence[Any]]):
    """Kernels of some of the columns, put together."""

    def __init__(
        self, kernel: CompositeKernel, parts: Sequence[DeviceKernel[Any, Any]], dtype: np.dtype, backend: Backend
    ):
        super().__init__(dtype, backend)
        self._kernel, self._parts = kernel, list(zip(parts, (part.group for part in kernel.parts), strict=True))

    def frame(self, inputs: Inputs) -> list[Any]:
        return [own.frame(inputs.columns(group)) for own, group in self._parts]

    def side(self, inputs: Inputs, frame: Sequence[Any], pivots: bool = False) -> list[Any]:
        parts = zip(self._parts, frame, strict=True)
        return [own.side(inputs.columns(group), shared, pivots) for (own, group), shared in parts]

    def count(self, side: Sequence[Any]) -> int:
        return self._parts[0][0].count(side[0])

    def against(self, rows: Sequence[Any], pivots: Sequence[Any]) -> Fill:
        fills = [own.against(*sides) for (own, _), *sides in zip(self._parts, rows, pivots, strict=True)]
        return lambda part, out: self._kernel.put_together(fills, part, out, self._backend.xp)


class _Cosine(DeviceKernel[Any, tuple[Any, Array]]):
    """Another kernel's values, divided by the roots of its diagonal."""

    def __init__(self, kernel: CosineKernel, inner: DeviceKernel[Any, Any], dtype: np.dtype, backend: Backend):
        super().__init__(dtype, backend)
        self._kernel, self._inner = kernel, inner

    def frame(self, inputs: Inputs) -> Any:
        return self._inner.frame(inputs)

    def side(self, inputs: Inputs, frame: Any, pivots: bool = False) -> tuple[Any, Array]:
        roots = self._backend.array(self._kernel.roots(inputs, self._dtype), self._dtype)
        return self._inner.side(inputs, frame, pivots), roots

    def count(self, side: tuple[Any, Array]) -> int:
        return len(side[1])

    def against(self, rows: tuple[Any, Array], pivots: tuple[Any, Array]) -> Fill:
        return self._kernel.divided(self._inner.against(rows[0], pivots[0]), rows[1], pivots[1])
