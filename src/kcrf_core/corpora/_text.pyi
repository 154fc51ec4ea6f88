import numpy as np

def first_row(data: bytes, begin: int) -> tuple[int, int]: ...
def columns_of(data: bytes, first: int, last: int, tabs: bool) -> int: ...
def split_rows(
    data: bytes,
    begin: int,
    tabs: bool,
    starts: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    numbers: np.ndarray,
) -> tuple[int, int, int]: ...
def number_values(
    data: bytes,
    starts: np.ndarray,
    lengths: np.ndarray,
    slots: np.ndarray,
    first: np.ndarray,
    codes: np.ndarray,
) -> int: ...
def join_values(data: bytes, starts: np.ndarray, lengths: np.ndarray, out: np.ndarray) -> None: ...
def append_values(
    data: bytes, ends: np.ndarray, numbers: np.ndarray, texts: np.ndarray, text_ends: np.ndarray, out: np.ndarray
) -> None: ...
