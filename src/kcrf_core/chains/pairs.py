"""States of second-order chains: the pairs of labels that exist.

A pair of labels that is forbidden everywhere (minus infinity) is left out of the recursions, so a label scheme makes
them cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PairStates:
    """Allowed pairs, and triples in one block for each middle label; see `_states.pxd`."""

    first: np.ndarray  # [P] int32
    second: np.ndarray  # [P] int32
    begin: np.ndarray  # [Y+1] int32
    into: np.ndarray  # [P] int32
    into_begin: np.ndarray  # [Y+1] int32
    block: np.ndarray  # [Y+1] int64
    triples: np.ndarray  # [Q] where each triple of the blocks stands in U

    @classmethod
    def of(cls, stacked: np.ndarray) -> PairStates:
        """Return the layout of potentials [m, Y, Y]. Where no allowed pair follows another, all are taken."""
        allowed = ~np.logical_and.reduce(np.isneginf(stacked), axis=0)
        if not (allowed.any(axis=0) & allowed.any(axis=1)).any():
            allowed[...] = True
        Y = len(allowed)
        first, second = np.nonzero(allowed)
        into = np.lexsort((first, second))
        begin, into_begin = (np.concatenate([[0], np.cumsum(allowed.sum(axis=axis))]) for axis in (1, 0))
        blocks = []
        for j in range(Y):
            before = first[into[into_begin[j] : into_begin[j + 1]]]
            after = second[begin[j] : begin[j + 1]]
            blocks.append(((before[:, None] * Y + j) * Y + after).ravel())
        return cls(
            first.astype(np.int32),
            second.astype(np.int32),
            begin.astype(np.int32),
            into.astype(np.int32),
            into_begin.astype(np.int32),
            np.cumsum([0, *map(len, blocks)], dtype=np.int64),
            np.concatenate(blocks),
        )

    def pairs(self, stacked: np.ndarray) -> np.ndarray:
        """Gather [m, Y, Y] into [m, P]."""
        return np.ascontiguousarray(stacked[:, self.first, self.second])

    def blocks(self, triples: np.ndarray) -> np.ndarray:
        """Gather [Y, Y, Y] into [1, Q]."""
        return np.ascontiguousarray(triples, dtype=np.float64).ravel()[self.triples][None]

    def spread_pairs(self, pairs: np.ndarray) -> np.ndarray:
        """Spread [m, P] as [m, Y, Y], zero where nothing is allowed."""
        Y = len(self.begin) - 1
        out = np.zeros((len(pairs), Y, Y))
        out[:, self.first, self.second] = pairs
        return out

    def spread_triples(self, blocks: np.ndarray) -> np.ndarray:
        """Spread [1, Q] as [Y, Y, Y]."""
        Y = len(self.begin) - 1
        out = np.zeros(Y**3)
        out[self.triples] = blocks[0]
        return out.reshape(Y, Y, Y)
