from numpy import ndarray

def sweep(matrix: ndarray, point: ndarray, slopes: ndarray, thresholds: ndarray) -> None: ...
def model_minimum(
    rows: ndarray,
    shares: ndarray,
    start: ndarray,
    slope: ndarray,
    thresholds: ndarray,
    length: float,
    point: ndarray,
    products: ndarray,
) -> tuple[float, float, float]: ...
def add_products(products: ndarray, rows: ndarray, columns: ndarray, out: ndarray) -> None: ...
