from numpy import ndarray

ROWS: int

def multiply_few(
    indptr: ndarray,
    indices: ndarray,
    values: ndarray,
    first: int,
    ends: ndarray,
    columns: ndarray,
    weights: ndarray,
    out: ndarray,
) -> None: ...
def mark_partitions(indptr: ndarray, indices: ndarray, borders: ndarray) -> None: ...
def add_rows(total: ndarray, places: ndarray, values: ndarray) -> None: ...
def merge(indptr: ndarray, indices: ndarray, column: ndarray, sizes: ndarray) -> bool: ...
def transposed(
    indptr: ndarray, indices: ndarray, values: ndarray, ends: ndarray, rows: ndarray, sorted_values: ndarray
) -> None: ...
def seen_places(
    indptr: ndarray, indices: ndarray, ends: ndarray, columns: ndarray, width: int, found: ndarray
) -> int: ...
def add_label_sums(
    indptr: ndarray, indices: ndarray, values: ndarray, ends: ndarray, columns: ndarray, numbers: ndarray,
    factors: ndarray, labels: ndarray, out: ndarray,
) -> None: ...  # fmt: skip
