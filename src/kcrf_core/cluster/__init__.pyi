from .dask_crew import DaskCrew
from .engines import ClusterEngine, open_crew

TIMEOUTS: tuple[type[BaseException], ...]

__all__ = [
    "ClusterEngine",
    "DaskCrew",
    "open_crew",
]
