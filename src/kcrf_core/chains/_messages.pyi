from numpy import ndarray

from .pairs import PairStates

class StatePotentials:
    def __init__(
        self, start: ndarray, end: ndarray, table: ndarray, apart: bool, pairs: ndarray | None,
        layout: PairStates | None,
    ) -> None: ...  # fmt: skip

def recursions(
    potentials: StatePotentials, direction: StatePotentials | None, scores: ndarray, d_scores: ndarray | None,
    offsets: ndarray, weights: ndarray, node: ndarray, pair: ndarray | None, transition: ndarray, log_z: ndarray,
) -> None: ...  # fmt: skip
def forward(potentials: StatePotentials, scores: ndarray, before: ndarray, out: ndarray) -> None: ...
