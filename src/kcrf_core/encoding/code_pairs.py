"""Pairs of codes, numbered by hash tables: the stages of a conjunction."""

from __future__ import annotations

import numpy as np

from ..maps import NO_PAIR, empty_slots, fill_slots, number_pairs


class PairTable:
    """Distinct pairs of codes (a, b), b below a base, numbered by their places among the sorted keys a * base + b."""

    def __init__(self, keys: np.ndarray, base: int):
        self.keys, self._base = keys, base  # [Q] int64, ascending
        self._slots = empty_slots(len(keys))
        fill_slots(keys, len(keys), self._slots)

    def numbers(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the numbers [n] int32 of pairs of int32 codes; negative for pairs that are not in the table."""
        found = np.empty(len(first), dtype=np.int32)
        number_pairs(first, second, self._base, self.keys, self._slots, -1, found)
        return found


def distinct_pairs(first: np.ndarray, second: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted keys of the distinct pairs, and the number of each pair [n], -1 if one of its codes is negative."""
    keys, numbers = np.empty(len(first), dtype=np.int64), np.empty(len(first), dtype=np.int32)
    count = number_pairs(first, second, base, keys, empty_slots(len(first)), 0, numbers)
    order = np.argsort(keys[:count])
    place = np.full(count + 1, NO_PAIR, dtype=np.int32)  # the last one is for those that have no number
    place[order] = np.arange(count, dtype=np.int32)
    return keys[:count][order], place[numbers]
