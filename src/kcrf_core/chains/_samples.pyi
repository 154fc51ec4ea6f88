from numpy import ndarray

def draw_labellings(
    scores: ndarray, edges: ndarray, start: ndarray, end: ndarray, uniform: ndarray, labels: ndarray
) -> None: ...
