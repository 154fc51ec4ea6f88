from numpy import ndarray

def minimise(
    rows: ndarray,
    multiplied: ndarray,
    scale: ndarray,
    slope: ndarray,
    thresholds: ndarray,
    theta: ndarray,
    point: ndarray,
    along: ndarray,
    curvature: ndarray,
    live: ndarray,
    most: int,
    tolerance: float,
) -> int: ...
