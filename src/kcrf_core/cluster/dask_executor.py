"""Partitions on the workers of a Dask cluster.

Partitions are results of tasks, and so is all that they are made of: when a worker dies, Dask makes again elsewhere
what it held. Nothing is scattered, no task is bound to a worker, and there are no actors. A task waits for ever where
no worker is left, so the client asks the scheduler now and then, and gives up with the reason when it, or the last
worker, has been gone for a while. The scheduler drops workers that send no heartbeats (`worker-ttl` of Dask).
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import uuid4

import numpy as np
from distributed import Client, Future, KilledWorker, SchedulerPlugin, WorkerPlugin, wait

from .._version import __version__
from ..errors import ClusterError
from ..maps import TOGETHER
from ..objective import Accumulator, Arguments, Deal, Method, PartitionSource, SomeRows, Source
from ..system import PLUGINS, counted, size_text
from . import TIMEOUTS, on_workers
from .dealing import DealtBlock, dealt
from .on_workers import Parcel

PATIENCE = 25.0  # seconds that workers may all be away, or the scheduler
LOOK = 2.0  # seconds between questions to the scheduler
FETCHING = 20.0  # seconds to fetch an answer in, at first; it doubles


class DaskExecutor:
    """Partitions on a cluster."""

    def __init__(
        self,
        client: Client,
        memory: int | None = None,  # bytes of each worker
        tell: Callable[[str], None] | None = None,  # gets messages for users
        patience: float = 60.0,  # seconds that workers have to answer when work begins
    ):
        self._patience = patience
        self._client, self._tell = client, tell or (lambda line: None)
        self._asked = __version__, memory  # of workers
        self._data: weakref.WeakKeyDictionary[Source, Future] = weakref.WeakKeyDictionary()
        self._run, self._numbers = uuid4().hex[:12], count()
        self._looked = self._seen = time.monotonic()  # the last look at the cluster, and the last one that saw a worker
        self.workers = 0
        self.sent = self.received = self.questions = 0  # bytes of arrays, and questions

    def check(self) -> None:
        """Raise an error where a worker has no kcrf or another version; warn where processors differ."""
        look_for = "__import__('importlib.util').util.find_spec('kcrf_core') is None"
        about = "__import__('kcrf_core.cluster.on_workers', fromlist=['about']).about()"
        try:
            found = self._client.sync(
                self._run_everywhere, f"None if {look_for} else {about}", callback_timeout=self._patience
            )
        except TIMEOUTS:
            raise ClusterError(
                f"not all workers answer within {self._patience:g} seconds: end those that hang, or wait longer",
                settings=["engine_timeout"],
            ) from None
        for address, said in found.items():
            if said is None:
                raise ClusterError(f"the worker {address} has no kcrf: install kcrf {__version__} there")
            if isinstance(said, BaseException):
                why = _first_line(said)
                raise ClusterError(
                    f"the worker {address} cannot use its kcrf ({why}): install kcrf {__version__} there"
                )
            if said["version"] != __version__:
                raise ClusterError(
                    f"the worker {address} has kcrf {said['version']}, and this is kcrf {__version__}: install the same"
                )
        kinds = sorted({said["kind"] for said in found.values()} | {on_workers.processor()})
        if len(kinds) > 1:
            self._tell(
                f"warning: processors differ ({', '.join(kinds)}): results are as good, but their bytes may be others "
                "than on one kind"
            )
        workers = self._there()
        self.workers = len(workers)
        threads = counted(sum(each["nthreads"] for each in workers.values()), "thread")
        self._tell(f"cluster: {counted(len(workers), 'worker')} with {threads}")

    @contextmanager
    def plugins(self) -> Iterator[None]:
        """Have the plug-ins of this process on the scheduler and on all workers, also on those that come later."""
        name = f"kcrf-plugins-{self._run}"
        try:
            for carrier in (SchedulerPlugin(), WorkerPlugin()) if PLUGINS else ():
                vars(carrier)["plugins"] = [*PLUGINS.values()]  # which are unpickled and so loaded there
                self._client.register_plugin(carrier, name)
        except Exception as error:
            raise ClusterError(
                f"the cluster cannot load a plug-in: {_first_line(error)}", settings=["plugin"]
            ) from None
        try:
            yield
        finally:
            with suppress(Exception):  # the cluster may be gone
                if PLUGINS:
                    self._client.unregister_worker_plugin(name)
                    self._client.unregister_scheduler_plugin(name)

    async def _run_everywhere(self, code: str) -> dict[str, Any]:
        return await self._client.run(eval, code, on_error="return")

    def _there(self) -> dict[str, dict[str, Any]]:
        """Return what the scheduler knows of each worker."""
        scheduler = self._client.scheduler
        assert scheduler is not None
        return self._client.sync(scheduler.identity, callback_timeout=10)["workers"]

    def _look(self) -> None:
        """Report changes of workers; give up where none is left."""
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        try:
            workers = len(self._there()) if self._client.status == "running" else None
        except (OSError, *TIMEOUTS, CancelledError, RuntimeError):
            workers = None
        if workers is not None and workers != self.workers:
            what = "is gone: what it held is made again by others" if workers < self.workers else "came"
            many = counted(abs(workers - self.workers), "worker")
            self._tell(f"cluster: {many} {what}, {workers} {'is' if workers == 1 else 'are'} there")
            self.workers = workers
        if workers:
            self._seen = time.monotonic()
        elif now - self._seen > PATIENCE:
            if workers is None:
                raise ClusterError("the scheduler of the cluster does not answer any more: nothing was written")
            raise ClusterError("the cluster has no workers any more: nothing was written; start some, and train again")

    def load(self, sources: Sequence[PartitionSource]) -> list[Future]:
        missing = [rows for source in sources for rows in source.maps if rows not in self._data]
        if missing:
            keys = [self._key("data") for _ in missing]
            futures = self._client.map(on_workers.hold, list(map(Parcel, missing)), key=keys, pure=False)
            self._data.update(zip(missing, futures, strict=True))
            self.sent += sum(_nbytes(vars(rows)) for rows in missing)
        found = []
        for source in sources:
            data, key = [self._data[rows] for rows in source.maps], self._key("partition")
            given = Parcel(source.without_maps()), self._asked, *data
            found.append(self._client.submit(on_workers.make_partition, *given, key=key, pure=False))
        return found

    def _key(self, what: str) -> str:
        return f"kcrf-{what}-{self._run}-{next(self._numbers)}"

    def derive(self, handles: Sequence[Future], method: Method, arguments: Arguments) -> list[Future]:
        return self._tasks(on_workers.keep_answer, handles, method, arguments)

    def _tasks(
        self, work: Callable[..., Any], handles: Sequence[Future], method: Method, arguments: Arguments
    ) -> list[Future]:
        """Submit a task for each partition; arguments that the cluster holds are put in their places there."""
        arguments = list(arguments)
        held: list[list[Future]] = [[] for _ in arguments]
        placed = [_placed(list(own), futures) for own, futures in zip(arguments, held, strict=True)]
        keys = [self._key(method.__name__) for _ in handles]
        self.sent += _nbytes(placed)
        parcels = list(map(Parcel, placed))
        return self._client.map(
            work, handles, [method] * len(handles), parcels, *zip(*held, strict=True), key=keys, pure=False
        )

    def deal(self, rows: Sequence[np.ndarray | None], size: int) -> Deal:
        return dealt(rows, size, self._hold)

    def _hold(self, values: Sequence[Any]) -> list[Future]:
        """Return handles of values that many questions have among their arguments."""
        self.sent += _nbytes([value.__dict__ if hasattr(value, "__dict__") else value for value in values])
        keys = [self._key("held") for _ in values]
        return self._client.map(on_workers.hold, list(map(Parcel, values)), key=keys, pure=False)

    def ask(self, handles: Sequence[Future], method: Method, arguments: Arguments) -> Iterator[Any]:
        self.questions += 1
        return iter(self._fetched(self._tasks(on_workers.answer, handles, method, arguments)))

    def total(self, handles: Sequence[Future], method: Method, arguments: Arguments) -> Any:
        found = Accumulator()
        if len(handles) <= TOGETHER:
            for answer in self.ask(handles, method, arguments):
                found.add(answer)
            return found.total
        self.questions += 1
        answers = self._tasks(on_workers.answer, handles, method, arguments)
        groups = [answers[first : first + TOGETHER] for first in range(0, len(answers), TOGETHER)]
        sums = [
            self._client.submit(on_workers.add_answers, group, key=self._key("sum"), pure=False) for group in groups
        ]
        del answers, groups
        for answer in self._fetched(sums):
            found.add_group(answer)
        return found.total

    def _fetched(self, futures: list[Future]) -> list[Any]:
        """Return the results of tasks, when all are there."""
        patience = FETCHING
        while True:
            try:
                wait(futures, timeout=LOOK)
                results = self._client.sync(self._gather_all, futures, callback_timeout=patience)
            except TIMEOUTS:
                if all(future.done() for future in futures):
                    patience *= 2
                self._look()
                continue
            except (Exception, asyncio.CancelledError) as error:
                raise self._explained(error) from None
            self._seen = time.monotonic()
            found = [parcel.value for parcel in results]
            self.received += _nbytes(found)
            self._look()
            return found

    async def _gather_all(self, futures: list[Future]) -> list[Any]:
        return await self._client.gather(futures, asynchronous=True)

    def _explained(self, error: BaseException) -> BaseException:
        """Translate an error of the cluster for users; others stay as they are."""
        if isinstance(error, KilledWorker):
            return ClusterError(
                f"workers died one after another at the same task ({_first_line(error)}): is there too little memory? "
                "Nothing was written"
            )
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(("kcrf_core", "kcrf_cli")):
            return ClusterError(f"a worker has no kcrf: install kcrf {__version__} there")
        if isinstance(error, MemoryError):
            return ClusterError(
                "a worker is out of memory: more workers, or larger ones, are needed; nothing was written"
            )
        if isinstance(error, CancelledError | asyncio.CancelledError | OSError):
            return ClusterError(f"the connection to the cluster is lost, nothing was written ({_first_line(error)})")
        return error

    def summary(self) -> str:
        """Describe the traffic, after a last look for workers that are gone."""
        self._looked = -LOOK
        self._look()
        each = max(self.questions, 1)
        out, back = size_text(self.sent // each), size_text(self.received // each)
        return f"cluster: {counted(self.questions, 'question')} to its shards, {out} out and {back} back for each"


def _placed(value: Any, held: list[Future]) -> Any:
    """Return a value with places for what the cluster holds, which is appended to a list in their order."""
    if isinstance(value, Future):
        held.append(value)
        return on_workers.Place(len(held) - 1)
    if isinstance(value, list | tuple):
        return type(value)(_placed(each, held) for each in value)
    if isinstance(value, DealtBlock):
        return replace(value, plan=_placed(value.plan, held), shared=_placed(value.shared, held))
    return value


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _nbytes(value: Any) -> int:
    """Sum the bytes of arrays in lists, tuples, dictionaries and rows."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, SomeRows):
        return value.places.nbytes + value.values.nbytes
    if isinstance(value, DealtBlock):
        return value.private.nbytes
    if isinstance(value, dict):
        return sum(map(_nbytes, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_nbytes, value))
    return 0
