"""Kernels on inputs, as small frozen values: `gram(A, B)` and `diagonal(A)`.

    linear    <x, x'>
    poly      scale (gamma <x, x'> + coef0)^degree
    rbf       exp(-gamma |x - x'|^2)

<x, x'> counts equal categorical values and adds the inner products of real columns and of attributes. Block
by block: BLAS for the dense part, matches and sparse products in Cython, the function of the inner product
while the block is in cache.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from . import _kernels
from .config import KernelConfig
from .dataset import Inputs
from .errors import ConfigError, NumericError

# Rows per block are chosen so that a block stays in the second-level cache.
BLOCK_BYTES = 1 << 20
# Where rows are to be steady, blocks are small: the last one of a request is filled up, which is work for nothing.
STEADY_VALUES, STEADY_GROUP = 1 << 16, 64


@dataclass(frozen=True)
class LinearKernel:
    type: ClassVar[str] = "linear"

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        """Turn inner products into kernel values, in place."""

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()


@dataclass(frozen=True)
class PolynomialKernel:
    degree: int
    gamma: float
    coef0: float
    scale: float

    type: ClassVar[str] = "poly"

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        # The scale goes inside the power: by itself it may be too small for single precision.
        root = self.scale ** (1 / self.degree)
        _kernels.polynomial(block, root * self.gamma, root * self.coef0, self.degree)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.scale * (self.gamma * inputs.squared_norms() + self.coef0) ** self.degree


@dataclass(frozen=True)
class RBFKernel:
    gamma: float

    type: ClassVar[str] = "rbf"

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        # -gamma (|x|^2 + |x'|^2 - 2 <x, x'>); rounding must not make a squared distance negative.
        block *= 2 * self.gamma
        block -= (self.gamma * row_norms).astype(block.dtype)[:, None]
        block -= (self.gamma * pivot_norms).astype(block.dtype)
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.ones(len(inputs))


Kernel = LinearKernel | PolynomialKernel | RBFKernel


def _compressed(matrix: scipy.sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr, indices and values in the types that the Cython core takes."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float64, copy=False)


class Pivots:
    """One side of Gram blocks, laid out for fast evaluation against many rows of the other side."""

    def __init__(
        self,
        inputs: Inputs,
        kernel: Kernel,
        dtype: np.dtype | type = np.float64,
        steady: bool = False,  # whether a row is to have the same bits in any company
    ):
        self.inputs, self.kernel, self.dtype, self.steady = inputs, kernel, np.dtype(dtype), steady
        # Distances are differences of large numbers where columns are far from zero: rbf takes real columns from
        # the middle of the pivots, and double precision where attributes, which cannot be moved, are among them.
        self._middle = inputs.real.mean(axis=0) if kernel.type == "rbf" and len(inputs) else None
        self._exact = kernel.type == "rbf" and inputs.bag is not None
        inputs = self._moved(inputs)
        self.norms = inputs.squared_norms()
        # [R, M], for steady rows with columns of zeros up to a whole group
        width = -(-len(inputs) // STEADY_GROUP) * STEADY_GROUP if steady else len(inputs)
        self._real = np.zeros((inputs.real.shape[1], width), dtype=np.float64 if self._exact else self.dtype)
        self._real[:, : len(inputs)] = inputs.real.T
        # Pivots know few of the values of a column: numbered among themselves they fit 16 bits, and a
        # value that no pivot has is skipped without a comparison.
        M, C = inputs.codes.shape
        small = np.int16 if max(M, C) < np.iinfo(np.int16).max else np.int32
        self._codes = np.full((C, M), -1, dtype=small)
        tables: list[np.ndarray] = []
        listed, sizes, first_list = [], [], []
        for c in range(C):
            column = inputs.codes[:, c]
            table = np.full(int(inputs.sizes[c]) + 1, -1, dtype=small)  # the last entry serves a pivot's code -1
            values = np.unique(column[column >= 0])
            table[values] = np.arange(len(values), dtype=small)
            self._codes[c] = table[column]
            tables.append(table)
            having = np.argsort(self._codes[c], kind="stable")
            listed.append(having[np.count_nonzero(column < 0) :])
            first_list.append(sum(map(len, sizes)))
            sizes.append(np.bincount(self._codes[c][column >= 0], minlength=len(values)))
        self._listed = np.concatenate([*listed, []]).astype(np.int32)
        self._list_ends = np.concatenate([[0], np.cumsum(np.concatenate([*sizes, []]))]).astype(np.int64)
        self._first_list = np.array(first_list, dtype=np.int64)
        self._numbers = np.concatenate([*tables, np.zeros(0, dtype=small)])
        self._first_number = np.cumsum([0, *map(len, tables)])[:-1].astype(np.int64)
        self._bag = None if inputs.bag is None else _compressed(inputs.bag.T.tocsr())

    def __len__(self) -> int:
        return len(self.norms)

    def _moved(self, inputs: Inputs) -> Inputs:
        return inputs if self._middle is None else replace(inputs, real=inputs.real - self._middle)

    def block_rows(self) -> int:
        """Rows that are worked on at a time."""
        if self.steady:
            groups = STEADY_VALUES // (STEADY_GROUP * max(len(self), 1))
            return STEADY_GROUP * min(max(groups, 1), 16)
        return max(16, BLOCK_BYTES // (self.dtype.itemsize * max(len(self), 1)))

    def gram(self, rows: Inputs, out: np.ndarray | None = None) -> np.ndarray:
        """k(rows, pivots), [n, M]. The GIL is released in the hot parts: give each thread rows of its own."""
        n, M = len(rows), len(self)
        if out is None:
            out = np.empty((n, M), dtype=self.dtype)
        rows = self._moved(rows)
        norms = rows.squared_norms()
        codes = np.ascontiguousarray(rows.codes, dtype=np.int32)
        # The core indexes without bounds checks, so nothing out of range may reach it.
        if codes.shape[1] != len(self._codes) or (codes.size and (codes.max(axis=0) >= self.inputs.sizes).any()):
            raise ValueError("rows do not have the columns of the pivots")
        counts = np.empty(M, dtype=self._codes.dtype)
        bag = None if rows.bag is None else _compressed(rows.bag)
        step = self.block_rows()
        for first in range(0, n, step):
            part = slice(first, min(first + step, n))
            target = out[part]
            block = np.empty(target.shape) if self._exact and out.dtype != np.float64 else target
            if self._real.shape[0]:
                self._multiply(rows.real[part].astype(block.dtype, copy=False), step, block)
            elif not len(self._codes):
                block.fill(0)
            if len(self._codes):
                _kernels.add_matches(
                    codes[part],
                    self._numbers,
                    self._first_number,
                    self._codes,
                    self._first_list,
                    self._list_ends,
                    self._listed,
                    counts,
                    not self._real.shape[0],
                    block,
                )
            if self._bag is not None:
                _kernels.add_sparse_products(*bag, *self._bag, first, block)
            self.kernel.apply(block, norms[part], self.norms)
            if block is not target:
                target[:] = block
        return out

    def _multiply(self, real: np.ndarray, step: int, out: np.ndarray) -> None:
        """Inner products of real columns.

        BLAS has other code for the last few rows and columns than for the others, and for small matrices: steady rows
        are multiplied `step` at a time with whole groups of pivots, zeros standing for those that are missing.
        """
        if not self.steady or (len(real) == step and self._real.shape[1] == len(self)):
            np.matmul(real, self._real, out=out)
        else:
            rows = np.zeros((step, real.shape[1]), dtype=real.dtype)
            rows[: len(real)] = real
            out[:] = np.matmul(rows, self._real)[: len(real), : len(self)]


def gram(kernel: Kernel, rows: Inputs, pivots: Inputs, dtype: np.dtype | type = np.float64) -> np.ndarray:
    """k(rows, pivots), [n, M]."""
    return Pivots(pivots, kernel, dtype).gram(rows)


# ----------------------------------------------------------------------------- automatic scales

MEDIAN_SAMPLE = 1000


def fit_kernel(config: KernelConfig, inputs: Inputs, seed: int) -> Kernel:
    """The kernel of a term with its scales fixed from training inputs (Remark 7).

    poly: gamma = 1 / mean |x|^2, and values divided by their mean diagonal. rbf: gamma = 1 / median of
    |x - x'|^2 over pairs of a sample. linear is never rescaled.
    """
    if config.type == "linear":
        return LinearKernel()
    norms = inputs.squared_norms()
    if config.type == "poly":
        gamma = config.gamma
        if gamma is None:
            mean = float(norms.mean())
            gamma = 1.0 / mean if mean > 0 else 1.0
        with np.errstate(over="ignore"):
            diagonal = float(((gamma * norms + config.coef0) ** config.degree).mean())
        if not np.isfinite(diagonal) or diagonal <= 0:
            raise NumericError(
                f"the polynomial kernel has a mean diagonal of {diagonal:g}: scale the columns, or set gamma"
            )
        return PolynomialKernel(config.degree, gamma, config.coef0, 1.0 / diagonal)
    if config.type == "rbf":
        gamma = config.gamma if config.gamma is not None else 1.0 / _median_distance(inputs, seed)
        return RBFKernel(gamma)
    raise ConfigError(f"unknown kernel '{config.type}'")


def _median_distance(inputs: Inputs, seed: int) -> float:
    rows = np.arange(len(inputs))
    if len(rows) > MEDIAN_SAMPLE:
        rows = np.sort(np.random.default_rng(seed).choice(rows, MEDIAN_SAMPLE, replace=False))
    sample = inputs.take(rows)
    sample = replace(sample, real=sample.real - sample.real.mean(axis=0))  # distances do not change, rounding does
    norms = sample.squared_norms()
    distances = norms[:, None] + norms[None] - 2 * gram(LinearKernel(), sample, sample)
    above = distances[np.triu_indices(len(rows), 1)]
    above = above[above > 1e-12 * above.max(initial=0.0)]  # equal rows say nothing about a scale
    return float(np.median(above)) if len(above) else 1.0


# ----------------------------------------------------------------------------- storage


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    return {"type": kernel.type, **asdict(kernel)}


def kernel_from_dict(values: dict[str, Any]) -> Kernel:
    """Inverse of `kernel_to_dict`; a ValueError on anything else."""
    kinds = {kind.type: kind for kind in (LinearKernel, PolynomialKernel, RBFKernel)}
    values = dict(values)
    kind = kinds.get(values.pop("type", None))
    if kind is None or set(values) != {item.name for item in fields(kind)}:
        raise ValueError("not a kernel")
    for name, value in values.items():
        whole = name == "degree"
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise ValueError(f"kernel {name}")
        if not np.isfinite(value) or value < 0 or (whole and not 1 <= value <= 10):
            raise ValueError(f"kernel {name}")
    return kind(**values)
