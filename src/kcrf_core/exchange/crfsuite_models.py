"""Binary models of CRFsuite (`lCRF` files of type `FOMC`), read and written.

A file is a header of twelve words and chunks at the places that it names:

    FEAT          features in records of 20 bytes: kind (0 state, 1 transition), source, label, weight
    CQDB, twice   strings by number and numbers by hash: labels, then attributes
    LFRF, AFRF    for each label and each attribute the numbers of its features

Numbers are little-endian, and checked against the file's size, however its places point at each other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ..corpora import MOST_LABELS
from ..errors import ConfigError, FileFormatError, damaged
from ..files import LARGEST

MAGIC, KIND, VERSION = b"lCRF", b"FOMC", 100
HEADER = struct.Struct("<4sI4sI8I")
HEADER_FIELDS = (
    *("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs"),
    *("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"),
)
FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
STATE, TRANSITION = 0, 1
CHUNK = struct.Struct("<4sII")

STRINGS = struct.Struct("<4s5I")  # the head of a CQDB chunk
BYTE_ORDER = 0x62445371
TABLES = 256
MIXING, ENDING = (4, 6, 8, 16, 19, 4), (14, 11, 25, 16, 4, 14, 24)  # rotations of the strings' hash

LARGEST_FILE = 1 << 32  # places in it are words of four bytes


@dataclass(frozen=True)
class CrfsuiteModel:
    """Labels, attributes by the bytes of their names, weights row by row, and transitions."""

    labels: tuple[str, ...]
    text: np.ndarray  # [bytes] uint8 that the names of attributes stand in
    starts: np.ndarray  # [A] int64 where each name begins
    lengths: np.ndarray  # [A] int64
    ends: np.ndarray  # [A+1] int64, where the weights of each attribute begin and end
    columns: np.ndarray  # [K] int32 labels
    values: np.ndarray  # [K] float64
    transitions: np.ndarray  # [Y, Y]
    listed: np.ndarray  # [Y, Y] bool: transitions that the file holds, zero or not

    @cached_property
    def attributes(self) -> list[bytes]:
        """Names of attributes, [A]."""
        return names_at(self.text.tobytes(), self.starts, self.lengths)


def names_at(text: bytes, starts: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    """Return the names that begin at `starts` in a text."""
    return [text[start:end] for start, end in zip(starts.tolist(), (starts + lengths).tolist(), strict=True)]


def read_crfsuite(data: bytes, source: str) -> CrfsuiteModel:
    """Return the model in the bytes of a file; errors are of one line that names the `source`."""
    return _Reader(data, source).model()


class _Reader:
    def __init__(self, data: bytes, source: str):
        self.data, self.source = data, source
        self.raw, self.damaged = np.frombuffer(data, dtype=np.uint8), partial(damaged, "CRFsuite", source)
        if len(data) < HEADER.size:
            raise self.damaged("its header is cut off")
        self.header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data), strict=True))

    def model(self) -> CrfsuiteModel:
        header = self.header
        if header["type"] != KIND:
            name = header["type"].decode("ascii", "backslashreplace")
            raise FileFormatError(
                f"{self.source}: a CRFsuite model of type {name!r}; only first-order chains (FOMC) can be read"
            )
        if header["version"] != VERSION:
            raise FileFormatError(
                f"{self.source}: a CRFsuite model of version {header['version']}; only {VERSION} is known"
            )
        Y, A = header["num_labels"], header["num_attrs"]
        if not 1 <= Y <= MOST_LABELS:
            raise self.damaged(f"it has {Y:,} labels")
        at = self.place("off_features", CHUNK.size)
        name, _, count = CHUNK.unpack_from(self.data, at)
        if name != b"FEAT" or at + CHUNK.size + FEATURE.itemsize * count > len(self.data):
            raise self.damaged("its features are cut off")
        features = np.frombuffer(self.data, dtype=FEATURE, count=count, offset=at + CHUNK.size)
        if count and features["label"].max() >= Y:
            raise self.damaged("a feature has a label that is not there")
        if count and not np.abs(features["weight"]).max() <= LARGEST:
            raise self.damaged("it has weights that are not finite or too large")
        starts, lengths = self.strings("off_labels", Y)
        try:
            labels = tuple(name.decode("utf-8") for name in names_at(self.data, starts, lengths))
        except UnicodeDecodeError:
            raise FileFormatError(f"{self.source}: a CRFsuite model whose labels are not UTF-8") from None
        starts, lengths = self.strings("off_attrs", A)
        pairs, from_label = self.references("off_labelrefs", b"LFRF", Y, features)
        transitions, listed = np.zeros((Y, Y)), np.zeros((Y, Y), dtype=bool)
        own = np.repeat(np.arange(Y), np.diff(from_label))
        transitions[own, pairs["label"]] = pairs["weight"]
        listed[own, pairs["label"]] = True
        states, ends = self.references("off_attrrefs", b"AFRF", A, features)
        weights = ends, states["label"].astype(np.int32), states["weight"].astype(np.float64)
        return CrfsuiteModel(labels, self.raw, starts, lengths, *weights, transitions, listed)

    def place(self, name: str, room: int) -> int:
        """Return the place of a chunk that has room for so many bytes."""
        place = self.header[name]
        if not HEADER.size <= place <= len(self.data) - room:
            raise self.damaged(f"{name} is {place:,} in {len(self.data):,} bytes")
        return place

    def run(self, at: int, count: int) -> np.ndarray:
        """Return words that stand one after the other, [count] int64."""
        if at + 4 * count > len(self.data):
            raise self.damaged("it points beyond its end")
        return np.frombuffer(self.data, "<u4", count, at).astype(np.int64)

    def words(self, at: np.ndarray) -> np.ndarray:
        """Return the words that begin at some bytes, [n] int64."""
        if len(at) and (at.min() < 0 or at.max() > len(self.data) - 4):
            raise self.damaged("it points beyond its end")
        every = np.ndarray(len(self.data) - 3, "<u4", self.data, strides=(1,))  # one from each byte on
        return every[at].astype(np.int64)

    def strings(self, name: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the places in the file and the lengths of the first `count` strings of a chunk, [count] each."""
        at = self.place(name, STRINGS.size + 8 * TABLES)
        magic, size, _, order, listed, places = STRINGS.unpack_from(self.data, at)
        if magic != b"CQDB" or order != BYTE_ORDER or at + size > len(self.data) or count > listed:
            raise self.damaged(f"{name} leads to no strings")
        if not count:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        back = self.run(at + places, count)
        if back.min() == 0:
            raise self.damaged(f"the string of number {int(back.argmin())} is not there")
        starts, lengths = at + back + 8, self.words(at + back + 4) - 1
        if lengths.min() < 0 or (starts + lengths).max() >= len(self.data) or self.raw[starts + lengths].any():
            raise self.damaged("a string does not end")
        if int(lengths.sum()) > len(self.data):
            raise self.damaged("its strings are longer than the file")
        return starts, lengths

    def references(self, name: str, magic: bytes, count: int, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features of `count` sources, one after the other, and where those of each end, [count+1]."""
        at = self.place(name, CHUNK.size)
        found, _, listed = CHUNK.unpack_from(self.data, at)
        if found != magic or listed < count:
            raise self.damaged(f"{name} leads to no list of features")
        places = self.run(at + CHUNK.size, count)
        counts = self.words(places)
        ends = np.concatenate([[0], np.cumsum(counts)])
        if ends[-1] > len(features):
            raise self.damaged("it lists more features than it has")
        inside = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
        numbers = self.words(np.repeat(places + 4, counts) + 4 * inside)
        if len(numbers) and numbers.max() >= len(features):
            raise self.damaged("it lists a feature that is not there")
        if len(numbers) and np.array_equal(numbers, np.arange(numbers[0], numbers[0] + len(numbers))):
            return features[numbers[0] : numbers[0] + len(numbers)], ends  # as CRFsuite writes them, without a copy
        return features[numbers], ends


def crfsuite_header(model: CrfsuiteModel) -> dict[str, str]:
    """Return the header of the file that the model is written to, as CRFsuite shows it."""
    found = HEADER.unpack_from(write_crfsuite(model))
    return {
        name: value.decode() if isinstance(value, bytes) else f"0x{value:X}" if name.startswith("off_") else str(value)
        for name, value in zip(HEADER_FIELDS, found, strict=True)
    }


def write_crfsuite(model: CrfsuiteModel) -> bytes:
    """Return the bytes of a model's file."""
    Y, A, ends, values, listed = len(model.labels), len(model.attributes), model.ends, model.values, model.listed
    first, second = np.nonzero(listed)
    pairs = np.zeros(len(first), dtype=FEATURE)
    pairs["kind"], pairs["source"], pairs["label"] = TRANSITION, first, second
    pairs["weight"] = model.transitions[listed]
    states = np.zeros(len(values), dtype=FEATURE)
    states["source"], states["label"], states["weight"] = np.repeat(np.arange(A), np.diff(ends)), model.columns, values
    # As CRFsuite writes them: states before transitions.
    out = bytearray(HEADER.size)
    header: dict[str, int | bytes] = dict.fromkeys(HEADER_FIELDS, 0)
    header |= {"magic": MAGIC, "type": KIND, "version": VERSION, "num_labels": Y, "num_attrs": A}
    header["off_features"] = len(out)
    count = len(states) + len(pairs)
    out += CHUNK.pack(b"FEAT", CHUNK.size + FEATURE.itemsize * count, count) + states.tobytes() + pairs.tobytes()
    for name, strings in (("off_labels", [label.encode() for label in model.labels]), ("off_attrs", model.attributes)):
        header[name] = len(out)
        out += _packed_strings(strings)
    pair_ends = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=Y))])
    # CRFsuite has room for a label before the first and one after the last, and never uses it.
    for name, magic, borders, start, unused in (
        ("off_labelrefs", b"LFRF", pair_ends, len(states), 2),
        ("off_attrrefs", b"AFRF", ends, 0, 0),
    ):
        out += bytes(-len(out) % 4)
        header[name] = len(out)
        # The features of each source s: start+borders[s]:start+borders[s+1].
        n, total = len(borders) - 1, int(borders[-1])
        heads = borders[:-1] + np.arange(n)  # where the list of each begins, in words: its length, then its features
        body, rest = np.empty(n + total, dtype="<u4"), np.ones(n + total, dtype=bool)
        body[heads], rest[heads] = np.diff(borders), False
        body[rest] = start + np.arange(total)
        begin = CHUNK.size + 4 * (n + unused)
        places = np.concatenate([len(out) + begin + 4 * heads, np.zeros(unused, np.int64)]).astype("<u4")
        out += CHUNK.pack(magic, begin + 4 * len(body), n + unused) + places.tobytes() + body.tobytes()
    header["size"] = len(out)
    if len(out) >= LARGEST_FILE:
        raise ConfigError(
            f"the model would take {len(out):,} bytes as CRFsuite writes it, which reads no file of 4 GiB or more: "
            "prune it first",
            settings=["prune"],
        )
    out[: HEADER.size] = HEADER.pack(*(header[name] for name in HEADER_FIELDS))
    return bytes(out)


def name_hashes(text: bytes, lengths: np.ndarray) -> np.ndarray:
    """Return hashes [n] uint32 of names end to end: Jenkins' lookup3 of the bytes of each and a zero behind them."""

    def turned(word: np.ndarray, bits: int) -> np.ndarray:
        return word << np.uint32(bits) | word >> np.uint32(32 - bits)

    raw, places = np.frombuffer(text + bytes(12), np.uint8), np.arange(12)
    words = np.tile((lengths + 1 + 0xDEADBEEF).astype(np.uint32), (3, 1))
    names, starts, left = np.arange(len(lengths)), np.cumsum(lengths) - lengths, lengths
    while len(names):
        block = np.where(places < left[:, None], raw[starts[:, None] + np.minimum(places, left[:, None])], 0)
        own, last = words[:, names] + block.astype(np.uint8).view("<u4").T, left < 12
        ended = own[:, last]
        for k, bits in enumerate(ENDING):
            x, y = ended[(k + 2) % 3], ended[(k + 1) % 3]
            x[:] = (x ^ y) - turned(y, bits)
        words[:, names[last]] = ended
        names, starts, left, own = names[~last], starts[~last] + 12, left[~last] - 12, own[:, ~last]
        for k, bits in enumerate(MIXING):
            x, y, z = own[k % 3], own[(k + 1) % 3], own[(k + 2) % 3]
            x[:] = (x - z) ^ turned(z, bits)
            z += y
        words[:, names] = own
    return words[2]


def _packed_strings(strings: Sequence[bytes]) -> bytes:
    """Return a CQDB chunk: records, 256 half-empty hash tables, and places by number."""
    n = len(strings)
    lengths = np.fromiter(map(len, strings), np.int64, n)
    data_at = STRINGS.size + 8 * TABLES
    places = data_at + np.concatenate([[0], np.cumsum(9 + lengths)])
    records = b"".join(struct.pack("<II", k, len(one) + 1) + one + b"\0" for k, one in enumerate(strings))
    hashes = name_hashes(b"".join(strings), lengths)  # [n] uint32
    tables = [(0, 0)] * TABLES
    out, at = [records], int(places[-1])
    order = np.argsort(hashes % TABLES, kind="stable")
    borders = np.searchsorted((hashes % TABLES)[order], np.arange(TABLES + 1))
    for t in range(TABLES):
        own = order[borders[t] : borders[t + 1]].tolist()
        if not own:
            continue
        size = 2 * len(own)
        table = [(0, 0)] * size
        for k in own:
            hashed = int(hashes[k])
            slot = (hashed >> 8) % size
            while table[slot][1]:
                slot = (slot + 1) % size
            table[slot] = (hashed, int(places[k]))
        tables[t] = (at, size)
        out.append(np.array(table, dtype="<u4").tobytes())
        at += 8 * size
    back = places[:-1].astype("<u4").tobytes()
    head = STRINGS.pack(b"CQDB", at + len(back), 0, BYTE_ORDER, n, at)
    return b"".join([head, np.array(tables, dtype="<u4").tobytes(), *out, back])
