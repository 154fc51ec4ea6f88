from numpy import ndarray

def multiply(
    indptr: ndarray, indices: ndarray, values: ndarray, W: ndarray, first: int, last: int, out: ndarray
) -> None: ...
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
def deal(source: ndarray, group: ndarray, first: int, last: int, out: ndarray, fresh: bool) -> None: ...
def accumulate(total: ndarray, part: ndarray) -> None: ...
def gather(
    indptr: ndarray, indices: ndarray, values: ndarray, R: ndarray, first: int, last: int, out: ndarray
) -> None: ...
