"""Vectors beside a corpus: an embedding for each token, a spectrum for each frame, kept in `.npy` files of their own.

A file is an array [positions, width] with a row for each position of the data in its order; blank lines have none.
Files are mapped into memory and never unpickled. Rows are checked when they are attached to a corpus, so that an error
can name the row of the file and the line of the text.

Tables of word vectors are text, a word and its numbers on each line: as GloVe writes it, or below a line with the
number of words and of numbers, as word2vec and fastText (`.vec`) write it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from ..errors import ConfigError, DataError
from ..system import Workers, counted
from .conll import split
from .corpus import Corpus
from .layout import PLAIN
from .lines import Block, blocks, checked, display_name, opened
from .tables import WORD
from .word_vectors import WordVectors, quantised

PRECISIONS = ("float16", "float32", "float64")
BYTES_AT_ONCE = 1 << 24  # looked at for numbers that are none

MOST_DIGITS = 18  # of a count in the first line; Python refuses to read numbers of thousands
LARGEST = 1e18  # number of a word's vector

NPY = b"\x93NUMPY"
_NUMBER = re.compile(rb"[-+.0-9eE]*")

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

    def check(self, begin: int, end: int, corpus: Corpus, first: int) -> None:
        """Refuse rows begin:end that are not finite; they belong to positions of the corpus from `first` on."""
        step = max(1, BYTES_AT_ONCE // (self.array.itemsize * self.array.shape[1]))
        for start in range(begin, end, step):
            part = np.asarray(self.array[start : min(start + step, end)])
            finite = np.isfinite(part)
            if finite.all():
                continue
            row = int(finite.all(axis=1).argmin())
            missing = bool(np.isnan(part[row]).any())
            hint = "give every position a row of numbers, zeros where there is no vector"
            if not missing and self.array.dtype.itemsize == 2:
                hint = "float16 holds no number above 65504: save the vectors as float32, or scale them"
            place = f"row {start + row} (from 0; {corpus.source}:{int(corpus.lines[first + start - begin + row])})"
            raise DataError(f"{place} has {'a NaN' if missing else 'an infinite number'}: {hint}", self.source)


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
    found = dict(corpus.vectors)
    for own in vectors:
        own.check_rows(corpus.positions, corpus.source)
        found[own.name] = own.take(0, corpus.positions, corpus)
    return replace(corpus, vectors=found)


def _mapped(path: str) -> np.ndarray:
    name = display_name(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise DataError("vectors are memory-mapped, which needs a file and not a pipe: save them to a file", name)
    with open(path, "rb") as stream:
        if stream.read(len(NPY)) != NPY:
            raise DataError("this is no .npy file: write vectors with numpy.save, an array [positions, width]", name)
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception as error:  # of a damaged header NumPy raises what its tokenizer, its parser and its types raise
        reason = str(error).partition("\n")[0]
        raise DataError(f"cannot be read as an array, perhaps it is cut short ({reason})", name) from None


def load_word_vectors(path: str | os.PathLike[str]) -> WordVectors:
    """Read a table of word vectors, once while its file stays as it is.

    >>> from kcrf_core.corpora import load_word_vectors
    >>> table = load_word_vectors("sample_data/word_vectors.txt")
    >>> table.width, table.numbers(["the", "The", "xyzzy"]).tolist()
    (20, [0, 0, -1])
    """
    about = os.stat(path)
    return _read_table(os.fspath(path), about.st_ino, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=1)
def _read_table(path: str, *version: int) -> WordVectors:
    """Read the table that folds and features share."""
    name = display_name(path)
    with opened(path) as stream, Workers() as workers:
        parts = blocks(stream, name, sequence_per_line=True)
        first = next(parts, None)
        if first is None:
            raise DataError("an empty file, where embeddings have a word and its numbers on each line", name)
        width, announced, begin = _shape(checked(first, name), name)

        def parsed(block: Block) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
            return _parsed(block, begin if block.first_line == 1 else 0, width, name)

        found = list(workers.map(parsed, chain([first], parts)))
    words = [word for block_words, *_ in found for word in block_words]
    rows, scales, lines = (np.concatenate([part[place] for part in found]) for place in (1, 2, 3))
    if announced not in (None, len(words)):
        raise DataError(
            f"the first line announces {counted(announced or 0, 'word')}, and there are {len(words):,}: is the file "
            "cut short?",
            name,
        )
    out = WordVectors.of(os.path.basename(path), words, rows, scales)
    if len(out.index) < len(words):
        seen: dict[str, int] = {}
        for word, line in zip(words, lines.tolist(), strict=True):
            if seen.setdefault(word, line) != line:
                raise DataError(f"'{word}' again, which line {seen[word]} has", name, line)
    return out


def _shape(block: Block, name: str) -> tuple[int, int | None, int]:
    """Return the number of numbers, that of words where the first line has it, and where the first row begins."""
    begin = block.begin
    end = block.data.find(b"\n", begin) % (len(block.data) + 1)
    fields = block.data[begin:end].split()
    if len(fields) == 2 and all(field.isdigit() and len(field) <= MOST_DIGITS for field in fields):
        if int(fields[1]) < 1:
            raise DataError("the first line announces vectors of no numbers", name, 1)
        return int(fields[1]), int(fields[0]), min(end + 1, len(block.data))
    if len(fields) < 2:
        raise DataError("a word and its numbers are expected, separated by spaces or TABs", name, 1)
    return len(fields) - 1, None, begin


def _parsed(block: Block, begin: int, width: int, name: str) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Return words, rows, scales and lines of a block."""
    data = checked(block, name).data.replace(b"\t", b" ")
    line = data.count(b"\n", 0, begin)
    parse = partial(split, block, name=name, separator=" ", width=width + 1, layout=PLAIN, begin=begin, line=line)
    try:
        rows = parse(data=data)
    except DataError:
        rows = parse(data=b"\n".join(_with_one_word(text, width) for text in data.split(b"\n")))
    cells, which = rows.cells, np.arange(1, width + 1)
    numbers, numeric = cells.parsed(which, ())  # [width, n]
    if not numeric.all():
        kinds = np.empty(numbers.shape, dtype=np.int8)
        cells.parsed(which, (), kinds)
        n, k = np.argwhere(kinds.T == WORD)[0].tolist()
        raise DataError(f"'{cells[k + 1][n]}' is not a finite number", name, int(rows.lines[n]))
    largest = np.abs(numbers).max(axis=0, initial=0.0)
    if (largest > LARGEST).any():
        raise DataError("a number is too large to compute with", name, int(rows.lines[(largest > LARGEST).argmax()]))
    ends = (cells.starts[0] + cells.lengths[0]).tolist()
    texts = (cells.data[start:end] for start, end in zip(cells.starts[0].tolist(), ends, strict=True))
    return [text.replace(b"\0", b" ").decode() for text in texts], *quantised(numbers, largest), rows.lines


def _with_one_word(line: bytes, width: int) -> bytes:
    """Return a line with a NUL for each space inside its word; a text has no others."""
    fields = line.rstrip().split(b" ")
    extra = len(fields) - 1 - width
    if extra <= 0 or all(_NUMBER.fullmatch(field) for field in fields[1 : extra + 1]):
        return line
    return line.replace(b" ", b"\0", extra)
