from numpy import ndarray

from ._messages import StatePotentials

def viterbi(
    potentials: StatePotentials, scores: ndarray, offsets: ndarray, path: ndarray, best: ndarray, work: ndarray
) -> None: ...
def best_lists(
    potentials: StatePotentials, scores: ndarray, at: int, T: int, labels: ndarray, totals: ndarray, entries: ndarray,
    forward: ndarray,
) -> int: ...  # fmt: skip
