"""Blocks of kernel values computed on a device, from inputs that are there.

A kernel of the toolkit has a form here with the arithmetic of `kernels.gram_blocks`: inner products of real columns by
a matrix product, matches of codes column by column, attributes as a sparse product, and the function of them. For any
other kernel, one of a plugin, `laid_out` says so with None: its values come from the CPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..kernels import (
    CosineKernel,
    ImageKernel,
    Inputs,
    Kernel,
    LinearKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
)
from ..system import ranges
from .backend import DOUBLE, Array, Backend

PICTURES_AT_ONCE = 4096
NO_CODE = -1
# Squared lengths, times gamma, from which on single precision rounds exponents by more than a thousandth.
ROUGH = 1e4
# What pictures look like to kernels, by backend.
KNOWN_PICTURES: weakref.WeakKeyDictionary[Backend, dict[tuple[int, Any], tuple[np.ndarray, Any]]] = (
    weakref.WeakKeyDictionary()
)


class DeviceKernel(Protocol):
    """A kernel whose values a device computes."""

    def frame(self, inputs: Inputs) -> Any:
        """What both sides of blocks have to agree on, out of pivots or of all inputs."""

    def pivots(self, inputs: Inputs, frame: Any) -> Any:
        """Pivots laid out there."""

    def rows(self, inputs: Inputs, frame: Any) -> Any:
        """Rows laid out there."""

    def block(self, rows: Any, part: slice, pivots: Any) -> Array:
        """k(rows[part], pivots), [n, M]."""


def laid_out(kernel: Kernel, dtype: np.dtype, backend: Backend) -> DeviceKernel | None:
    """The form of a kernel on a device; None where there is none."""
    maker = MAKERS.get(type(kernel))
    return None if maker is None else maker(kernel, np.dtype(dtype), backend)


class _Inner:
    """Functions of inner products and squared lengths."""

    def __init__(self, kernel: Any, dtype: np.dtype, backend: Backend):
        self._kernel, self._backend, self._dtype = kernel, backend, dtype

    def _seen(self, inputs: Inputs) -> Inputs:
        return self._kernel.seen_by(inputs)

    def frame(self, inputs: Inputs) -> _Frame:
        inputs = self._seen(inputs)
        middle = inputs.real.mean(axis=0) if self._kernel.of_distances and len(inputs) else None
        return _Frame(middle, None if inputs.bag is None else np.unique(inputs.bag.indices))

    def rows(self, inputs: Inputs, frame: _Frame) -> _Rows:
        inputs = self._seen(inputs)
        if frame.middle is not None:
            inputs = replace(inputs, real=inputs.real - frame.middle)
        exact = self._kernel.of_distances and inputs.bag is not None
        return _Rows(inputs, frame.columns, DOUBLE if exact else self._dtype, self._backend)

    def pivots(self, inputs: Inputs, frame: _Frame) -> _Pivots:
        return _Pivots(self.rows(inputs, frame), self._backend)

    def block(self, rows: _Rows, part: slice, pivots: _Pivots) -> Array:
        found = rows.real[part] @ pivots.laid.real.T
        if rows.codes or pivots.bag is not None:
            found = found + self._others(rows, part, pivots)
        return self._backend.cast(self._applied(found), self._dtype)

    def _others(self, rows: _Rows, part: slice, pivots: _Pivots) -> Array:
        """Inner products of codes and attributes."""
        backend, found = self._backend, None
        for own, theirs in zip(rows.codes, pivots.laid.codes, strict=True):
            equal = backend.equal_pairs(own[part], theirs, rows.dtype)
            found = equal if found is None else found + equal
        if pivots.bag is not None:
            products = backend.sparse_product(rows.sparse(part), pivots.bag)
            found = products if found is None else found + products
        return found

    def _applied(self, products: Array) -> Array:
        """Kernel values of inner products."""
        return products


class _Polynomial(_Inner):
    def _applied(self, products: Array) -> Array:
        kernel = self._kernel
        root = kernel.scale ** (1 / kernel.degree)
        base = products * (root * kernel.gamma) + root * kernel.coef0
        found = base
        for _ in range(kernel.degree - 1):
            found = found * base
        return found


class _Distances(_Inner):
    """exp(-gamma |x - x'|^2). Squared lengths go into the matrix product, as two more columns on each side."""

    def rows(self, inputs: Inputs, frame: _Frame) -> _Rows:
        found, gamma = super().rows(inputs, frame), self._kernel.gamma
        ones, norms = found.norms[:, None] * 0 + 1, found.norms[:, None] * -gamma
        found.wide = self._backend.together([found.real * (2 * gamma), norms, ones], 1)
        found.rough = len(inputs) > 0 and gamma * float(self._backend.largest(found.norms)) > ROUGH
        return found

    def pivots(self, inputs: Inputs, frame: _Frame) -> _Pivots:
        found = super().pivots(inputs, frame)
        laid = found.laid
        ones, norms = laid.norms[:, None] * 0 + 1, laid.norms[:, None] * -self._kernel.gamma
        laid.wide = self._backend.together([laid.real, ones, norms], 1)
        return found

    def block(self, rows: _Rows, part: slice, pivots: _Pivots) -> Array:
        found = rows.wide[part] @ pivots.laid.wide.T
        if rows.codes or pivots.bag is not None:
            found = found + self._others(rows, part, pivots) * (2 * self._kernel.gamma)
        return self._backend.cast(self._backend.clipped_exp(found, rows.rough or pivots.laid.rough), self._dtype)


class _Image(_Distances):
    """Neighbourhoods of pictures are worked out on the device, too, once for as long as the pictures live."""

    def _seen(self, inputs: Inputs) -> Inputs:
        known, key = KNOWN_PICTURES.setdefault(self._backend, {}), (id(inputs.real), self._kernel.picture)
        if key not in known:
            gone = weakref.ref(inputs.real, lambda _: known.pop(key, None))
            known[key] = self._worked_out(inputs), gone
        return replace(inputs, real=known[key][0])

    def _worked_out(self, inputs: Inputs) -> np.ndarray:
        """[N, width]"""
        backend, picture = self._backend, self._kernel.picture
        down, across = (backend.array(each) for each in picture.pools)
        H, W = picture.shape
        found = []
        for part in ranges(len(inputs), PICTURES_AT_ONCE):
            pixels = backend.array(inputs.real[part], DOUBLE).reshape(-1, H, W)
            pools = []
            for dy, dx in picture.offsets.tolist():
                first, last = max(0, -dx), min(W, W - dx)
                values = pixels[:, : H - dy, first:last]
                if dy or dx:
                    values = values * pixels[:, dy:, first + dx : last + dx]
                pooled = down[: H - dy].T @ (values @ across[first:last])
                pools.append(pooled.reshape(len(pixels), -1))
            sums = backend.together(pools, 1)
            found.append(backend.numpy(backend.sign(sums) * backend.sqrt(abs(sums))))
        width = len(picture.offsets) * down.shape[1] * across.shape[1]
        return np.concatenate([*found, np.zeros((0, width))])


class _Parts:
    """Kernels of some of the columns, put together."""

    def __init__(self, kernel: Any, dtype: np.dtype, backend: Backend):
        self._kernel, self._dtype = kernel, dtype
        self._parts = [laid_out(part.kernel, dtype, backend) for part in kernel.parts]

    def frame(self, inputs: Inputs) -> list[Any]:
        parts = zip(self._parts, self._kernel.parts, strict=True)
        return [own.frame(inputs.columns(part.group)) for own, part in parts]

    def pivots(self, inputs: Inputs, frame: list[Any]) -> list[Any]:
        parts = zip(self._parts, self._kernel.parts, frame, strict=True)
        return [own.pivots(inputs.columns(part.group), shared) for own, part, shared in parts]

    def rows(self, inputs: Inputs, frame: list[Any]) -> list[Any]:
        parts = zip(self._parts, self._kernel.parts, frame, strict=True)
        return [own.rows(inputs.columns(part.group), shared) for own, part, shared in parts]

    def _blocks(self, rows: list[Any], part: slice, pivots: list[Any]) -> list[Array]:
        return [own.block(*each) for own, *each in zip(self._parts, rows, [part] * len(rows), pivots, strict=True)]


class _Sum(_Parts):
    def block(self, rows: list[Any], part: slice, pivots: list[Any]) -> Array:
        total = None
        for weight, values in zip(self._kernel.weights, self._blocks(rows, part, pivots), strict=True):
            total = values * weight if total is None else total + values * weight
        return total


class _Product(_Parts):
    def block(self, rows: list[Any], part: slice, pivots: list[Any]) -> Array:
        first, *others = self._blocks(rows, part, pivots)
        total = first * self._kernel.scale
        for values in others:
            total = total * values
        return total


class _Cosine:
    """Another kernel's values, divided by the roots of its diagonal."""

    def __init__(self, kernel: Any, dtype: np.dtype, backend: Backend):
        self._kernel, self._dtype, self._backend = kernel, dtype, backend
        self._inner = laid_out(kernel.kernel, dtype, backend)

    def _roots(self, inputs: Inputs) -> Array:
        roots = np.minimum(self._kernel.inverse_roots(inputs), np.finfo(self._dtype).max)
        return self._backend.array(roots, self._dtype)

    def frame(self, inputs: Inputs) -> Any:
        return self._inner.frame(inputs)

    def pivots(self, inputs: Inputs, frame: Any) -> tuple[Any, Array]:
        return self._inner.pivots(inputs, frame), self._roots(inputs)

    def rows(self, inputs: Inputs, frame: Any) -> tuple[Any, Array]:
        return self._inner.rows(inputs, frame), self._roots(inputs)

    def block(self, rows: tuple[Any, Array], part: slice, pivots: tuple[Any, Array]) -> Array:
        values = self._inner.block(rows[0], part, pivots[0])
        return values * rows[1][part][:, None] * pivots[1][None, :]


@dataclass(frozen=True)
class _Frame:
    """Where real columns are taken from, and which attributes count."""

    middle: np.ndarray | None
    columns: np.ndarray | None


class _Rows:
    """Real columns, codes by column, attributes and squared lengths of rows on a device."""

    def __init__(self, inputs: Inputs, columns: np.ndarray | None, dtype: np.dtype, backend: Backend):
        self.dtype, self._backend = dtype, backend
        self.norms = backend.array(inputs.squared_norms(), dtype)
        self.real = backend.array(inputs.real, dtype)
        codes = np.where(inputs.codes < 0, NO_CODE, inputs.codes)
        self.codes = [backend.array(np.ascontiguousarray(column), np.dtype(np.int32)) for column in codes.T]
        self.bag = None if columns is None else inputs.bag[:, columns].tocsr()
        self.wide: Array | None = None  # real columns and squared lengths, as a kernel of distances wants them
        self._sparse: dict[tuple[int | None, int | None], Any] = {}

    def sparse(self, part: slice) -> Any:
        """Attributes of some rows; they stay there, for the same rows are asked for again."""
        key = (part.start, part.stop)
        if key not in self._sparse:
            own = self.bag[part]
            self._sparse[key] = self._backend.sparse(own.indptr, own.indices, own.data, own.shape[1], self.dtype)
        return self._sparse[key]


class _Pivots:
    """Pivots laid out for functions of inner products."""

    def __init__(self, laid: _Rows, backend: Backend):
        self.laid = laid
        # A code that equals no other has another number on each side.
        laid.codes = [backend.where(column < 0, column + NO_CODE, column) for column in laid.codes]
        self.bag = None
        if laid.bag is not None:
            self.bag = backend.array(np.ascontiguousarray(laid.bag.toarray().T), laid.dtype)


def _of_parts(maker: Callable[..., Any]) -> Callable[..., Any]:
    def make(kernel: Any, dtype: np.dtype, backend: Backend) -> Any:
        made = maker(kernel, dtype, backend)
        return None if None in made._parts else made

    return make


def _cosine(kernel: Any, dtype: np.dtype, backend: Backend) -> _Cosine | None:
    made = _Cosine(kernel, dtype, backend)
    return None if made._inner is None else made


MAKERS: dict[type[Kernel], Callable[..., Any]] = {
    LinearKernel: _Inner,
    PolynomialKernel: _Polynomial,
    RBFKernel: _Distances,
    ImageKernel: _Image,
    SumKernel: _of_parts(_Sum),
    ProductKernel: _of_parts(_Product),
    CosineKernel: _cosine,
}
