from numpy import ndarray

def add_matches(
    rows: ndarray, numbers: ndarray, first_number: ndarray, pivots: ndarray,
    first_list: ndarray, list_ends: ndarray, listed: ndarray, counts: ndarray, overwrite: bool, out: ndarray,
) -> None: ...  # fmt: skip
def add_sparse_products(
    indptr: ndarray, indices: ndarray, values: ndarray,
    pivot_indptr: ndarray, pivot_indices: ndarray, pivot_values: ndarray, first: int, out: ndarray,
) -> None: ...  # fmt: skip
def polynomial(block: ndarray, gamma: float, coef0: float, degree: int) -> None: ...
def neighbourhoods(
    images: ndarray, offsets: ndarray, down: ndarray, across: ndarray, line: ndarray, out: ndarray
) -> None: ...
