"""Models of Wapiti, which are text, read and written.

    #mdl#2#1234               the kind of model (not in early versions) and the number of weights that are not zero
    #rdr#3/1/0                patterns, the last column that they look at, and whether every string is a u (early: none)
    12:u:w=%x[0,0],           each pattern with its length
    #qrk#2                    labels, then strings, likewise
    17=0x1.8p-3               weights that are not zero, by number; hexadecimal or decimal

Weights are numbered string by string: of u one for each label, of b one for each pair, of * both. Without patterns the
strings stand in the data as they are. Strings are bytes: patterns may cut a character in half (`readable`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..corpora import MOST_LABELS
from ..errors import FileFormatError, damaged
from .foreign import ForeignModel, StringWeights, decoded, template_model

MAXENT, MEMM, CRF = 0, 1, 2

_HEAD = re.compile(rb"#mdl#(?:([0-9]+)#)?([0-9]+)\n\s*")
_READER = re.compile(rb"#rdr#([0-9]+)/([0-9]+)(?:/([0-9]+))?\n\s*")
_STRINGS = re.compile(rb"#qrk#([0-9]+)\n\s*")
_LENGTH = re.compile(rb"\s*([0-9]{1,10}):")
_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")


class _Parser:
    def __init__(self, data: bytes, source: str):
        self.data, self.at, self.damaged = data, 0, partial(damaged, "Wapiti", source)

    def numbers(self, pattern: re.Pattern[bytes], what: str) -> list[int | None]:
        found = pattern.match(self.data, self.at)
        if found is None:
            raise self.damaged(f"{what} cannot be found")
        self.at = found.end()
        return [None if group is None or len(group) > 18 else int(group) for group in found.groups()]

    def strings(self, count: int | None, what: str) -> list[bytes]:
        if count is None or count > len(self.data):  # each takes a few bytes
            raise self.damaged("it has more strings than bytes, by its own count")
        out = []
        for _ in range(count):
            found = _LENGTH.match(self.data, self.at)
            end = 0 if found is None else found.end() + int(found[1])
            if found is None or self.data[end : end + 1] != b",":
                raise self.damaged(f"{what} are cut off")
            out.append(self.data[found.end() : end])
            self.at = end + 2
        return out


def _number(text: str) -> float:
    """Return a weight; AnyStyle's models have decimal ones."""
    return float.fromhex(text) if "x" in text else float(text)


def read_wapiti(data: bytes, source: str, encoding: str) -> ForeignModel:
    parser = _Parser(data, source)
    kind, active = parser.numbers(_HEAD, "its head")
    if kind == MEMM:
        raise FileFormatError(
            f"{source}: a maximum entropy Markov model (memm) of Wapiti, which has no counterpart here: train a crf"
        )
    if kind not in (None, MAXENT, CRF) or active is None:
        raise parser.damaged("its head names an unknown kind of model")
    count, _, alone = parser.numbers(_READER, "its patterns")
    patterns = parser.strings(count, "its patterns")
    labels, strings = (
        parser.strings(parser.numbers(_STRINGS, what)[0], what) for what in ("its labels", "its strings")
    )
    Y = len(labels)
    if not 1 <= Y <= MOST_LABELS:
        raise parser.damaged(f"it has {Y:,} labels")
    lines = data[parser.at :].split()  # of the weights that are not zero
    if not data.endswith(b"\n"):
        raise parser.damaged("its end is missing")
    if len(lines) < active:
        raise parser.damaged(f"{len(lines):,} weights, where {active:,} should be")
    pairs = [line.partition(b"=") for line in lines[:active]]
    try:
        places = np.array([int(place) for place, _, _ in pairs], dtype=np.int64)
        values = np.array([_number(value.decode("ascii")) for _, _, value in pairs], dtype=np.float64)
    except (ValueError, OverflowError):
        raise parser.damaged("a weight cannot be read") from None
    kinds = np.array([string[:1] for string in strings], dtype="S1") if strings else np.zeros(0, "S1")
    if not np.isin(kinds, (b"u", b"b", b"*")).all():
        raise parser.damaged("a string begins with none of u, b and *")
    counts = np.where(kinds == b"u", Y, np.where(kinds == b"b", Y * Y, Y + Y * Y))
    first = np.concatenate([[0], np.cumsum(counts)])
    if len(places) and (places.min() < 0 or places.max() >= first[-1]):
        raise parser.damaged("a weight is of no string")
    which = np.searchsorted(first, places, side="right") - 1
    inside = places - first[which]
    of_label = (kinds[which] != b"b") & (inside < Y)
    inside = np.where((kinds[which] == b"*") & ~of_label, inside - Y, inside)
    weights = StringWeights(which, inside, values, ~of_label, kinds == b"b")
    patterns = [line[:1].lower() + line[1:] for line in patterns]
    if not all(line[:1] in (b"u", b"b", b"*") for line in patterns):
        raise parser.damaged("a pattern begins with none of u, b and *")
    texts = decoded([string[1:] for string in strings] if alone else strings, encoding)[0]
    remark = r"it takes attribute files: the label and, after TABs, the strings of Wapiti's data, with \: for a colon"
    own = labels, patterns, strings, texts, weights
    return template_model("Wapiti", source, encoding, *own, remarks=() if patterns else (remark,))


def write_wapiti(
    labels: Sequence[str], patterns: Sequence[str], strings: Sequence[bytes], weights: Sequence[np.ndarray], last: int
) -> bytes:
    """Return the bytes of a model: each string with its weights, [Y], [Y * Y] or both; `last` is the last column."""
    out: list[bytes] = []
    encoded = [line.encode() for line in patterns], [label.encode() for label in labels], strings
    for title, part in zip((b"#rdr#%%d/%d/0\n" % last, b"#qrk#%d\n", b"#qrk#%d\n"), encoded, strict=True):
        out += [title % len(part), *(b"%d:%b,\n" % (len(text), text) for text in part)]
    place = active = 0
    for own in weights:
        there = np.flatnonzero(own)
        out += [b"%d=%b\n" % (place + k, own[k].item().hex().encode()) for k in there.tolist()]
        active += len(there)
        place += len(own)
    return b"#mdl#%d#%d\n" % (CRF, active) + b"".join(out)


def wapiti_bytes(text: str) -> bytes:
    """Return the bytes of a text that `readable` made."""
    parts = _BYTE.split(text)
    return b"".join(bytes([int(part, 16)]) if number % 2 else part.encode() for number, part in enumerate(parts))
