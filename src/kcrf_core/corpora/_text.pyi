import numpy as np

def last_sequence_end(
    data: bytes | bytearray,
    begin: int,
    separator: int,
    marks: np.ndarray,
    sizes: np.ndarray,
    place: int,
    out: np.ndarray,
    before: bytes | None,
) -> tuple[int, int, bytes | None]: ...
def split_rows(
    data: bytes,
    begin: int,
    line: int,
    separator: int,
    marks: np.ndarray,
    sizes: np.ndarray,
    out: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    ends: np.ndarray,
    numbers: np.ndarray,
    offsets: np.ndarray,
    ragged: bool = False,
) -> tuple[int, int, int, int, int, int]: ...
def code_columns(
    data: bytes,
    starts: np.ndarray,
    lengths: np.ndarray,
    which: np.ndarray,
    slots: np.ndarray,
    hashes: np.ndarray,
    first: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
) -> None: ...
def copy_texts(data: bytes, starts: np.ndarray, lengths: np.ndarray, which: np.ndarray, blob: np.ndarray) -> None: ...
def merge_values(
    part: np.ndarray,
    part_ends: np.ndarray,
    part_hashes: np.ndarray,
    slots: np.ndarray,
    blob: np.ndarray,
    ends: np.ndarray,
    hashes: np.ndarray,
    count: int,
    numbers: np.ndarray,
) -> int: ...
def place_values(hashes: np.ndarray, count: int, slots: np.ndarray) -> None: ...
def number_columns(
    data: bytes,
    starts: np.ndarray,
    lengths: np.ndarray,
    which: np.ndarray,
    marks: np.ndarray,
    sizes: np.ndarray,
    numbers: np.ndarray,
    numeric: np.ndarray,
    all_of_them: bool,
    kinds: np.ndarray,
) -> None: ...
def split_attributes(
    data: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    starts: np.ndarray,
    lengths: np.ndarray,
    values: np.ndarray,
    indptr: np.ndarray,
) -> tuple[bool, int, int, int, bool]: ...
def put_values(
    data: bytes,
    begins: np.ndarray,
    ends: np.ndarray,
    numbers: np.ndarray,
    texts: np.ndarray,
    text_ends: np.ndarray,
    out: np.ndarray,
) -> None: ...
