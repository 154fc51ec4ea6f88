from numpy import ndarray

from ..maps.native import Products
from ..system.team import Team

MOST_MAPS: int

class Passes:
    def __init__(
        self,
        tasks: ndarray,
        chunks: ndarray,
        offsets: ndarray,
        labels: ndarray,
        weights: ndarray,
        cut: ndarray,
        label_count: int,
    ) -> None: ...
    def evaluate(
        self,
        team: Team,
        maps: list[Products],
        edges: ndarray,
        start: ndarray,
        end: ndarray,
        errors: ndarray,
    ) -> tuple[ndarray, list[ndarray | None], int]: ...
