from .dask_executor import DaskExecutor
from .engines import ClusterEngine, open_executor

TIMEOUTS: tuple[type[Exception], type[Exception]]

__all__ = [
    "ClusterEngine",
    "DaskExecutor",
    "open_executor",
]
