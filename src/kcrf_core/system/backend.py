"""Arrays, and the operations on them that NumPy and PyTorch have under different names.

Arrays have operators, slices, `reshape`, `shape` and sums over axes in both libraries. `xp`, the library itself, has
functions with the same names and positional arguments: `exp`, `where`, `concatenate`, `stack`, `clip`, `amax`. All else
is a method here, so that code is the same on a GPU, on PyTorch without one and on NumPy, where it is tested. Types are
NumPy's throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from .late_scipy import linear_algebra
from .memory import free_memory

Array: TypeAlias = Any  # of a backend: PyTorch may not be there to name its type

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class Backend:
    """Arrays of this process, by NumPy; a subclass has those of another library."""

    name = "numpy"  # as users write it
    title = "numpy"  # for messages
    xp: ModuleType = np  # numpy or torch

    def array(self, values: np.ndarray, dtype: np.dtype | None = None) -> Array:
        """Return a copy of values there."""
        return np.array(values, dtype=dtype)

    def numpy(self, values: Array) -> np.ndarray:
        """Return an array as one of this process; it is not to be changed."""
        return values

    def cast(self, values: Array, dtype: np.dtype) -> Array:
        return values.astype(dtype, copy=False)

    def dtype(self, values: Array) -> np.dtype:
        return values.dtype

    def zeros(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> Array:
        return np.zeros(shape, dtype=dtype)

    def empty(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> Array:
        return np.empty(shape, dtype=dtype)

    def contiguous(self, values: Array) -> Array:
        """Return values in one piece of memory, row by row."""
        return np.ascontiguousarray(values)

    def rows(self, values: Array, which: Array) -> Array:
        """Return rows by their numbers, an integer array."""
        return np.take(values, which, axis=0)

    def permuted(self, values: Array, axes: Sequence[int]) -> Array:
        return np.transpose(values, axes)

    def sparse(self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int, dtype: np.dtype) -> Any:
        """Return a matrix in compressed rows."""
        import scipy.sparse

        return scipy.sparse.csr_array((values.astype(dtype), columns, ends), shape=(len(ends) - 1, width))

    def sparse_product(self, matrix: Any, values: Array) -> Array:
        """Multiply such a matrix by an array [width, C], with the same bits every time."""
        return matrix @ values

    def solve_lower(self, triangle: Array, right: Array, transposed: bool = False) -> Array:
        """Return L^-1 R, or L^-T R, by substitution."""
        return linear_algebra.solve_triangular(
            triangle, right, lower=True, trans="T" if transposed else "N", check_finite=False
        )

    def cholesky(self, matrix: Array) -> Array | None:
        """Return L, zero above the diagonal; None where there is none."""
        try:
            return linear_algebra.cholesky(matrix, lower=True, check_finite=False)
        except linear_algebra.LinAlgError:
            return None

    def repeated(self, work: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
        """Return the same function of arrays whose shapes never change, perhaps recorded to be replayed.

        What it gives may be overwritten by the next call.
        """
        return work

    def memory(self) -> int:
        """Return the bytes that a device has, taken or not."""
        return free_memory()

    def free_memory(self) -> int:
        """Return the bytes that could still be taken."""
        return free_memory()

    def settings(self) -> AbstractContextManager[None]:
        """Return a context with the settings of the library that work there needs, which others get back after it."""
        return nullcontext()

    def wait(self) -> None:
        """Wait until everything asked for is done."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return True if an error other than MemoryError means that memory is short."""
        return False
