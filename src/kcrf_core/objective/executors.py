"""Executors that ask every partition the same question, in this process one after another or elsewhere.

They hand out handles, one for each partition; a handle may be an argument, and then stands for its partition or answer.
Answers come, and are summed, in the order of partitions.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from ..system import Workers
from .engine_partition import Accumulator, EnginePartitionSpec

Handle = Any
Arguments = Iterable[tuple]  # of each partition, gone through once


class Executor(Protocol):
    """Partitions of one problem, wherever they are."""

    remote: bool  # True if arguments have to be sent

    def load(self, specs: Sequence[EnginePartitionSpec]) -> list[Handle]:
        """Return handles of partitions that are made when they are first asked, and again where they are gone."""

    def derive(self, handles: Sequence[Handle], question: str, arguments: Arguments) -> list[Handle]:
        """Return handles of answers, which stay where the partitions are."""

    def hold(self, values: Sequence[Any]) -> list[Handle]:
        """Return handles of values that many questions have among their arguments."""

    def ask(self, handles: Sequence[Handle], question: str, arguments: Arguments) -> Iterator[Any]:
        """Yield the answers of all partitions, in their order."""

    def total(self, handles: Sequence[Handle], question: str, arguments: Arguments) -> Any:
        """Return the sum of the answers of all partitions."""


@dataclass(frozen=True, eq=False)
class LocalHandle:
    """A partition or an answer, by what it is made of."""

    spec: EnginePartitionSpec | None
    before: LocalHandle | None = None
    question: str = ""
    arguments: tuple = ()


class LocalExecutor:
    """Partitions of this process, one after another.

    Those that fit its memory are kept, the others made again each time. While one is asked, the next is read.
    """

    remote = False

    def __init__(self, workers: Workers):
        self._workers = workers
        self.made: dict[int, Any] = {}  # by the identity of handles, as long as those are there
        self._held = 0
        self._coming: dict[int, Future] = {}  # partitions that are being read, likewise

    def load(self, specs: Sequence[EnginePartitionSpec]) -> list[LocalHandle]:
        return [LocalHandle(spec) for spec in specs]

    def derive(self, handles: Sequence[LocalHandle], question: str, arguments: Arguments) -> list[LocalHandle]:
        return [LocalHandle(None, handle, question, own) for handle, own in zip(handles, arguments, strict=True)]

    def hold(self, values: Sequence[Any]) -> list[Any]:
        return list(values)  # they are here

    def ask(self, handles: Sequence[LocalHandle], question: str, arguments: Arguments) -> Iterator[Any]:
        with ThreadPoolExecutor(1) as reader:
            try:
                for number, (handle, own) in enumerate(zip(handles, arguments, strict=True)):
                    for later in handles[number + 1 : number + 2]:
                        self._read_ahead(later, reader)
                    yield self._answer(handle, question, own)
            finally:
                self._coming.clear()  # the caller may stop early

    def _read_ahead(self, handle: LocalHandle, reader: ThreadPoolExecutor) -> None:
        while handle.before is not None:
            if id(handle) in self.made:
                return
            handle = handle.before
        assert handle.spec is not None
        if id(handle) not in self.made and id(handle) not in self._coming:
            self._coming[id(handle)] = reader.submit(handle.spec.load, self._workers)

    def total(self, handles: Sequence[LocalHandle], question: str, arguments: Arguments) -> Any:
        found = Accumulator()
        for answer in self.ask(handles, question, arguments):
            found.add(answer)
        return found.total

    def _answer(self, handle: LocalHandle, question: str, arguments: tuple) -> Any:
        given = [self._thing(each) if isinstance(each, LocalHandle) else each for each in arguments]
        return getattr(self._thing(handle), question)(*given)

    def _thing(self, handle: LocalHandle) -> Any:
        """Return the partition, or the answer, that a handle stands for."""
        if id(handle) in self.made:
            return self.made[id(handle)]
        if handle.before is not None:
            made, size = self._answer(handle.before, handle.question, handle.arguments), 0
            fits = id(handle.before) in self.made  # an answer of a partition that is made again is no better off
        else:
            assert handle.spec is not None
            coming = self._coming.pop(id(handle), None)
            made = handle.spec.load(self._workers) if coming is None else coming.result()
            size = handle.spec.nbytes
            fits = self._held + size <= self._workers.memory.total
        if fits:
            self.made[id(handle)] = made
            self._held += size
            weakref.finalize(handle, self._forget, id(handle), size).atexit = False
        return made

    def _forget(self, number: int, size: int) -> None:
        del self.made[number]
        self._held -= size
