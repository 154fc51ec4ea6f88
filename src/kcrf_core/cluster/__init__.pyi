from .dask_crew import DaskCrew
from .engines import ClusterEngine, open_crew

TIMEOUTS: tuple[type[Exception], type[Exception]]

__all__ = [
    "ClusterEngine",
    "DaskCrew",
    "open_crew",
]
