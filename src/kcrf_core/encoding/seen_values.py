"""Values that an encoding has met, and what its features made of them.

Text comes block by block, and the same words come in every block. What a feature makes of a word, its prefix or its
shape and the number of that, is worked out when the word is first met, and read from a table from then on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from itertools import repeat

import numpy as np

from ..system import renew_after_fork

MOST_VALUES = 1 << 18  # of a column; what comes when there are so many is worked out each time
NOTHING_KNOWN = np.zeros(0, dtype=np.int32)


class SeenValues:
    """Distinct values of one column in the order in which they came, for all threads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[str] = []
        self._tables: dict[tuple[Hashable, ...], np.ndarray] = {}
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock, in a process that was forked while somebody held it."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[SeenValues], tuple[()]]:
        return SeenValues, ()  # another process meets values by itself

    def numbers(self, values: list[str]) -> np.ndarray:
        """The number of each value among all that were met, [V] int32, -1 for those that there is no room for."""
        found = np.fromiter(map(self._numbers.get, values, repeat(-1)), np.int32, len(values))
        new = np.flatnonzero(found < 0).tolist()
        if new and len(self._values) < MOST_VALUES:
            with self._lock:
                for place in new[: MOST_VALUES - len(self._values)]:
                    value = values[place]
                    number = self._numbers.get(value)
                    if number is None:
                        number = len(self._values)
                        self._values.append(value)  # before its number is known to others
                        self._numbers[value] = number
                    found[place] = number
        return found

    def codes(
        self,
        key: tuple[Hashable, ...],
        values: list[str],
        numbers: np.ndarray,  # [V] of the values
        encode: Callable[[list[str]], np.ndarray],
    ) -> np.ndarray:
        """What `encode` makes of each value, [V] int32; the same key stands for the same function."""
        table, needed = self._tables.get(key, NOTHING_KNOWN), int(numbers.max(initial=-1)) + 1
        if len(table) < needed:
            with self._lock:
                table = self._tables.get(key, NOTHING_KNOWN)
                table = self._tables[key] = np.concatenate([table, encode(self._values[len(table) :])])
        unknown = np.flatnonzero(numbers < 0)
        if not len(unknown):
            return table[numbers]
        out = table[np.maximum(numbers, 0)] if len(table) else np.empty(len(numbers), dtype=np.int32)
        out[unknown] = encode([values[place] for place in unknown.tolist()])
        return out
