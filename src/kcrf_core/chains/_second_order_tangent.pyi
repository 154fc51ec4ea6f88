from numpy import ndarray

def tangent(
    scores: ndarray, pairs: ndarray, start: ndarray, end: ndarray, triples: ndarray, transposed: ndarray,
    depth: float, d_scores: ndarray, d_pairs: ndarray, d_start: ndarray, d_end: ndarray,
    d_triples: ndarray, d_transposed: ndarray,
    first: ndarray, second: ndarray, begin: ndarray, into: ndarray, into_begin: ndarray, block: ndarray,
    offsets: ndarray, weights: ndarray, d_node: ndarray, d_pair: ndarray, d_triple: ndarray, done: ndarray,
    work: ndarray,
) -> None: ...  # fmt: skip
def work_size(longest: int, Y: int, P: int, Q: int) -> int: ...
