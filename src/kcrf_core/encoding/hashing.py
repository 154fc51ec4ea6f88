"""Hashes of input values, by which copies of sequences are found without their texts.

The definition is part of the format of model files, and the same on all machines and in all versions. All arithmetic is
modulo 2^64, and mix is the last step of SplitMix64:

    mix(z):  z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9;  z ^= z >> 27;  z *= 0x94D049BB133111EB;  z ^= z >> 31

    value      of text: its UTF-8 in BLAKE2b with a digest of 8 bytes, read as a little-endian number; of a number:
               mix(bits of the float64), where -0 counts as 0 and a missing number as the NaN 0x7FF8000000000000
    position   p_t = mix(sum_c value_c (mix(c) | 1)) over those columns that features look at, c = 1, 2, ... in the
               order of the file; numbers are columns that some feature reads as numbers
    attributes p_t = mix(sum_a mix(value of the name + value of the number)), whatever their order
    sequence   mix(T + sum_t mix(p_t + t 0x9E3779B97F4A7C15)), t = 1, ..., T

Vectors beside the data count as columns of numbers if features look at nothing else. Labels do not enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from ..corpora import AttributeRows, CodedColumn, Columns
from ..system import positions_within, ranges

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROWS_AT_ONCE = 4096  # positions: hashes of all attributes would take as much memory as those
SHORTEST = 5  # positions: shorter sequences are often equal by chance, and do not count as copies


def mixed(values: np.ndarray) -> np.ndarray:
    """Return values [n] uint64 mixed so that all bits depend on each other."""
    values = values ^ (values >> np.uint64(30))
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values


@lru_cache(1 << 16)
def _text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def text_hashes(column: CodedColumn) -> np.ndarray:
    """Return a hash of each value of a column, [N]."""
    return np.fromiter(map(_text_hash, column.values), np.uint64, len(column.values))[column.codes]


def _of_numbers(numbers: np.ndarray) -> np.ndarray:
    """Return a hash of each number, [N]."""
    return mixed(np.where(np.isnan(numbers), np.nan, numbers + 0.0).astype(np.float64).view(np.uint64))


def column_hashes(columns: Columns, used: Sequence[tuple[int, str, bool]], vectors: Iterable[str]) -> np.ndarray:
    """Return the hash of the inputs of each position, [N], by places and names of columns, True for numbers."""
    corpus = columns.corpus
    total, attributes = np.zeros(corpus.positions, np.uint64), corpus.attributes
    if attributes is not None:
        return _of_attributes(attributes)
    parts = (_of_numbers(columns.real(at, name)) if real else text_hashes(columns.coded(at)) for at, name, real in used)
    if not used:
        parts = (_of_numbers(column) for name in vectors for column in corpus.vectors[name].T)
    for number, values in enumerate(parts, 1):
        total += values * (mixed(np.array([number], np.uint64)) | np.uint64(1))
    return mixed(total)


def _of_attributes(attributes: AttributeRows) -> np.ndarray:
    """Return the hash of the attributes of each position, [N]."""
    names, values, indptr = CodedColumn.of(attributes.names), attributes.values, attributes.indptr
    of_names = np.fromiter(map(_text_hash, names.values), np.uint64, len(names.values))
    out = np.empty(len(indptr) - 1, np.uint64)
    for rows in ranges(len(out), ROWS_AT_ONCE):
        ends = indptr[rows.start : rows.stop + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        hashes = mixed(of_names[names.codes[entries]] + _of_numbers(values[entries]))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        out[rows] = mixed(np.diff(sums[ends - ends[0]]))
    return out


def sequence_hashes(positions: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the hash of each sequence, [S], by those of its positions [N]."""
    places = (positions_within(offsets) + 1).astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed(positions + places * GOLDEN), dtype=np.uint64)])
    return mixed(np.diff(sums[offsets]) + np.diff(offsets).astype(np.uint64))


def found_among(positions: np.ndarray, offsets: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return True for sequences of at least SHORTEST positions whose hash is among those known, [S] bool."""
    return np.isin(sequence_hashes(positions, offsets), known) & (np.diff(offsets) >= SHORTEST)
