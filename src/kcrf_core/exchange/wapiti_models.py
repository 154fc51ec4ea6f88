"""Models of Wapiti, which are text, read and written.

    #mdl#2#1234               the kind of model (early versions say none) and how many weights are not zero
    #rdr#3/1/0                patterns, the last column that they look at, and whether every string is a u (early: none)
    12:u:w=%x[0,0],           each pattern with its length
    #qrk#2                    labels, then strings, likewise
    17=0x1.8p-3               weights that are not zero, by number

Weights are numbered string by string: of u one for each label, of b one for each pair, of * both. Without patterns the
strings stand in the data as they are. Strings are bytes: patterns may cut a character in half (`readable`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..config import is_wapiti_line, pieces
from ..corpora import MOST_LABELS
from ..encoding import readable
from ..errors import ConfigError, FileFormatError
from .foreign import ForeignModel, StringWeights, decoded

MAXENT, MEMM, CRF = 0, 1, 2

_HEAD = re.compile(rb"#mdl#(?:([0-9]+)#)?([0-9]+)\n\s*")
_READER = re.compile(rb"#rdr#([0-9]+)/([0-9]+)(?:/([0-9]+))?\n\s*")
_STRINGS = re.compile(rb"#qrk#([0-9]+)\n\s*")
_LENGTH = re.compile(rb"\s*([0-9]{1,10}):")
_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")


class _Parser:
    def __init__(self, data: bytes, source: str):
        self.data, self.source, self.at = data, source, 0

    def damaged(self, what: str) -> FileFormatError:
        return FileFormatError(f"{self.source}: a damaged Wapiti model: {what}")

    def numbers(self, pattern: re.Pattern[bytes], what: str) -> list[int | None]:
        found = pattern.match(self.data, self.at)
        if found is None:
            raise self.damaged(f"{what} cannot be found")
        self.at = found.end()
        return [None if group is None or len(group) > 18 else int(group) for group in found.groups()]

    def strings(self, count: int, what: str) -> list[bytes]:
        out = []
        for _ in range(count):
            found = _LENGTH.match(self.data, self.at)
            if found is None:
                raise self.damaged(f"{what} are cut off")
            end = found.end() + int(found[1])
            if self.data[end : end + 1] != b",":
                raise self.damaged(f"{what} are cut off")
            out.append(self.data[found.end() : end])
            self.at = end + 2
        return out


def read_wapiti(data: bytes, source: str, encoding: str) -> ForeignModel:
    parser = _Parser(data, source)
    kind, active = parser.numbers(_HEAD, "its head")
    if kind == MEMM:
        raise FileFormatError(
            f"{source}: a maximum entropy Markov model (memm) of Wapiti, which has no counterpart here: train a crf"
        )
    if kind not in (None, MAXENT, CRF) or active is None:
        raise parser.damaged("its head says an unknown kind of model")
    count, _, alone = parser.numbers(_READER, "its patterns")
    # What it says of numbers of strings is no larger than the file, as each takes a few bytes.
    patterns = parser.strings(_believed(parser, count), "its patterns")
    labels = parser.strings(_believed(parser, *parser.numbers(_STRINGS, "its labels")), "its labels")
    strings = parser.strings(_believed(parser, *parser.numbers(_STRINGS, "its strings")), "its strings")
    Y = len(labels)
    if not 1 <= Y <= MOST_LABELS:
        raise parser.damaged(f"it has {Y:,} labels")
    label_texts, bad = decoded(labels, encoding)
    line_texts, bad_lines = decoded(patterns, encoding)
    if bad or bad_lines:
        raise FileFormatError(
            f"{source}: labels or patterns that are not {encoding}: say which encoding they are in",
            settings=["encoding"],
        )
    places, values = _weights(parser, active)
    return _foreign(parser, encoding, label_texts, line_texts, strings, places, values, bool(alone))


def _believed(parser: _Parser, count: int | None) -> int:
    if count is None or count > len(parser.data):
        raise parser.damaged("it says to have more strings than bytes")
    return count


def _weights(parser: _Parser, active: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and values of the weights that are not zero."""
    lines = parser.data[parser.at :].split()
    if not parser.data.endswith(b"\n"):
        raise parser.damaged("its end is missing")
    if len(lines) < active:
        raise parser.damaged(f"{len(lines):,} weights, where {active:,} should be")
    pairs = [line.partition(b"=") for line in lines[:active]]
    try:
        places = np.array([int(place) for place, _, _ in pairs], dtype=np.int64)
        values = np.array([float.fromhex(value.decode("ascii")) for _, _, value in pairs], dtype=np.float64)
    except (ValueError, OverflowError):
        raise parser.damaged("a weight cannot be read") from None
    return places, values


def _foreign(
    parser: _Parser,
    encoding: str,
    labels: Sequence[str],
    patterns: Sequence[str],
    strings: Sequence[bytes],
    places: np.ndarray,
    values: np.ndarray,
    alone: bool,
) -> ForeignModel:
    Y = len(labels)
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
    patterns = [line[:1].lower() + line[1:] for line in patterns]
    try:
        if not all(map(is_wapiti_line, patterns)):
            raise parser.damaged("a pattern begins with none of u, b and *")
        fixed = [line for line in patterns if all(isinstance(piece, str) for piece in pieces(line))]
    except ConfigError as error:
        raise parser.damaged(str(error)) from None
    constant = {line.encode(encoding): fixed.count(line) for line in fixed}
    times = np.array([constant.get(string, 0) for string in strings], dtype=np.float64)
    own = [string[1:] for string in strings] if alone else strings
    utf8 = encoding.lower().replace("-", "") == "utf8"
    texts = [readable(string) for string in own] if utf8 else decoded(own, encoding)[0]
    remarks = []
    if not patterns:
        remarks.append(
            r"it takes attribute files: the label and, after TABs, the strings of Wapiti's data, with \: for a colon"
        )
    lines = tuple(line for line in patterns if line[0] != "b" or line not in fixed)
    weights = StringWeights(which, inside, values, ~of_label, times, kinds == b"b")
    return weights.model("Wapiti", labels, texts, templates=lines if patterns else None, remarks=tuple(remarks))


# ----------------------------------------------------------------------------- writing


def write_wapiti(
    labels: Sequence[str], patterns: Sequence[str], strings: Sequence[bytes], weights: Sequence[np.ndarray], last: int
) -> bytes:
    """The bytes of a model: each string with its weights, [Y], [Y * Y] or both; `last` is the last column in use."""
    out = [b"#rdr#%d/%d/0\n" % (len(patterns), last), *map(_netstring, (line.encode() for line in patterns))]
    for part in ([label.encode() for label in labels], strings):
        out += [b"#qrk#%d\n" % len(part), *map(_netstring, part)]
    place = active = 0
    for own in weights:
        there = np.flatnonzero(own)
        out += [b"%d=%b\n" % (place + k, own[k].item().hex().encode()) for k in there.tolist()]
        active += len(there)
        place += len(own)
    return b"#mdl#%d#%d\n" % (CRF, active) + b"".join(out)


def _netstring(text: bytes) -> bytes:
    return b"%d:%b,\n" % (len(text), text)


def wapiti_bytes(text: str) -> bytes:
    """The bytes that `readable` made this text of."""
    parts = _BYTE.split(text)
    return b"".join(bytes([int(part, 16)]) if number % 2 else part.encode() for number, part in enumerate(parts))
