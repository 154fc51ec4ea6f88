"""Tables of word vectors: a row of numbers for each word, looked up by the values of a column.

Rows are held as whole numbers from -127 to 127 with a scale, x = q s, which is how models store them: one byte for a
number, with an error of at most half a step of max |x| / 127.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._lazy import cached_property
from ..files import content_digest
from ..runtime import by_characters

STEPS = 127  # of a row's largest number
DIGITS = str.maketrans("123456789", "000000000")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Distinct words and their vectors."""

    source: str  # name of the file
    words: Sequence[str]
    rows: np.ndarray  # [V, width] int8
    scales: np.ndarray  # [V] float32
    digest: str

    @classmethod
    def of(cls, source: str, words: Sequence[str], rows: np.ndarray, scales: np.ndarray) -> WordVectors:
        digest = content_digest({"words": list(words)}, {"rows": rows, "scales": scales})
        return cls(source, words, rows, scales, digest)

    @property
    def width(self) -> int:
        return self.rows.shape[1]

    @property
    def about(self) -> dict[str, Any]:
        """File, size and digest."""
        return {"file": self.source, "words": len(self.words), "width": self.width, "digest": self.digest}

    @cached_property
    def index(self) -> dict[str, int]:
        """Numbers of words."""
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def numbers(self, values: Sequence[str]) -> np.ndarray:
        """Return the row of each value, [n] int32, -1 for none: that of the word, its lower case, with digits as 0."""
        return rows_of(self.index, values)

    def vectors(self, numbers: np.ndarray) -> np.ndarray:
        """Return the rows of these numbers, [n, width] float64; zeros for -1."""
        if not len(self.words):
            return np.zeros((len(numbers), self.width))
        out = self.rows[numbers].astype(np.float64)
        out *= np.where(numbers < 0, np.float32(0), self.scales[numbers])[:, None]
        return out


def rows_of(index: Mapping[str, int], values: Sequence[str]) -> np.ndarray:
    """Return the number of each value in an index of words, [n] int32, -1 for none.

    It is that of the word, else of its lower case, of the word with digits as 0, or of its lower case with those.
    """
    get, out = index.get, np.empty(len(values), dtype=np.int32)
    for place, (value, lower) in enumerate(zip(values, by_characters(values, "lower"), strict=True)):
        number = get(value)
        if number is None:
            tried = (lower, value.translate(DIGITS), lower.translate(DIGITS))
            number = next((found for one in tried if (found := get(one)) is not None), -1)
        out[place] = number
    return out


def quantised(numbers: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows [V, width] int8 and scales [V] of finite numbers [width, V], by the largest of each vector.

    The numbers are overwritten.
    """
    scales = (largest / STEPS).astype(np.float32)
    numbers /= np.where(scales > 0, scales, 1)
    return np.ascontiguousarray(np.rint(numbers, out=numbers).astype(np.int8).T), scales
