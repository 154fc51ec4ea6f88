"""The few array operations that the engine of a device is made of, by name, and their NumPy form.

Arrays of a backend have operators, slices, `reshape`, `shape` and sums over axes, as NumPy's and PyTorch's have alike;
all that they say differently is a method here. So the code of the engine is the same on a card, on PyTorch without one
and on NumPy, where it is tested. Types are NumPy's throughout, whatever a backend calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from ..system import free_memory, linear_algebra

Array = Any  # of a backend: nothing outside of this room looks inside

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)


class Backend(Protocol):
    """Where arrays are, and what is done with them there."""

    name: str  # as users say it
    title: str  # what it is, for messages
    xp: ModuleType  # numpy or torch: functions that both have alike

    def array(self, values: np.ndarray, dtype: np.dtype | None = None) -> Array:
        """Values as an array there."""

    def numpy(self, values: Array) -> np.ndarray:
        """An array as one of this process; it is not to be changed."""

    def cast(self, values: Array, dtype: np.dtype) -> Array: ...

    def dtype(self, values: Array) -> np.dtype: ...

    def zeros(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> Array: ...

    def empty(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> Array: ...

    def copy(self, values: Array) -> Array: ...

    def rows(self, values: Array, which: Array) -> Array:
        """Rows by their numbers, an integer array."""

    def together(self, parts: Sequence[Array], axis: int = 0) -> Array: ...

    def stack(self, parts: Sequence[Array], axis: int = 0) -> Array: ...

    def permuted(self, values: Array, axes: Sequence[int]) -> Array: ...

    def exp(self, values: Array) -> Array: ...

    def log(self, values: Array) -> Array: ...

    def sqrt(self, values: Array) -> Array: ...

    def sign(self, values: Array) -> Array: ...

    def largest(self, values: Array, axis: int | None = None) -> Array:
        """The largest along an axis, or of all."""

    def at_least(self, values: Array, least: float) -> Array: ...

    def clipped_exp(self, values: Array, rough: bool) -> Array:
        """exp of values that are above zero by rounding alone, which may be much if `rough`; perhaps in their place."""

    def where(self, condition: Array, a: Array | float, b: Array | float) -> Array: ...

    def nonzero(self, condition: Array) -> Array:
        """Numbers of what is true, of a flat array; it waits for the device."""

    def equal_pairs(self, a: Array, b: Array, dtype: np.dtype) -> Array:
        """1 where a[i] == b[j], else 0, [n, m]."""

    def sparse(self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int, dtype: np.dtype) -> Any:
        """A matrix in compressed rows."""

    def sparse_product(self, matrix: Any, values: Array) -> Array:
        """Such a matrix times an array [width, C], with the same bits every time."""

    def solve_lower(self, triangle: Array, right: Array, transposed: bool = False) -> Array:
        """L^-1 R, or L^-T R, by substitution."""

    def inverse_lower(self, triangle: Array) -> Array: ...

    def cholesky(self, matrix: Array) -> Array | None:
        """L, zero above the diagonal; None where there is none."""

    def inverse(self, matrix: Array) -> Array: ...

    def repeated(self, work: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
        """The same function of arrays whose shapes never change, perhaps recorded to be replayed.

        What it gives may be overwritten by the next call.
        """

    def memory(self) -> int:
        """Bytes that a device has, taken or not."""

    def free_memory(self) -> int:
        """Bytes that could still be taken."""

    def wait(self) -> None:
        """Until everything asked for is done."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an error says that there is no room for what was asked."""


class NumpyBackend:
    """Arrays of this process."""

    name = title = "numpy"
    xp = np

    def array(self, values: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        return np.array(values, dtype=dtype)

    def numpy(self, values: np.ndarray) -> np.ndarray:
        return values

    def cast(self, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return values.astype(dtype, copy=False)

    def dtype(self, values: np.ndarray) -> np.dtype:
        return values.dtype

    def zeros(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> np.ndarray:
        return np.zeros(shape, dtype=dtype)

    def empty(self, shape: Sequence[int], dtype: np.dtype = DOUBLE) -> np.ndarray:
        return np.empty(shape, dtype=dtype)

    def copy(self, values: np.ndarray) -> np.ndarray:
        return values.copy()

    def rows(self, values: np.ndarray, which: np.ndarray) -> np.ndarray:
        return np.take(values, which, axis=0)

    def together(self, parts: Sequence[np.ndarray], axis: int = 0) -> np.ndarray:
        return np.concatenate(parts, axis=axis)

    def stack(self, parts: Sequence[np.ndarray], axis: int = 0) -> np.ndarray:
        return np.stack(parts, axis=axis)

    def permuted(self, values: np.ndarray, axes: Sequence[int]) -> np.ndarray:
        return np.transpose(values, axes)

    def exp(self, values: np.ndarray) -> np.ndarray:
        return np.exp(values)

    def log(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(values)

    def sqrt(self, values: np.ndarray) -> np.ndarray:
        return np.sqrt(values)

    def sign(self, values: np.ndarray) -> np.ndarray:
        return np.sign(values)

    def largest(self, values: np.ndarray, axis: int | None = None) -> np.ndarray:
        return values.max(axis=axis)

    def at_least(self, values: np.ndarray, least: float) -> np.ndarray:
        return np.maximum(values, least)

    def clipped_exp(self, values: np.ndarray, rough: bool) -> np.ndarray:
        return np.exp(np.minimum(values, 0, out=values), out=values)

    def where(self, condition: np.ndarray, a: np.ndarray | float, b: np.ndarray | float) -> np.ndarray:
        return np.where(condition, a, b)

    def nonzero(self, condition: np.ndarray) -> np.ndarray:
        return np.flatnonzero(condition)

    def equal_pairs(self, a: np.ndarray, b: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return (a[:, None] == b[None, :]).astype(dtype)

    def sparse(self, ends: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int, dtype: np.dtype) -> Any:
        import scipy.sparse

        return scipy.sparse.csr_array((values.astype(dtype), columns, ends), shape=(len(ends) - 1, width))

    def sparse_product(self, matrix: Any, values: np.ndarray) -> np.ndarray:
        return matrix @ values

    def solve_lower(self, triangle: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
        return linear_algebra.solve_triangular(
            triangle, right, lower=True, trans="T" if transposed else "N", check_finite=False
        )

    def inverse_lower(self, triangle: np.ndarray) -> np.ndarray:
        return self.solve_lower(triangle, np.eye(len(triangle)))

    def cholesky(self, matrix: np.ndarray) -> np.ndarray | None:
        try:
            return linear_algebra.cholesky(matrix, lower=True, check_finite=False)
        except linear_algebra.LinAlgError:
            return None

    def inverse(self, matrix: np.ndarray) -> np.ndarray:
        return linear_algebra.inv(matrix, check_finite=False)

    def repeated(self, work: Callable[..., tuple[np.ndarray, ...]]) -> Callable[..., tuple[np.ndarray, ...]]:
        return work

    def memory(self) -> int:
        return free_memory()

    def free_memory(self) -> int:
        return free_memory()

    def wait(self) -> None:
        pass

    def is_out_of_memory(self, error: BaseException) -> bool:
        return False  # a MemoryError says it by itself
