from .dask_executor import DaskExecutor as DaskExecutor
from .engines import ClusterEngine as ClusterEngine, open_executor as open_executor

TIMEOUTS: tuple[type[Exception], type[Exception]]
