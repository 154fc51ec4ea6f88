from numpy import ndarray

from ._messages import StatePotentials

EXACT: int
LIMITED: int
IMPOSSIBLE: int
NONE_FOUND: int

class Counters:
    def __init__(
        self, group: ndarray, ends: ndarray, word: ndarray, shift: ndarray, field: ndarray, cap: ndarray,
        bounded: ndarray, required: ndarray, words: int, pairs: ndarray, first: ndarray, last: ndarray,
    ) -> None: ...  # fmt: skip

def obeyed(counters: Counters, labels: ndarray, offsets: ndarray, out: ndarray) -> None: ...
def search(
    potentials: StatePotentials, counters: Counters, scores: ndarray, offsets: ndarray, wanted: ndarray, number: int,
    limit: int, paths: ndarray, totals: ndarray, found: ndarray, status: ndarray, work: ndarray,
) -> None: ...  # fmt: skip
