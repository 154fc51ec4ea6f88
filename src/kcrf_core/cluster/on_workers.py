"""Functions that run on the workers of a cluster, by name, with arguments that are plain values.

A worker has one pool of threads for all its partitions, and works on one partition at a time with all of them. Its
memory is what was asked for, or a share of the worker's limit, below which Dask does not write to disk.
"""

from __future__ import annotations

import pickle
import platform
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from .._version import __version__
from ..errors import ClusterError
from ..maps import tree_sum
from ..objective import Method, Partition, called, plus
from ..system import Workers, free_memory, size_text
from .dealing import DealtBlock

# Of a worker's limit: above 0.6 Dask begins to write to disk what it holds.
SHARE_OF_LIMIT, SHARE_OF_FREE = 0.55, 0.6


Asked = tuple[str, int | None]  # the version of kcrf, and bytes of each worker; None: a share of what there is


class Parcel:
    """A value whose arrays are aligned in memory wherever it is received.

    Dask hands out arrays in the middle of the bytes that came over the network. NumPy copies an array that is not
    aligned, in another memory order, before a product, and sums it in other pieces: the bits of results would depend on
    where a message happened to begin.
    """

    def __init__(self, value: Any):
        self.value = value

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        if index(protocol) < 5:
            return Parcel, (self.value,)
        buffers: list[pickle.PickleBuffer] = []
        header = pickle.dumps(self.value, protocol=5, buffer_callback=buffers.append)
        return _received, (header, buffers)

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return sizeof(self.value)


def _received(header: bytes, buffers: Sequence[Any]) -> Parcel:
    found = (np.frombuffer(buffer, dtype=np.uint8) for buffer in buffers)
    aligned = [own.copy() if own.ctypes.data % 16 else own for own in found]  # at addresses that suit every type
    return Parcel(pickle.loads(header, buffers=aligned))


@dataclass(frozen=True)
class Place:
    """Place of an argument that is held by the cluster."""

    number: int


class LastingWorkers(Workers):
    """A pool that is open as long as something refers to it."""

    def __init__(self, threads: int, memory: int):
        super().__init__(threads, memory)
        self.__enter__()

    def __del__(self) -> None:
        self.__exit__(None, None, None)


_pools: weakref.WeakValueDictionary[tuple[int, int | None], LastingWorkers] = weakref.WeakValueDictionary()
_opening, _at_work = threading.Lock(), threading.RLock()


def about() -> dict[str, Any]:
    """Return the version of kcrf here, and the kind of processor, which bytes of results depend on."""
    return {"version": __version__, "kind": processor()}


def processor() -> str:
    found = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return f"{platform.machine()} {names[0] if names else found}".strip()


def _here() -> tuple[str, int, int | None]:
    """Return address, threads and memory limit of the worker that this runs on."""
    from distributed import get_worker

    worker = get_worker()
    return worker.address, worker.state.nthreads, worker.memory_manager.memory_limit


def _pool(version: str, memory: int | None) -> LastingWorkers:
    address, threads, limit = _here()
    if version != __version__:
        raise ClusterError(
            f"the worker {address} has kcrf {__version__}, and this is kcrf {version}: install the same on all"
        )
    key = threads, memory
    with _opening:
        pool = _pools.get(key)
        if pool is None:
            if memory is None:
                memory = int(SHARE_OF_FREE * free_memory())
                memory = memory if limit is None else min(memory, int(SHARE_OF_LIMIT * limit))
            pool = _pools[key] = LastingWorkers(threads, memory)
        return pool


def hold(parcel: Parcel) -> Parcel:
    """Keep data of a map, or parameters that several partitions have, on the cluster."""
    return parcel


class HeldHere:
    """Something that a worker holds, and what it is made of.

    Where Dask sends it elsewhere, or writes it to disk, no more than its origin goes, and the first task that needs it
    makes it again: the receiver is no task, has no worker to ask about, and keeps all others waiting.
    """

    def __init__(self, made: list[Any], size: int, make: Callable[..., Any], *origin: Any):
        # `made` has the thing, where that is there already.
        self._made, self._size, self._make, self._origin = made, size, make, origin

    @property
    def thing(self) -> Any:
        with _at_work:
            if not self._made:
                self._made.append(self._make(*self._origin))
            return self._made[0]

    def __reduce__(self) -> tuple:
        return HeldHere, ([], self._size, self._make, *self._origin)

    def __sizeof__(self) -> int:
        return self._size


def make_partition(source: Parcel, asked: Asked, *maps: Parcel) -> HeldHere:
    """Make a partition, perhaps of maps that the cluster holds; refuse it by name where it does not fit."""
    if maps:
        source = Parcel(source.value.with_maps([each.value for each in maps]))
    size = source.value.nbytes + source.value.table
    return HeldHere([_loaded(source, asked)], size, _loaded, source, asked)


def _loaded(parcel: Parcel, asked: Asked) -> Partition:
    source, pool = parcel.value, _pool(*asked)
    with _at_work:
        needed = source.nbytes
        if needed > pool.memory.left:
            left, total = size_text(pool.memory.left), size_text(pool.memory.total)
            raise ClusterError(
                f"{source.name} takes {size_text(needed)}, and the worker {_here()[0]} has {left} left of {total}: "
                "more or larger workers are needed, or a larger 'memory'",
                settings=["memory"],
            )
        part = source.load(pool)
        pool.memory.spend(part, needed)
    return part


def answer(held: HeldHere, method: Method, arguments: Parcel, *others: Parcel | HeldHere) -> Parcel:
    """Call a method of a partition, or of something made of it, for the client."""
    return Parcel(_called(held, method, arguments, *others))


def _called(held: HeldHere, method: Method, arguments: Parcel, *others: Parcel | HeldHere) -> Any:
    given = _given(list(arguments.value), others)
    with _at_work:
        return called(held.thing, method, given)


def _given(value: Any, others: Sequence[Any]) -> Any:
    """Return an argument with what the cluster holds in its places."""
    if isinstance(value, Place):
        found = others[value.number]
        return found.thing if isinstance(found, HeldHere) else found.value
    if isinstance(value, list | tuple):
        return type(value)(_given(each, others) for each in value)
    if isinstance(value, DealtBlock):
        return replace(value, plan=_given(value.plan, others), shared=_given(value.shared, others)).laid_out()
    return value


def keep_answer(held: HeldHere, method: Method, arguments: Parcel, *others: Parcel | HeldHere) -> HeldHere:
    """Call a method and keep its result on this worker."""
    found = _called(held, method, arguments, *others)
    size = found.nbytes if isinstance(found, np.ndarray) else held.__sizeof__()
    return HeldHere([found], size, _called, held, method, arguments, *others)


def add_answers(answers: Sequence[Parcel]) -> Parcel:
    """Sum the answers of partitions that stand together."""
    return Parcel(tree_sum([each.value for each in answers], plus))
