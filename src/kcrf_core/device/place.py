"""A place for arrays: a backend, the memory that tables may fill there, and what has been laid out there already."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ..errors import DeviceError
from ..system import DOUBLE, Array, Backend, Budget, size_text

SHARE = 0.7  # of free memory that tables may take where nothing is said: vectors, messages and products want some, too


class ArrayPlace:
    """Arrays of one backend."""

    def __init__(self, backend: Backend, memory: int | None = None, tell: Callable[[str], None] | None = None):
        self.backend, self._tell = backend, tell
        self._told: set[str] = set()
        self.memory = Budget(int(SHARE * backend.free_memory()) if memory is None else memory)
        # What was made of maps and triangles of this process, for as long as those live.
        self.maps: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.triangles: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self._known: dict[int, tuple[weakref.ref, Array]] = {}

    def say(self, line: str) -> None:
        """Tell what users should know, once."""
        if self._tell is not None and line not in self._told:
            self._told.add(line)
            self._tell(f"engine {self.backend.name}: {line}")

    def remember(self, here: np.ndarray, there: Array) -> None:
        """Say that an array of this process, which never changes, is there already."""
        number = id(here)
        self._known[number] = weakref.ref(here, lambda _: self._known.pop(number, None)), there

    def known(self, here: np.ndarray) -> Array:
        """An array of this process in double precision there, without a copy where that is there already."""
        if id(here) not in self._known:
            self.remember(here, self.backend.array(here, DOUBLE))
        return self._known[id(here)][1]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Say in one line that memory there is short."""
        try:
            yield
        except RuntimeError as error:
            if not self.backend.is_out_of_memory(error):
                raise
            free = size_text(self.backend.free_memory())
            raise DeviceError(
                f"{self.backend.name}: too little memory on {self.backend.title} ({free} free): with a smaller "
                "'memory' kernel values are computed again instead of being held; without an 'engine' threads do all",
                settings=["memory", "engine"],
            ) from None
