from numpy import ndarray

def number_rows(
    indptr: ndarray, indices: ndarray, degree: int, base: int, row: int, keys: ndarray, slots: ndarray, count: int,
    ends: ndarray, out: ndarray,
) -> tuple[int, int]: ...  # fmt: skip
def number_keys(given: ndarray, keys: ndarray, slots: ndarray, count: int, out: ndarray) -> int: ...
def fill_slots(keys: ndarray, count: int, slots: ndarray) -> int: ...
def number_pairs(
    first: ndarray, second: ndarray, base: int, keys: ndarray, slots: ndarray, count: int, out: ndarray
) -> int: ...
def add_supports(ends: ndarray, numbers: ndarray, hashes: ndarray, counts: ndarray, before: int = 0) -> None: ...
def first_alike(hashes: ndarray, slots: ndarray, first: ndarray) -> None: ...
def add_scores(
    indptr: ndarray, indices: ndarray, degree: int, base: int, keys: ndarray, slots: ndarray, columns: ndarray,
    squares: ndarray, W: ndarray, out: ndarray,
) -> None: ...  # fmt: skip
