"""Choosing pivots on a device: the factorisation K ~= G G^T of `maps.factorisation`, with G and all products there.

What is left at each position, the proposals and the small triangles among them are looked at in this process, as the
methods of `maps.pivots` do; they are a few kilobytes for each block of pivots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import Inputs, Kernel
from ..maps import FLOORS, Basis, independent_pivots, truncated
from ..system import DOUBLE, Array, Backend, Workers, linear_algebra, ranges
from .kernel_blocks import DeviceKernel
from .place import ArrayPlace

ROWS_AT_ONCE = 1 << 14
BLOCKS_OF_A_GROUP = 16  # of pivots
EVERY = slice(None)


@dataclass(frozen=True, eq=False)
class _Maker:
    """How columns of K - G G^T at some positions come about."""

    pivots: Any  # laid out on the device
    mine: Array  # [m, c] their rows of G, transposed


@dataclass(frozen=True, eq=False)
class DeviceCandidates:
    """The members of `maps.Candidates`, with rows of G on the device."""

    rows: np.ndarray  # [c]
    there: Array  # [m, c] float64, their rows of G, transposed
    left: np.ndarray  # [c, c]
    backend: Backend

    @property
    def mine(self) -> np.ndarray:
        return self.backend.numpy(self.there).T

    def take(self, which: np.ndarray) -> DeviceCandidates:
        there = self.backend.rows(self.there.T, self.backend.array(which.astype(np.int64))).T
        return DeviceCandidates(self.rows[which], there, self.left[np.ix_(which, which)], self.backend)


@dataclass(frozen=True, eq=False)
class DeviceColumns:
    """Columns at all positions."""

    maker: _Maker
    values: np.ndarray  # [N, c]
    there: Array  # the same


@dataclass(frozen=True, eq=False)
class _Appended:
    """How a block of columns of G comes from those before it."""

    maker: _Maker
    picked: Array | None  # which of the columns became pivots; None for all
    inverse: Array  # [b, b] L^-T


class DeviceFactorisation:
    """G, d and what was chosen so far; it has the members that methods to choose pivots use."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        size: int,
        workers: Workers,
        dtype: np.dtype,
        progress: Callable[[int, int], None] | None,
        enough: float,
        place: ArrayPlace,
        forms: tuple[DeviceKernel, DeviceKernel],  # of the kernel, in the precision of G and in double
    ):
        self.inputs, self.kernel, self.size, self.workers, self.dtype = inputs, kernel, size, workers, np.dtype(dtype)
        self._enough, self._progress, self._place, self._backend = enough, progress, place, place.backend
        self.diagonal = kernel.diagonal(inputs)  # [N]
        self.residual = self.diagonal.copy()  # [N]
        self.floor = FLOORS[self.dtype] * float(self.diagonal.mean())
        self.chosen: list[int] = []
        self.curve = [float(self.diagonal.sum())]
        self._form, self._exact = forms
        self._frame = self._form.frame(inputs)
        self._rows = self._form.rows(inputs, self._frame)
        # Rows of pivots in double precision: in groups, and those since as they were added.
        self._groups: list[Any] = []
        self._newest: list[Any] = []
        self._grouped = 0
        self._triangle = self._backend.zeros((size, size))
        place.memory.spend(self, 8 * size * size)
        self._in_double = True
        self._blocks: list[_Appended] = []
        self._parts = ranges(len(inputs), ROWS_AT_ONCE)
        self._G: Array | None = None

    def done(self) -> bool:
        return len(self.chosen) >= self.size or self.curve[-1] <= self._enough * self.curve[0]

    def candidates(self, rows: np.ndarray) -> DeviceCandidates:
        """What is left among some positions."""
        part, m, backend = self.inputs.take(rows), len(self.chosen), self._backend
        own = self._exact.pivots(part, self._frame)
        left = self._exact.block(self._exact.rows(part, self._frame), EVERY, own)
        if not m:
            return DeviceCandidates(rows, backend.zeros((0, len(rows))), np.array(backend.numpy(left)), backend)
        before = [*self._groups, *self._newest]
        cross = backend.xp.concatenate([self._exact.block(each, EVERY, own) for each in before])  # [m, c]
        mine = backend.solve_lower(self._triangle[:m, :m], cross)
        left = left - mine.T @ mine
        return DeviceCandidates(rows, mine, np.array(backend.numpy(left)), backend)

    def _maker(self, candidates: DeviceCandidates) -> _Maker:
        own = self._form.pivots(self.inputs.take(candidates.rows), self._frame)
        return _Maker(own, self._backend.cast(candidates.there, self.dtype))

    def _columns(self, maker: _Maker, part: slice, G: Array) -> Array:
        """K - G G^T at some rows, whose G is given."""
        found = self._form.block(self._rows, part, maker.pivots)
        return found - G[:, : len(maker.mine)] @ maker.mine if len(maker.mine) else found

    def columns(self, candidates: DeviceCandidates) -> DeviceColumns:
        """Columns of K - G G^T at all positions."""
        maker = self._maker(candidates)
        with self._place.watched():
            there = self._backend.xp.concatenate(
                [self._columns(maker, part, self._rows_of(part)) for part in self._parts]
            )
        return DeviceColumns(maker, self._backend.numpy(there), there)

    def append(
        self,
        candidates: DeviceCandidates,
        triangle: np.ndarray,  # [b, b] Cholesky factor of what is left among those that become pivots
        picked: np.ndarray | None = None,  # which they are; None for all
        known: DeviceColumns | None = None,  # columns of the candidates, where the triangle was found from them
    ) -> None:
        """Take candidates as pivots."""
        backend, chosen = self._backend, candidates if picked is None else candidates.take(picked)
        self._in_double &= known is None
        maker = self._maker(candidates) if known is None else known.maker
        m, b = len(self.chosen), len(chosen.rows)
        inverse = linear_algebra.solve_triangular(triangle, np.eye(b), lower=True).T
        which = None if picked is None else backend.array(np.asarray(picked, dtype=np.int64))
        block = _Appended(maker, which, backend.array(np.ascontiguousarray(inverse), self.dtype))
        with self._place.watched():
            G = self._open()
            gains, taken = backend.zeros((b,)), []
            for part in self._parts:
                given = self._columns(maker, part, self._rows_of(part)) if known is None else known.there[part]
                new = self._of(block, given)
                if part.stop <= len(G):
                    G[part, m : m + b] = new
                squares = backend.cast(new, DOUBLE)
                squares = squares * squares
                taken.append(squares.sum(1))
                gains = gains + squares.sum(0)
            self.residual -= backend.numpy(backend.xp.concatenate(taken))
            if m:
                self._triangle[m : m + b, :m] = chosen.there.T
            self._triangle[m : m + b, m : m + b] = backend.array(np.ascontiguousarray(triangle), DOUBLE)
            self.chosen.extend(chosen.rows.tolist())
            self._lay_out(chosen.rows)
        if len(G) < len(self.inputs):
            self._blocks.append(block)
        self.residual[self.chosen] = 0.0
        np.maximum(self.residual, 0.0, out=self.residual)
        for gain in backend.numpy(gains).tolist():
            self.curve.append(max(self.curve[-1] - gain, 0.0))
        if self._progress is not None:
            self._progress(len(self.chosen), self.size)

    def _lay_out(self, rows: np.ndarray) -> None:
        """New pivots, for blocks with them; many small blocks take longer than a few large ones."""
        self._newest.append(self._exact.rows(self.inputs.take(rows), self._frame))
        if len(self._newest) == BLOCKS_OF_A_GROUP:
            several = np.array(self.chosen[self._grouped :], dtype=np.int64)
            self._groups.append(self._exact.rows(self.inputs.take(several), self._frame))
            self._newest, self._grouped = [], len(self.chosen)

    def _of(self, block: _Appended, columns: Array) -> Array:
        if block.picked is not None:
            columns = self._backend.rows(columns.T, block.picked).T
        return columns @ block.inverse

    def _open(self) -> Array:
        """The rows of G that are held, as many as fit."""
        if self._G is None:
            row = max(self.size, 1) * self.dtype.itemsize
            held = self._place.memory.reserve(self, len(self.inputs) * row, ROWS_AT_ONCE * row) // row
            self._G = self._backend.empty((held, self.size), self.dtype)
        return self._G

    def _rows_of(self, part: slice) -> Array:
        """Rows of G as far as there are columns, worked out again where they are not held."""
        m = len(self.chosen)
        if m and part.stop <= len(self._G):
            return self._G[part, :m]
        parts = []
        for block in self._blocks:
            before = self._backend.xp.concatenate(parts, 1) if parts else self._backend.zeros((0, 0), self.dtype)
            parts.append(self._of(block, self._columns(block.maker, part, before)))
        if not parts:
            return self._backend.zeros((part.stop - part.start, 0), self.dtype)
        return self._backend.xp.concatenate(parts, 1)

    def error_products(self, candidates: DeviceCandidates, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """K_BN m of some candidates [b, C] and G^T m [M, C] for errors m [N, C], summed in double precision."""
        backend, maker = self._backend, self._maker(candidates)
        there, C = backend.array(errors, self.dtype), errors.shape[1]
        whole, inside = backend.zeros((len(candidates.rows), C)), backend.zeros((len(self.chosen), C))
        with self._place.watched():
            for part in self._parts:
                values = self._form.block(self._rows, part, maker.pivots)
                whole = whole + backend.cast(values.T @ there[part], DOUBLE)
                inside = inside + backend.cast(self._rows_of(part).T @ there[part], DOUBLE)
        return backend.numpy(whole), backend.numpy(inside)

    def basis(self) -> Basis:
        """What was chosen, less pivots that are a mixture of others as double precision sees it. It ends the work."""
        backend, rows = self._backend, np.array(self.chosen, dtype=np.int64)
        needed = int(np.searchsorted(-np.array(self.curve), -self._enough * self.curve[0]))
        residual = self.residual.copy()
        if needed < len(rows):
            for part in self._parts:
                surplus = backend.cast(self._rows_of(part)[:, needed:], DOUBLE)
                residual[part] += backend.numpy((surplus * surplus).sum(1))
        self._G = self._triangle = None
        kept = np.arange(len(rows)) if self._in_double else self._independent(rows)
        return truncated(rows, residual, self.curve, kept[kept < needed])

    def _independent(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of pivots that are no mixture of those before them."""
        part = self.inputs.take(rows)
        own = self._exact.pivots(part, self._frame)
        factor = self._backend.cholesky(self._exact.block(self._exact.rows(part, self._frame), EVERY, own))
        if factor is not None:
            diagonal = np.diagonal(self._backend.numpy(factor))
            if (diagonal**2 > self.floor).all():
                return np.arange(len(rows))
        return independent_pivots(self.kernel, part, self.floor, self.workers)
