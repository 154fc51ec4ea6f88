from array import array
from typing import Any

def read_crfsuite_parts(data: bytes, source: str) -> tuple[tuple[str, ...], array[int], tuple[array[Any], ...]]: ...
