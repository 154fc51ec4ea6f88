from numpy import ndarray

def first_order(
    scores: ndarray,
    edges: ndarray,
    start: ndarray,
    end: ndarray,
    labels: ndarray,
    totals: ndarray,
    entries: ndarray,
    forward: ndarray,
    back: ndarray,
) -> int: ...
def second_order(
    scores: ndarray,
    edges: ndarray,
    start: ndarray,
    end: ndarray,
    triples: ndarray,
    labels: ndarray,
    totals: ndarray,
    entries: ndarray,
    forward: ndarray,
    back: ndarray,
) -> int: ...
