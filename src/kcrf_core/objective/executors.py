"""Executors that call a method of every partition, in this process one after another or elsewhere.

They hand out handles, one for each partition; a handle may be an argument, and then stands for its partition or answer.
Answers come, and are summed, in the order of partitions. Methods are those of `Partition` and `PartitionBlocks`; what a
handle stands for may have its own version of them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from ..system import Workers
from .partition import Partition
from .sources import PartitionSource
from .sums import Accumulator

Handle = Any
Arguments = Iterable[tuple]  # of each partition, gone through once
Result = TypeVar("Result")
Method = Callable[..., Result]  # of partitions, or of answers that stay where they are
# A function from a block of parameters to the part of it that each partition needs, one at a time.
Deal = Callable[[np.ndarray], Iterator[Any]]


class Executor(Protocol):
    """Partitions of one problem, wherever they are."""

    def load(self, sources: Sequence[PartitionSource]) -> list[Handle]:
        """Return handles of partitions that are made when they are first asked, and again where they are gone."""

    def derive(self, handles: Sequence[Handle], method: Method, arguments: Arguments) -> list[Handle]:
        """Return handles of answers, which stay where the partitions are."""

    def deal(self, rows: Sequence[np.ndarray | None], size: int) -> Deal:
        """Return the function for blocks with so many rows, of which each partition needs some, or all (None)."""

    def ask(self, handles: Sequence[Handle], method: Method[Result], arguments: Arguments) -> Iterator[Result]:
        """Yield the answers of all partitions, in their order."""

    def total(self, handles: Sequence[Handle], method: Method[Result], arguments: Arguments) -> Result:
        """Return the sum of the answers of all partitions."""


def called(thing: Any, method: Method[Result], arguments: Iterable[Any]) -> Result:
    """Call a method of a thing, its own version of it if it has one."""
    return getattr(thing, method.__name__)(*arguments)


def dealt_here(rows: Sequence[np.ndarray | None]) -> Deal:
    """Return the function that copies the rows of each partition."""
    return lambda block: (block if chosen is None else block[chosen] for chosen in rows)


class InMemory:
    """One partition of this process that has all data; its handle is the partition itself."""

    def derive(self, handles: Sequence[Partition], method: Method, arguments: Arguments) -> list[Any]:
        return list(self.ask(handles, method, arguments))

    def ask(self, handles: Sequence[Partition], method: Method[Result], arguments: Arguments) -> Iterator[Result]:
        return (called(handle, method, given) for handle, given in zip(handles, arguments, strict=True))

    def total(self, handles: Sequence[Partition], method: Method[Result], arguments: Arguments) -> Result:
        [answer] = self.ask(handles, method, arguments)
        return answer


@dataclass(frozen=True, eq=False)
class LocalHandle:
    """A partition or an answer, by what it is made of."""

    source: PartitionSource | None
    before: LocalHandle | None = None
    method: Method | None = None
    arguments: tuple = ()


class LocalExecutor:
    """Partitions of this process, one after another.

    Those that fit its memory are kept, the others made again each time. While one is asked, the next is read.
    """

    def __init__(self, workers: Workers):
        self._workers = workers
        self.made: dict[int, Any] = {}  # by the identity of handles, as long as those are there
        self._held = 0
        self._coming: dict[int, Future] = {}  # partitions that are being read, likewise

    def load(self, sources: Sequence[PartitionSource]) -> list[LocalHandle]:
        return [LocalHandle(source) for source in sources]

    def derive(self, handles: Sequence[LocalHandle], method: Method, arguments: Arguments) -> list[LocalHandle]:
        return [LocalHandle(None, handle, method, given) for handle, given in zip(handles, arguments, strict=True)]

    def deal(self, rows: Sequence[np.ndarray | None], size: int) -> Deal:
        return dealt_here(rows)

    def ask(self, handles: Sequence[LocalHandle], method: Method[Result], arguments: Arguments) -> Iterator[Result]:
        with ThreadPoolExecutor(1) as reader:
            try:
                for number, (handle, given) in enumerate(zip(handles, arguments, strict=True)):
                    for later in handles[number + 1 : number + 2]:
                        self._read_ahead(later, reader)
                    yield self._answer(handle, method, given)
            finally:
                self._coming.clear()  # the caller may stop early

    def _read_ahead(self, handle: LocalHandle, reader: ThreadPoolExecutor) -> None:
        while handle.before is not None:
            if id(handle) in self.made:
                return
            handle = handle.before
        assert handle.source is not None
        if id(handle) not in self.made and id(handle) not in self._coming:
            self._coming[id(handle)] = reader.submit(handle.source.load, self._workers)

    def total(self, handles: Sequence[LocalHandle], method: Method[Result], arguments: Arguments) -> Result:
        sums = Accumulator()
        for answer in self.ask(handles, method, arguments):
            sums.add(answer)
        return sums.total

    def _answer(self, handle: LocalHandle, method: Method[Result], arguments: tuple) -> Result:
        given = [self._thing(value) if isinstance(value, LocalHandle) else value for value in arguments]
        return called(self._thing(handle), method, given)

    def _thing(self, handle: LocalHandle) -> Any:
        """Return the partition, or the answer, that a handle stands for."""
        if id(handle) in self.made:
            return self.made[id(handle)]
        if handle.before is not None:
            assert handle.method is not None
            made, size = self._answer(handle.before, handle.method, handle.arguments), 0
            fits = id(handle.before) in self.made  # an answer of a partition that is made again is no better off
        else:
            assert handle.source is not None
            coming = self._coming.pop(id(handle), None)
            made = handle.source.load(self._workers) if coming is None else coming.result()
            size = handle.source.nbytes
            fits = self._held + size <= self._workers.memory.total
        if fits:
            self.made[id(handle)] = made
            self._held += size
            weakref.finalize(handle, self._forget, id(handle), size).atexit = False
        return made

    def _forget(self, number: int, size: int) -> None:
        del self.made[number]
        self._held -= size
