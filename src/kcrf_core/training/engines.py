"""The engine that users name, opened: a cluster, a device, or neither."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from ..cluster import ClusterEngine, open_executor
from ..device import DeviceChoice, is_device, open_device
from ..system import Workers


@contextmanager
def open_engine(
    engine: str | ClusterEngine | DeviceChoice | None,
    *,
    threads: int | None = None,
    memory: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Workers]:
    """Open an engine for as long as training takes, and yield threads of this process that it helps.

    A name is that of a device, or the address of a cluster. `memory` is that of each worker of a cluster, or of a
    device; `tell` is as in `cluster.open_executor`.
    """
    if isinstance(engine, str):
        engine = DeviceChoice(engine) if is_device(engine) else ClusterEngine(engine)
    device = executor = None
    with ExitStack() as stack:
        if isinstance(engine, DeviceChoice):
            device, memory = open_device(engine, memory, tell, threads), None
            stack.enter_context(device.watched())
        elif engine is not None:
            opened = open_executor(engine, threads=threads, memory=memory, tell=tell)
            executor, memory = stack.enter_context(opened), None
        yield stack.enter_context(Workers(threads, memory, device=device, executor=executor))
