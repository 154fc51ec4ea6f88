"""Weights [D, C] of features: all of them in an array, or those alone that are not zero, row by row.

Where only pairs of features and labels that training data has get weights (`observed_features`), or small ones are
dropped (`pruning`), most of a row is zero. A file holds the number of weights of every row as well as the weights
themselves, so that nothing can be larger in memory than a few times its file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import LARGEST, Contents
from ..system import row_products
from . import _sparse, native

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True)
class SparseWeights:
    """Rows of weights with the columns that they stand in."""

    width: int  # C
    ends: np.ndarray  # [D+1] int64, where the weights of each row begin and end
    columns: np.ndarray  # [K] int32, ascending in every row
    values: np.ndarray  # [K] float64

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ends) - 1, self.width

    @classmethod
    def of(cls, weights: np.ndarray) -> SparseWeights:
        """Take those of weights [D, C] that are not zero."""
        rows, columns = np.nonzero(weights)
        counts = np.bincount(rows, minlength=len(weights))
        return cls(weights.shape[1], _ends(counts), columns.astype(np.int32), weights[rows, columns])

    @property
    def bytes(self) -> int:
        """In a file."""
        return sum(array.nbytes for array in self.pack("").values())

    def where(self, kept: np.ndarray) -> SparseWeights:
        """Some of the weights, by a mask [K]."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.ends))
        counts = np.bincount(rows[kept], minlength=self.shape[0])
        return SparseWeights(self.width, _ends(counts), self.columns[kept], self.values[kept])

    def take(self, rows: np.ndarray) -> SparseWeights:
        """Some rows, by number."""
        rows = np.asarray(rows, dtype=np.int64)
        counts = np.diff(self.ends)[rows]
        ends = _ends(counts)
        columns, values = np.empty(ends[-1], dtype=np.int32), np.empty(ends[-1])
        _sparse.take_rows(self.ends, self.columns, self.values, rows, ends, columns, values)
        return SparseWeights(self.width, ends, columns, values)

    def times(self, factors: np.ndarray) -> SparseWeights:
        """Each row times a factor [D]."""
        return replace(self, values=self.values * np.repeat(factors, np.diff(self.ends)))

    def dense(self) -> np.ndarray:
        """[D, C]."""
        return self.matrix.toarray()

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        import scipy.sparse

        return scipy.sparse.csr_array((self.values, self.columns, self.ends), shape=self.shape)

    def add_codes(self, codes: np.ndarray, first: np.ndarray, out: np.ndarray) -> None:
        """out [n, C] += the rows of one-hot features with these codes [n, F], field f from row first[f] on."""
        _sparse.multiply_codes_few(codes, first, self.ends, self.columns, self.values, out)

    def add_rows(
        self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, first: int, out: np.ndarray
    ) -> None:
        """out [n, C] += A W for compressed rows A; its features are rows of these weights from `first` on."""
        args = (indptr.astype(np.int64), indices.astype(np.int32), values.astype(np.float64))
        _sparse.multiply_few(*args, first, self.ends, self.columns, self.values, out)

    def add_dense(self, rows: np.ndarray, first: int, out: np.ndarray) -> None:
        """out [n, C] += A W for rows A [n, R] of real values."""
        n, R = rows.shape
        self.add_rows(np.arange(n + 1) * R, np.tile(np.arange(R), n), rows.ravel(), first, out)

    def pack(self, at: str) -> dict[str, np.ndarray]:
        small = _small(self.width)
        return {
            f"{at}.counts": np.diff(self.ends).astype(small),
            f"{at}.columns": self.columns.astype(small),
            f"{at}.values": self.values,
        }

    @classmethod
    def unpack(cls, contents: Contents, at: str, width: int) -> SparseWeights:
        """Weights in `width` columns; how many rows they have is for the caller to check."""
        small = _small(width)
        counts, columns = (contents.array(f"{at}.{name}", small, 1) for name in ("counts", "columns"))
        found = cls(
            width, _ends(counts), columns.astype(np.int32), contents.array(f"{at}.values", "float64", 1, LARGEST)
        )
        if not found.ends[-1] == len(columns) == len(found.values):
            raise contents.error(f"'{at}.counts' do not fit its weights")
        starts = np.zeros(len(columns), dtype=bool)
        starts[found.ends[:-1][counts > 0]] = True
        if len(columns) and (columns.max() >= width or np.any(np.diff(found.columns, prepend=0)[~starts] <= 0)):
            raise contents.error(f"'{at}.columns' are out of range or out of order")
        return found


@dataclass(frozen=True)
class _AllWeights:
    """Products with weights that are all held, with the methods of `SparseWeights`."""

    values: np.ndarray  # [D, C]

    def add_codes(self, codes: np.ndarray, first: np.ndarray, out: np.ndarray) -> None:
        _sparse.multiply_codes(codes, first, self.values, out)

    def add_rows(
        self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, first: int, out: np.ndarray
    ) -> None:
        own = native.sparse(
            indptr.astype(np.int64), indices.astype(np.int32), values, self.values[first:].ravel(), self.values.shape[1]
        )
        native.all_scores(native.ALONE, own, len(out), out, False)

    def add_dense(self, rows: np.ndarray, first: int, out: np.ndarray) -> None:
        out += row_products(rows, self.values[first : first + rows.shape[1]])


Weights = np.ndarray | SparseWeights  # [D, C]


def multiplier(weights: Weights) -> SparseWeights | _AllWeights:
    """Weights in the form that adds products of rows with them to scores."""
    return _AllWeights(weights) if isinstance(weights, np.ndarray) else weights


def without_zeros(weights: Weights) -> SparseWeights:
    """Return weights that are not zero."""
    return SparseWeights.of(weights) if isinstance(weights, np.ndarray) else weights


def matrix_of(weights: Weights) -> np.ndarray | scipy.sparse.csr_array:
    """A matrix of the weights, to take rows of and to multiply with."""
    return weights if isinstance(weights, np.ndarray) else weights.matrix


def as_dense(matrix: np.ndarray | scipy.sparse.csr_array) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def held_values(weights: Weights) -> np.ndarray:
    """The numbers that are held, of whatever form."""
    return weights if isinstance(weights, np.ndarray) else weights.values


def pack_weights(weights: Weights, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the entry of weights in the header of a file, and their arrays."""
    if isinstance(weights, np.ndarray):
        return {}, {at: weights}
    return {"weights": "sparse"}, weights.pack(at)


def unpack_weights(contents: Contents, entry: dict[str, Any], at: str, width: int) -> Weights:
    """Inverse of `pack_weights`; how many rows there are is for the caller to check, and columns of an array."""
    form = entry.get("weights", "dense")
    if form == "sparse":
        return SparseWeights.unpack(contents, at, width)
    if form != "dense":
        raise contents.error(f"'{at}' are of an unknown kind")
    return contents.array(at, "float64", 2, LARGEST)


def _ends(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _small(width: int) -> str:
    """The type of counts and columns in a file."""
    return "uint8" if width < 1 << 8 else "uint16" if width < 1 << 16 else "uint32"
