from numpy import ndarray

def neighbourhoods(
    pictures: ndarray, offsets: ndarray, down: ndarray, across: ndarray, line: ndarray, out: ndarray
) -> None: ...
