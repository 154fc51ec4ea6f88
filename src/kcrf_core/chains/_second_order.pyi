from numpy import ndarray

def forward_backward(
    scores: ndarray, pairs: ndarray, start: ndarray, end: ndarray, triples: ndarray, transposed: ndarray, shift: float,
    depth: float, first: ndarray, second: ndarray, begin: ndarray, into: ndarray, into_begin: ndarray, block: ndarray,
    offsets: ndarray, weights: ndarray, node: ndarray, pair: ndarray, triple: ndarray, log_z: ndarray, done: ndarray,
    work: ndarray,
) -> None: ...  # fmt: skip
def work_size(longest: int, Y: int, P: int, Q: int) -> int: ...
def viterbi(
    scores: ndarray, pairs: ndarray, start: ndarray, end: ndarray, triples: ndarray,
    first: ndarray, second: ndarray, begin: ndarray, into: ndarray, into_begin: ndarray, block: ndarray,
    offsets: ndarray, path: ndarray, best: ndarray, work: ndarray,
) -> None: ...  # fmt: skip
