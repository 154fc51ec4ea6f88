"""Training on a Dask cluster: an optional extra, imported when an engine is asked for."""

import asyncio

from .._lazy import lazy

TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on

__getattr__, __dir__, __all__ = lazy(__name__)
