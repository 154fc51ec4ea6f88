"""Binary models of CRF++, read and written.

A file holds a head, the labels, the lines of the template, the strings that these become with the place of their first
weight, in a double array (`_double_array`), and the weights in single precision: of a U string one for each label, of a
B string one for each pair.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ..corpora import MOST_LABELS
from ..errors import ConfigError, damaged
from ._double_array import build
from .foreign import ForeignModel, StringWeights, decoded, template_model

CRFPP, VERSION = "CRF++", 100
HEAD = struct.Struct("<IidIII")  # version, type, factor, weights, columns, bytes of the double array
SIZE = struct.Struct("<I")
LONGEST_STRING = 1 << 16


def looks_like_crfpp(data: bytes) -> bool:
    """Return True if the first bytes are those of a model: a version and type 0."""
    if len(data) < HEAD.size:
        return False
    version, kind, *_ = HEAD.unpack_from(data)
    return version // 100 == VERSION // 100 and kind == 0


def read_crfpp(data: bytes, source: str, encoding: str) -> ForeignModel:
    _, _, factor, size, width, units = HEAD.unpack_from(data)
    at = HEAD.size
    parts = []
    for _ in range(2):
        if at + SIZE.size > len(data):
            raise damaged(CRFPP, source, "it is cut off")
        (length,) = SIZE.unpack_from(data, at)
        at += SIZE.size
        parts.append(data[at : at + length])
        at += length
    if at + units + 4 * size != len(data) or units % 8:
        raise damaged(CRFPP, source, "its parts do not add up to the file")
    array = np.frombuffer(data, dtype="<u4", count=units // 4, offset=at).reshape(-1, 2)
    alpha = np.frombuffer(data, dtype="<f4", count=size, offset=at + units)
    names, places = _strings_of(array, size, len(data), source)
    labels, lines = ([one for one in part.split(b"\0") if one] for part in parts)
    with np.errstate(all="ignore"):  # what is not finite is refused later
        alpha = alpha.astype(np.float64) * factor
    Y = len(labels)
    if not 1 <= Y <= MOST_LABELS or not 0 < width <= 1 << 16:
        raise damaged(CRFPP, source, f"{Y:,} labels, {width:,} columns")
    kinds = np.array([name[:1] for name in names], dtype="S1") if len(names) else np.zeros(0, "S1")
    if not np.isin(kinds, (b"U", b"B")).all():
        raise damaged(CRFPP, source, "a string is neither of a U line nor of a B line")
    pair = kinds == b"B"
    counts = np.where(pair, Y * Y, Y)
    if int(counts.sum()) > len(alpha) or (len(places) and (places.min() < 0 or (places + counts).max() > len(alpha))):
        raise damaged(CRFPP, source, "its strings have more weights than there are")
    counted = np.repeat(np.arange(len(names)), counts)  # the string of each weight
    inside = np.arange(len(counted)) - np.repeat(np.cumsum(counts) - counts, counts)
    values = alpha[places[counted] + inside]
    used = np.flatnonzero(values)
    weights = StringWeights(counted[used], inside[used], values[used], pair[counted[used]], pair)
    texts, unread = decoded(names, encoding)
    remarks = (f"{unread:,} strings are not {encoding}, and match nothing",) if unread else ()
    strings = names, texts, weights
    return template_model(CRFPP, source, encoding, labels, lines, *strings, width=width, remarks=remarks)


def _strings_of(array: np.ndarray, most: int, size: int, source: str) -> tuple[list[bytes], np.ndarray]:
    """Return the strings of a double array and their numbers: at most `most`, of at most a few times `size` bytes."""
    n = len(array)
    base, check = array[:, 0].view("<i4").astype(np.int64), array[:, 1].astype(np.int64)
    if not n or not 0 < base[0] < n:
        raise damaged(CRFPP, source, "it has no strings")
    units = np.arange(n)
    code = units - check - 1  # the byte that leads to a unit from the node with the base `check`
    ends = np.flatnonzero((check == units) & (base < 0) & (units > 0))
    inner = np.flatnonzero((check > 0) & (code >= 0) & (code < 256) & (base > 0) & (base < n))
    if len(ends) > most:
        raise damaged(CRFPP, source, "it has more strings than weights")
    above, byte = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.uint8)  # of the node with each base
    above[base[inner]], byte[base[inner]] = check[inner], code[inner]
    above[base[0]] = 0  # the root
    # From the ends up to the root, all strings at once.
    node, which = ends.copy(), np.arange(len(ends))
    levels: list[tuple[np.ndarray, np.ndarray]] = []
    lengths, total = np.zeros(len(ends), dtype=np.int64), 0
    while len(which):
        going = node != base[0]
        node, which = node[going], which[going]
        if (above[node] < 0).any() or total > 64 * size or len(levels) > LONGEST_STRING:
            raise damaged(CRFPP, source, "its strings cannot be put together")
        levels.append((which, byte[node]))
        lengths[which] += 1
        total += len(which)
        node = above[node]
    borders = np.concatenate([[0], np.cumsum(lengths)])
    text = np.empty(int(borders[-1]), dtype=np.uint8)
    for back, (which, bytes_) in enumerate(levels):
        text[borders[which + 1] - 1 - back] = bytes_
    whole, places = text.tobytes(), borders.tolist()
    return [whole[a:b] for a, b in pairwise(places)], -base[ends] - 1


def write_crfpp(
    labels: Sequence[str], templates: Sequence[str], strings: Sequence[str], weights: Sequence[np.ndarray], width: int
) -> bytes:
    """Return the bytes of a model: each string with its weights, [Y] or [Y * Y]."""
    encoded = [string.encode() for string in strings]
    order = sorted(range(len(encoded)), key=encoded.__getitem__)
    keys = [encoded[k] for k in order]
    sizes = np.array([len(weights[k]) for k in order], dtype=np.int64)
    places = np.concatenate([[0], np.cumsum(sizes)])
    size = int(places[-1])
    if size >= 1 << 31:
        raise ConfigError(f"{size:,} weights are more than CRF++ can number: prune the model", settings=["prune"])
    alpha = np.concatenate([weights[k] for k in order]) if order else np.zeros(0)
    ends = np.cumsum(np.fromiter(map(len, keys), np.int64, len(keys)), dtype=np.int64)
    array = build(np.frombuffer(b"".join(keys), np.uint8), ends, places[:-1].astype(np.int32)).astype("<u4")
    label_bytes, line_bytes = (b"".join(one.encode() + b"\0" for one in part) for part in (labels, templates))
    line_bytes += bytes(-(len(label_bytes) + len(line_bytes)) % 4)
    packed = HEAD.pack(VERSION, 0, 1.0, size, width, array.nbytes)
    of_labels, of_lines = SIZE.pack(len(label_bytes)), SIZE.pack(len(line_bytes))
    parts = [packed, of_labels, label_bytes, of_lines, line_bytes, array.tobytes()]
    return b"".join([*parts, alpha.astype("<f4").tobytes()])
