from numpy import ndarray

STATUS_OK: int

def forward_backward(
    scores: ndarray, edges: ndarray, start: ndarray, end: ndarray, offsets: ndarray, weights: ndarray,
    node: ndarray, edge: ndarray, log_z: ndarray, work: ndarray,
) -> int: ...  # fmt: skip
def work_size(longest: int, Y: int) -> int: ...
