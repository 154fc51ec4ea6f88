from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..chains import Counters

def name_hashes(text: bytes | np.ndarray, lengths: np.ndarray) -> np.ndarray: ...

class ItemRows:
    def __init__(self, xseq: Iterable[Any]) -> None: ...
    def __len__(self) -> int: ...
    def attributes(self) -> list[list[tuple[bytes, float]]]: ...

class LabelScorer:
    labels: tuple[str, ...]
    def __init__(
        self,
        labels: tuple[str, ...],
        text: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        ends: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        transitions: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
    ) -> None: ...
    def label_rows(
        self,
        text: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        values: np.ndarray,
        indptr: np.ndarray,
        offsets: np.ndarray,
        scores: np.ndarray,
        work: np.ndarray,
        path: np.ndarray,
    ) -> int: ...

class ScoredItems:
    found: Any
    def __init__(self, model: LabelScorer) -> None: ...
    def __len__(self) -> int: ...
    def set(self, xseq: Iterable[Any]) -> None: ...
    def tag(
        self,
        xseq: Iterable[Any] | ItemRows | None = None,
        rules: Counters | None = None,
        otherwise: Callable[[ScoredItems], list[str]] | None = None,
    ) -> list[str]: ...
    def copy_scores(self, out: np.ndarray) -> None: ...
