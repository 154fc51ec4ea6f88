"""Vectors beside a corpus: an embedding for each token, a spectrum for each frame, kept in `.npy` files of their own.

A file is an array [positions, width] with a row for each position of the data in its order; blank lines have none.
Files are mapped into memory and never unpickled. Rows are checked when they are attached to a corpus, so that an error
can name the row of the file and the line of the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ConfigError, DataError
from ..system import counted
from .corpus import Corpus
from .lines import display_name

PRECISIONS = ("float16", "float32", "float64")
BYTES_AT_ONCE = 1 << 24  # looked at for numbers that are none

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"

Given = str | os.PathLike[str] | np.ndarray


@dataclass(frozen=True)
class VectorFile:
    """One array [rows, width], with the name to show in messages."""

    source: str
    array: np.ndarray

    @classmethod
    def open(cls, given: Given) -> VectorFile:
        """Return the array of a `.npy` file, mapped into memory, or one that is in memory already."""
        if isinstance(given, np.ndarray):
            array, source = given, "the array"
        else:
            array, source = _mapped(os.fspath(given)), display_name(given)
        if array.dtype.newbyteorder("=").name not in PRECISIONS:
            raise DataError(
                f"an array of {array.dtype.name}, where vectors are {', '.join(PRECISIONS)}: "
                "save it as array.astype('float32')",
                source,
            )
        if array.ndim != 2 or not array.shape[1]:
            raise DataError(f"its shape is {array.shape}, where [positions, width] is expected", source)
        return cls(source, array)

    def parts(self, begin: int, end: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield rows begin:end, some at a time, each part with the number of its first row."""
        step = max(1, BYTES_AT_ONCE // (self.array.itemsize * self.array.shape[1]))
        for start in range(begin, end, step):
            yield start, np.asarray(self.array[start : min(start + step, end)])

    def check(self, begin: int, end: int, corpus: Corpus | None = None, first: int = 0) -> None:
        """Refuse rows begin:end that are not finite; they belong to positions of the corpus from `first` on."""
        for start, part in self.parts(begin, end):
            finite = np.isfinite(part)
            if finite.all():
                continue
            row = int(finite.all(axis=1).argmin())
            missing = bool(np.isnan(part[row]).any())
            hint = "give every position a row of numbers, zeros where there is no vector"
            if not missing and self.array.dtype.itemsize == 2:
                hint = "float16 holds no number above 65504: save the vectors as float32, or scale them"
            line = ""
            if corpus is not None:
                line = f"; {corpus.source}:{int(corpus.lines[first + start - begin + row])}"
            number = "a NaN" if missing else "an infinite number"
            raise DataError(f"row {start + row} (from 0{line}) has {number}: {hint}", self.source)


@dataclass(frozen=True)
class NamedVectors:
    """Rows of one name: those of one file, or of several, one behind the other."""

    name: str
    files: tuple[VectorFile, ...]

    @property
    def source(self) -> str:
        return " + ".join(file.source for file in self.files)

    @property
    def rows(self) -> int:
        return sum(len(file.array) for file in self.files)

    @property
    def width(self) -> int:
        return self.files[0].array.shape[1]

    def described(self) -> dict[str, Any]:
        """Return a description of the files, after a pass over all their numbers."""
        smallest, largest, lengths = np.inf, -np.inf, 0.0
        for file in self.files:
            file.check(0, len(file.array))
            for _, part in file.parts(0, len(file.array)):
                numbers = part.astype(np.float64)
                smallest, largest = min(smallest, numbers.min()), max(largest, numbers.max())
                lengths += float(np.linalg.norm(numbers, axis=1).sum())
        return {
            "name": self.name,
            "file": self.source,
            "rows": self.rows,
            "width": self.width,
            "precision": np.result_type(*(file.array.dtype for file in self.files)).name,
            "smallest": float(smallest),
            "largest": float(largest),
            "mean_length": lengths / max(self.rows, 1),
        }

    def check_rows(self, positions: int, source: str, complete: bool = True) -> None:
        """Refuse vectors without a row for each position of `source`; `complete` if all have been counted."""
        if self.rows != positions:
            raise DataError(
                f"{counted(self.rows, 'row')} of vectors '{self.name}', but {source} has "
                f"{'' if complete else 'at least '}{counted(positions, 'position')}: a row is needed for each, and "
                "none for blank lines",
                self.source,
            )

    def take(self, begin: int, end: int, corpus: Corpus) -> np.ndarray:
        """Return rows begin:end, for the positions of `corpus`; those of a single file are not copied."""
        parts, shift = [], 0
        for file in self.files:
            low, high = max(begin - shift, 0), min(end - shift, len(file.array))
            if low < high or len(self.files) == 1:
                file.check(low, high, corpus, shift + low - begin)
                parts.append(np.asarray(file.array[low:high]))
            shift += len(file.array)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def open_vectors(given: Iterable[tuple[str, Given]]) -> tuple[NamedVectors, ...]:
    """Open vectors by name; files that are given under the same name follow one another."""
    named: dict[str, list[Given]] = {}
    for name, one in given:
        if not name or any(character in name for character in "=\t\r\n"):
            raise ConfigError(f"{name!r} is no name for vectors: give a word, as in emb=train.npy")
        named.setdefault(name, []).append(one)
    out = tuple(NamedVectors(name, tuple(map(VectorFile.open, several))) for name, several in named.items())
    for vectors in out:
        for other in vectors.files[1:]:
            if (width := other.array.shape[1]) != vectors.width:
                first = f"{vectors.width:,} in {vectors.files[0].source}"
                raise DataError(f"vectors '{vectors.name}' are {width:,} wide here, and {first}", other.source)
    return out


class VectorStream:
    """Vectors that are attached to the blocks of a text one after the other."""

    def __init__(self, vectors: Sequence[NamedVectors]):
        self._vectors = tuple(vectors)
        self._position = 0

    def attached(self, corpus: Corpus) -> Corpus | None:
        """Return the next block with its rows, or None where there are not enough of them."""
        begin, self._position = self._position, self._position + corpus.positions
        if any(vectors.rows < self._position for vectors in self._vectors):
            return None
        own = {vectors.name: vectors.take(begin, self._position, corpus) for vectors in self._vectors}
        return replace(corpus, vectors={**corpus.vectors, **own})

    def skip(self, positions: int) -> None:
        """Count positions that need no rows."""
        self._position += positions

    def check_count(self, source: str, complete: bool = True) -> None:
        """Refuse vectors that have not a row for each position; `complete` if all positions have been counted."""
        for vectors in self._vectors:
            vectors.check_rows(self._position, source, complete)


def with_vectors(corpus: Corpus, vectors: Mapping[str, Given | Sequence[Given]] | Sequence[NamedVectors]) -> Corpus:
    """Add vectors by name to a corpus: arrays [positions, width], or `.npy` files with such arrays, or lists of these.

    >>> import numpy as np
    >>> from kcrf_core import read_corpus, with_vectors
    >>> corpus = read_corpus("sample_data/pitch_accent.conll")
    >>> with_vectors(corpus, {"emb": np.ones((corpus.positions, 3))}).vectors["emb"].shape
    (5652, 3)
    """
    if isinstance(vectors, Mapping):
        pairs: list[tuple[str, Given]] = []
        for name, given in vectors.items():
            several: Sequence[Given] = given if isinstance(given, (list, tuple)) else [given]  # type: ignore[list-item]  # an array is no list
            pairs += [(name, one) for one in several]
        vectors = open_vectors(pairs)
    stream = VectorStream(vectors)
    attached = stream.attached(corpus)
    stream.check_count(corpus.source)
    assert attached is not None  # there are rows enough
    return attached


def _mapped(path: str) -> np.ndarray:
    name = display_name(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise DataError("vectors are mapped into memory, and only a file can be, no pipe: save them to a file", name)
    with open(path, "rb") as stream:
        head = stream.read(len(NPY))
    if head != NPY:
        kind = "an .npz archive" if head.startswith(ZIP) else "no .npy file"
        raise DataError(f"this is {kind}: write vectors with numpy.save, an array [positions, width]", name)
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # of a damaged header NumPy raises what its tokenizer, its parser and its types raise
        if "Python objects" in str(error):
            raise DataError("an array of Python objects, which are never loaded: save it as float32", name) from None
        reason = str(error).partition("\n")[0]
        raise DataError(f"cannot be read as an array, perhaps it is cut short ({reason})", name) from None
