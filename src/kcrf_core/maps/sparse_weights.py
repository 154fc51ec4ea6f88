"""Weights [D, C] of features: all of them in an array, or those alone that are not zero, row by row.

While such weights are trained, a block of their parameters is all that is held of W, row by row (`KeptWeights`). A pass
takes each with its column; but rows with parameters for a good part of their columns are whole, which is faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import cached_property
from ..files import LARGEST, Contents
from ..system import Team, offsets_of, sequence_rows
from . import _sparse, native

if TYPE_CHECKING:
    import scipy.sparse

WORTH_FILLING = 4  # a row is whole that has parameters for at least one in so many of its columns: above two


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

    @property
    def size(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, weights: np.ndarray) -> SparseWeights:
        """Return those of weights [D, C] that are not zero."""
        kept, width = weights != 0, weights.shape[1]
        columns = np.broadcast_to(np.arange(width, dtype=np.int32), kept.shape)[kept]
        return cls(width, offsets_of(kept.sum(axis=1)), columns, weights[kept])

    @property
    def bytes(self) -> int:
        """Bytes of the weights in a file."""
        return sum(array.nbytes for array in self.pack("").values())

    def where(self, kept: np.ndarray) -> SparseWeights:
        """Return some of the weights, by a mask [K]."""
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.ends))
        counts = np.bincount(rows[kept], minlength=self.shape[0])
        return SparseWeights(self.width, offsets_of(counts), self.columns[kept], self.values[kept])

    def take(self, rows: np.ndarray) -> SparseWeights:
        rows = np.asarray(rows, dtype=np.int64)
        ends, entries = offsets_of(np.diff(self.ends)[rows]), sequence_rows(self.ends, rows)
        return SparseWeights(self.width, ends, self.columns[entries], self.values[entries])

    def times(self, factors: np.ndarray) -> SparseWeights:
        """Return each row times a factor [D]."""
        return replace(self, values=self.values * np.repeat(factors, np.diff(self.ends)))

    def dense(self) -> np.ndarray:
        """Return all weights, [D, C]."""
        return self.matrix.toarray()

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        import scipy.sparse

        return scipy.sparse.csr_array((self.values, self.columns, self.ends), shape=self.shape)

    def add_rows(
        self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, first: int, out: np.ndarray
    ) -> None:
        """Add A W to out [n, C] for compressed rows A; their features are rows of these weights from `first` on."""
        _sparse.multiply_few(indptr, indices, values, first, self.ends, self.columns, self.values, out)

    def pack(self, at: str) -> dict[str, np.ndarray]:
        small = _small(self.width)
        return {
            f"{at}.counts": np.diff(self.ends).astype(small),
            f"{at}.columns": self.columns.astype(small),
            f"{at}.values": self.values,
        }

    @classmethod
    def unpack(cls, contents: Contents, at: str, width: int) -> SparseWeights:
        """Read weights in `width` columns; the caller checks the number of their rows."""
        small = _small(width)
        counts, columns = (contents.array(f"{at}.{name}", small, 1) for name in ("counts", "columns"))
        found = cls(
            width, offsets_of(counts), columns.astype(np.int32), contents.array(f"{at}.values", "float64", 1, LARGEST)
        )
        if not found.ends[-1] == len(columns) == len(found.values):
            raise contents.error(f"'{at}.counts' do not fit its weights")
        starts = np.zeros(len(columns), dtype=bool)
        starts[found.ends[:-1][counts > 0]] = True
        if len(columns) and (columns.max() >= width or np.any(np.diff(found.columns, prepend=0)[~starts] <= 0)):
            raise contents.error(f"'{at}.columns' are out of range or out of order")
        return found


class KeptPlaces:
    """Places [K] in W, row by row in ascending order, and their layout in a pass."""

    def __init__(self, kept: np.ndarray, rows: int, columns: int):
        self.kept, self.rows, self.width = kept, rows, columns
        self.ends = np.searchsorted(kept, columns * np.arange(rows + 1, dtype=np.int64)).astype(np.int64)  # [D+1]
        counts = np.diff(self.ends)
        whole = (WORTH_FILLING * counts >= columns) & (counts > 0)
        held = np.where(whole, columns, 2 * counts)
        self.starts = offsets_of(held)  # [D+1] likewise, of what a pass holds

    def tail(self, block: np.ndarray, first: int) -> np.ndarray:
        """Return rows of W from `first` on, [D - first, C]."""
        weights, begin = np.zeros((self.rows - first, self.width), dtype=block.dtype), self.ends[first]
        weights.ravel()[self.kept[begin:] - first * self.width] = block[begin:]
        return weights

    def put_tail(self, block: np.ndarray, first: int, weights: np.ndarray) -> None:
        """Put weights [D - first, C] into the block: the inverse of `tail`."""
        begin = self.ends[first]
        block[begin:] = weights.ravel()[self.kept[begin:] - first * self.width]


@dataclass(frozen=True, eq=False)
class KeptWeights:
    """W by a block of parameters [K]."""

    places: KeptPlaces
    block: np.ndarray  # float64

    @property
    def shape(self) -> tuple[int, int]:
        return self.places.rows, self.places.width

    def laid_out(self, scale: np.ndarray, dtype: np.dtype, team: Team) -> np.ndarray:
        """Return W as a pass holds it, [H], its rows times their factors [D] where there are any."""
        own, out = self.places, np.empty(self.places.starts[-1], dtype=dtype)
        block = np.ascontiguousarray(self.block, dtype=np.float64)
        rows = len(scale) if len(scale) else own.rows
        native.laid_out(team, block, scale, own.kept, own.ends, own.starts, own.width, rows, out)
        return out

    def column_squares(self) -> np.ndarray:
        """Return the sum of squares of each column, [C]."""
        columns = self.places.kept % self.places.width
        return np.bincount(columns, np.square(self.block, dtype=np.float64), minlength=self.places.width)

    def stored(self) -> SparseWeights:
        """Return weights that are not zero."""
        places = self.places
        columns = (places.kept % places.width).astype(np.int32)
        return SparseWeights(places.width, places.ends, columns, self.block).where(self.block != 0)


Weights = np.ndarray | SparseWeights  # [D, C]


def without_zeros(weights: Weights) -> SparseWeights:
    """Return weights that are not zero."""
    return SparseWeights.of(weights) if isinstance(weights, np.ndarray) else weights


def matrix_of(weights: Weights) -> np.ndarray | scipy.sparse.csr_array:
    """Return a matrix of the weights, to take rows of and to multiply with."""
    return weights if isinstance(weights, np.ndarray) else weights.matrix


def as_dense(matrix: np.ndarray | scipy.sparse.csr_array) -> np.ndarray:
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray()


def held_values(weights: Weights) -> np.ndarray:
    return weights if isinstance(weights, np.ndarray) else weights.values


def pack_weights(weights: Weights, at: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the entry of weights in the header of a file, and their arrays."""
    if isinstance(weights, np.ndarray):
        return {}, {at: weights}
    return {"weights": "sparse"}, weights.pack(at)


def unpack_weights(contents: Contents, entry: dict[str, Any], at: str, width: int) -> Weights:
    """Read what `pack_weights` wrote; the caller checks the number of rows, and of columns of an array."""
    form = entry.get("weights", "dense")
    if form == "sparse":
        return SparseWeights.unpack(contents, at, width)
    if form != "dense":
        raise contents.error(f"'{at}' are of an unknown kind")
    return contents.array(at, "float64", 2, LARGEST)


def _small(width: int) -> str:
    """Return the type of counts and columns in a file."""
    return "uint8" if width < 1 << 8 else "uint16" if width < 1 << 16 else "uint32"
