"""The engine that users name, opened: a cluster, a device, or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..cluster import ClusterEngine, open_executor
from ..device import DeviceChoice, is_device, open_device
from ..objective import Executor
from ..system import Workers

if TYPE_CHECKING:
    from ..device import Device


@dataclass(frozen=True)
class OpenEngine:
    """A cluster or a device that helps the threads of this process."""

    memory: int | None  # for tables of this process; None: as it likes
    executor: Executor | None = None
    device: Device | None = None

    @property
    def helps(self) -> bool:
        """True if there is a cluster or a device."""
        return self.executor is not None or self.device is not None

    def workers(self, threads: int | None) -> Workers:
        """Return threads with this help."""
        return Workers(threads, self.memory, device=self.device, executor=self.executor)


@contextmanager
def open_engine(
    engine: str | ClusterEngine | DeviceChoice | None,
    *,
    threads: int | None = None,
    memory: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[OpenEngine]:
    """Open an engine for as long as training takes.

    A name is that of a device, or the address of a cluster. `memory` is that of each worker of a cluster, or of a
    device; `tell` is as in `cluster.open_executor`.
    """
    if isinstance(engine, str):
        engine = DeviceChoice(engine) if is_device(engine) else ClusterEngine(engine)
    if isinstance(engine, DeviceChoice):
        device = open_device(engine, memory, tell, threads)
        with device.watched():
            yield OpenEngine(None, device=device)
        return
    if engine is None:
        yield OpenEngine(memory)
        return
    with open_executor(engine, threads=threads, memory=memory, tell=tell) as executor:
        yield OpenEngine(None, executor)
