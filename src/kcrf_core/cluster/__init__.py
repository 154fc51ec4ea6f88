"""Training on a Dask cluster: an optional extra, imported when an engine is asked for."""

import asyncio
from typing import TYPE_CHECKING

from .._lazy import lazy

TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on

if TYPE_CHECKING:
    from .dask_executor import DaskExecutor
    from .engines import ClusterEngine, open_executor
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
