"""What can go wrong with a cluster: exit code 1, as whatever fails at run time."""

from __future__ import annotations

import asyncio

from ..errors import KcrfError

TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on


class ClusterError(KcrfError):
    """A cluster that cannot be reached, is gone, or cannot do what it is asked for."""
