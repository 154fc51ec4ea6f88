"""K_NB, the kernel values of N positions with M pivots: held as far as memory allows, else computed again.

Rows that fit the budget are computed when they are first asked for and held from then on; the others are computed every
time. `Pivots` gives a row the same bits in any company, so nobody can tell which it was.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from ..kernels import Inputs, Kernel, Pivots
from ..system import Budget

# Values that are computed at a time where they are not held: what one thread needs of memory.
PIECE_VALUES, SMALLEST_PIECE, LARGEST_PIECE = 1 << 20, 256, 4096


class KernelRows:
    """Rows of K_NB, by slices of positions."""

    def __init__(
        self,
        inputs: Inputs,
        pivots: Pivots,
        memory: Budget,
        source: tuple[KernelRows, np.ndarray] | None = None,  # other rows that these are some of, and which
    ):
        self._inputs, self._pivots, self._memory, self._source = inputs, pivots, memory, source
        self.shape = (len(inputs), len(pivots))
        self.dtype = pivots.dtype
        self._held: np.ndarray | None = None  # [rows that fit, M], from the first time that rows are asked for
        self._filled = np.zeros(0, dtype=bool)  # which blocks of them have been computed
        self._opening = threading.Lock()
        self._local = threading.local()

    @classmethod
    def of(cls, inputs: Inputs, kernel: Kernel, pivots: Inputs, memory: Budget, dtype: np.dtype | type) -> KernelRows:
        return cls(inputs, Pivots(pivots, kernel, dtype), memory)

    def subset(self, rows: np.ndarray) -> KernelRows:
        """Some of the rows, for the same pivots."""
        return KernelRows(self._inputs.take(rows), self._pivots, self._memory, (self, rows))

    def leading(self, m: int) -> KernelRows:
        """The same rows for the first m pivots."""
        pivots = Pivots(self._pivots.inputs.take(slice(m)), self._pivots.kernel, self.dtype)
        return KernelRows(self._inputs, pivots, self._memory)

    def pieces(self, rows: slice) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows a piece at a time: where each stands within `rows`, and its values, which the next piece may overwrite.

        Pieces depend on `rows` alone, whether they are held or not, and so do sums over them.
        """
        size = min(max(PIECE_VALUES // max(self.shape[1], 1), SMALLEST_PIECE), LARGEST_PIECE)
        for first in range(rows.start, rows.stop, size):
            part = slice(first, min(first + size, rows.stop))
            yield slice(part.start - rows.start, part.stop - rows.start), self._values(part)

    def _values(self, rows: slice) -> np.ndarray:
        held = self._open()
        if rows.stop > len(held):
            return self._computed(rows)
        block = self._pivots.block_rows()
        for number in range(rows.start // block, -(-rows.stop // block)):
            if not self._filled[number]:
                # Two threads may fill the same one: it has to be there at once, not inner products first.
                part = slice(number * block, min((number + 1) * block, len(held)))
                held[part] = self._first_values(part)
                self._filled[number] = True
        return held[rows]

    def _first_values(self, rows: slice) -> np.ndarray:
        if self._source is not None:
            whole, chosen = self._source
            if whole._complete():
                return whole._held[chosen[rows]]
        return self._pivots.gram(self._inputs.take(rows))

    def _complete(self) -> bool:
        """Whether all rows are held and computed."""
        return self._held is not None and len(self._held) == self.shape[0] and bool(self._filled.all())

    def _computed(self, rows: slice) -> np.ndarray:
        """Rows that are not held, in a place of this thread; asked for again at once, they are still there."""
        local = self._local
        if getattr(local, "rows", None) != rows:
            n = rows.stop - rows.start
            if len(getattr(local, "buffer", ())) < n:
                local.buffer = np.empty((n, self.shape[1]), dtype=self.dtype)
            local.rows = None  # should the next line fail
            self._pivots.gram(self._inputs.take(rows), local.buffer[:n])
            local.rows = rows
        return local.buffer[: rows.stop - rows.start]

    def _open(self) -> np.ndarray:
        """The table of held rows. Its size is settled as late as possible: what came before may be gone by then."""
        if self._held is None:
            with self._opening:
                if self._held is None:
                    N, M = self.shape
                    row = max(M, 1) * self.dtype.itemsize
                    rows = self._memory.reserve(self, N * row, row) // row
                    block = self._pivots.block_rows()
                    self._filled = np.zeros(-(-rows // block), dtype=bool)
                    self._held = np.empty((rows, M), dtype=self.dtype)
        return self._held
