from numpy import ndarray

def sample(
    scores: ndarray, edges: ndarray, start: ndarray, end: ndarray, uniform: ndarray, labels: ndarray
) -> None: ...
