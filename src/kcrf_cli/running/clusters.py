"""The cluster that a command runs on, where one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kcrf_core.cluster import ClusterEngine, DaskCrew


@contextmanager
def crew_on(
    engine: ClusterEngine | None,
    threads: int | None,
    memory: int | None,
    note: Callable[[str], None],
    changed: Callable[[int], None] | None = None,
) -> Iterator[DaskCrew | None]:
    """A crew on the cluster, which is left again at the end; None without one."""
    if engine is None:
        yield None
        return
    from kcrf_core.cluster import open_crew

    with open_crew(engine, threads=threads, memory=memory, tell=note, changed=changed) as crew:
        yield crew
