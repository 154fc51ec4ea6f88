from numpy import ndarray

def multiply(
    indptr: ndarray, indices: ndarray, values: ndarray, W: ndarray, first: int, last: int, out: ndarray
) -> None: ...
def gather(
    indptr: ndarray, indices: ndarray, values: ndarray, R: ndarray, first: int, last: int, out: ndarray
) -> None: ...
