from numpy import ndarray

STATUS_OK: int

def tangent(
    scores: ndarray, edges: ndarray, start: ndarray, end: ndarray, offsets: ndarray, weights: ndarray,
    d_scores: ndarray, d_edges: ndarray, d_start: ndarray, d_end: ndarray,
    d_node: ndarray, d_edge: ndarray, work: ndarray,
) -> int: ...  # fmt: skip
def work_size(longest: int, Y: int) -> int: ...
