from numpy import ndarray

ROWS: int

def multiply_codes(codes: ndarray, first: ndarray, W: ndarray, out: ndarray) -> None: ...
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
def multiply_codes_few(
    codes: ndarray, first: ndarray, ends: ndarray, columns: ndarray, weights: ndarray, out: ndarray
) -> None: ...
def mark_partitions(indptr: ndarray, indices: ndarray, borders: ndarray) -> None: ...
def add_rows(total: ndarray, places: ndarray, values: ndarray) -> None: ...
def merge(indptr: ndarray, indices: ndarray, column: ndarray, sizes: ndarray) -> bool: ...
def transposed(
    indptr: ndarray, indices: ndarray, values: ndarray, ends: ndarray, rows: ndarray, sorted_values: ndarray
) -> None: ...
def take_rows(
    indptr: ndarray,
    indices: ndarray,
    values: ndarray,
    rows: ndarray,
    ends: ndarray,
    out: ndarray,
    out_values: ndarray,
) -> None: ...
def add_squares(indptr: ndarray, indices: ndarray, values: ndarray, counts: ndarray, out: ndarray) -> None: ...
def seen_places(
    indptr: ndarray, indices: ndarray, values: ndarray, ends: ndarray, columns: ndarray, width: int, found: ndarray
) -> int: ...
