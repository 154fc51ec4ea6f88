"""Weights W [D, C] of which only some places have parameters, and products with them.

A block of such parameters is all that is held of W, row by row: W itself is never laid out. A pass takes them in its
own precision, each with its column; but rows with parameters for a good part of their columns are whole, for adding a
whole row takes fewer operations than adding its parts where they belong. On text these are a few rows that most
entries belong to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..system import Team, offsets_of
from . import native
from .sparse_weights import SparseWeights

WORTH_FILLING = 4  # a row is whole that has parameters for at least one in so many of its columns: above two


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
