"""Clusters as users name them, and connections to them.

dask                 a cluster on this machine, for trying it: workers of one thread
tcp://host:8786      an existing one, by the address that its scheduler prints; dask://host:8786 is the same
tls://host:8786      the same with certificates on both sides, those of Dask's configuration (`distributed.comm.tls`)
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError, ConfigError
from ..system import available_threads
from . import TIMEOUTS

if TYPE_CHECKING:
    from .dask_executor import DaskExecutor

LOCAL = "dask"
SCHEMES = {"dask": "tcp", "tcp": "tcp", "tls": "tls"}
TIMEOUT = 60.0  # seconds


@dataclass(frozen=True)
class ClusterEngine:
    """A cluster by its address.

    >>> ClusterEngine("dask://127.0.0.1:8786").scheduler
    'tcp://127.0.0.1:8786'
    """

    address: str
    timeout: float = TIMEOUT  # seconds to wait for the first worker, and for the answers of all

    def __post_init__(self) -> None:
        if self.address == LOCAL:
            return
        scheme, found, rest = self.address.partition("://")
        host, _, port = rest.rpartition(":")
        if set("@?#") & set(rest):
            raise ConfigError(
                f"the address {hidden(self.address)} has more than a host and a port: schedulers know no passwords, "
                "give tls://HOST:PORT, with certificates in the configuration of Dask",
                settings=["engine"],
            )
        if not found or scheme not in SCHEMES or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ConfigError(
                f"unknown engine '{hidden(self.address)}': there are cuda, torch:cpu, {LOCAL}, tcp://HOST:PORT and "
                "tls://HOST:PORT (8786 is the usual port of a scheduler)",
                settings=["engine"],
            )

    @property
    def scheduler(self) -> str:
        """Address in the form of Dask."""
        scheme, _, rest = self.address.partition("://")
        return f"{SCHEMES[scheme]}://{rest}"

    @property
    def exposed(self) -> bool:
        """True if others on a network can read what is sent, and reach the scheduler."""
        if self.address == LOCAL or self.address.startswith("tls"):
            return False
        host = self.address.partition("://")[2].rpartition(":")[0].strip("[]")
        try:
            return not ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host not in ("localhost", socket.gethostname())


def hidden(address: str) -> str:
    """Return an address without what may be a secret: a user with a password, a query.

    >>> hidden("tls://me:secret@host:8786?token=1")
    'tls://***@host:8786?***'
    """
    shown = re.sub(r"(?<=://).*@|^[^/]*@", "***@", address)
    return re.sub(r"[?#].*", lambda found: f"{found[0][0]}***", shown)


@contextmanager
def open_executor(
    engine: ClusterEngine,
    *,
    threads: int | None = None,
    memory: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[DaskExecutor]:
    """Open an executor on a cluster, and leave it at the end.

    `memory` is that of each worker; `threads` are for a cluster on this machine, with a worker for each. `tell` gets
    messages on workers that come and go, and warnings.
    """
    tell = tell or (lambda line: None)
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise ConfigError(
            f"the engine '{engine.address}' needs Dask: pip install distributed, or leave out 'engine'",
            settings=["engine"],
        ) from None
    from .dask_executor import DaskExecutor

    if engine.exposed:
        tell(
            f"warning: what goes to {engine.address} can be read on the way, and anyone who reaches that port can "
            "run code on the cluster: use tls:// where others are on the network"
        )
    with ExitStack() as stack:
        client = stack.enter_context(_connected(engine, threads, stack))
        try:
            client.wait_for_workers(1, timeout=engine.timeout)
        except TIMEOUTS:
            raise ClusterError(
                f"no worker came to {engine.address} within {engine.timeout:g} seconds: start some, or wait longer",
                settings=["engine_timeout"],
            ) from None
        executor = DaskExecutor(client, memory, tell, engine.timeout)
        executor.check()
        stack.enter_context(executor.plugins())
        yield executor
        tell(executor.summary())


def _connected(engine: ClusterEngine, threads: int | None, stack: ExitStack) -> Any:
    """Return a client of the cluster; one on this machine is started first, and ended at last."""
    import dask
    from distributed import Client, LocalCluster

    # Workers hold whole partitions, and parameters stand in graphs so that they can be sent again.
    stack.enter_context(dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}))
    # Dask prints nothing by itself: users get our messages. After a failure it stays so, for what the failure leaves
    # behind is reported when the program ends.
    loggers = [logging.getLogger(f"distributed{part}") for part in ("", ".client", ".core")]
    levels = {logger: logger.level for logger in (*loggers, logging.getLogger("tornado"), logging.getLogger("asyncio"))}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)

    def restore(failure: type[BaseException] | None, *_: object) -> None:
        for logger, level in levels.items() if failure is None else ():
            logger.setLevel(level)

    stack.push(restore)
    if engine.address == LOCAL:
        stack.enter_context(dask.config.set({"distributed.worker.profile.enabled": False}))
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=threads or available_threads(),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # any port: another cluster may have the usual one
                silence_logs=50,
            )
        )
        return Client(cluster, timeout=engine.timeout, direct_to_workers=True)
    try:
        return Client(engine.scheduler, timeout=engine.timeout, direct_to_workers=True)
    except (OSError, *TIMEOUTS, ValueError, TypeError) as error:
        restore(None)  # nothing is left behind
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ClusterError(
            f"no scheduler answers at {engine.address} within {engine.timeout:g} seconds ({reason})",
            settings=["engine_timeout"],
        ) from None
