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

import numpy as np

from .._lazy import cached_property
from ..errors import ConfigError
from ._crfsuite import read_crfsuite_parts

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
        text, places = self.text.tobytes(), zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        return [text[start : start + length] for start, length in places]


def read_crfsuite(data: bytes, source: str) -> CrfsuiteModel:
    """Return the model in the bytes of a file; errors are of one line that names the `source`."""
    labels, _, parts = read_crfsuite_parts(data, source)
    starts, lengths, ends, columns, values, transitions, listed = map(np.asarray, parts)
    pairs = transitions.reshape(len(labels), -1), listed.reshape(len(labels), -1).astype(bool)
    return CrfsuiteModel(labels, np.frombuffer(data, np.uint8), starts, lengths, ends, columns, values, *pairs)


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
    head = STRINGS.pack(b"CQDB", at + len(back), 0, BYTE_ORDER, n, at if n else 0)
    return b"".join([head, np.array(tables, dtype="<u4").tobytes(), *out, back])
