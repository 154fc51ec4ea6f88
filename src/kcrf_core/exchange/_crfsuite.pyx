"""Binary models of CRFsuite, read without NumPy; `crfsuite_models` describes them. Errors say what is damaged."""

from libc.math cimport fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

import struct
from array import array

from ..corpora import MOST_LABELS
from ..errors import FileFormatError, damaged
from ..files import LARGEST

HEADER = struct.Struct("<4sI4sI8I")
KIND, VERSION, BYTE_ORDER = b"FOMC", 100, 0x62445371
cdef int64_t RECORD = 20  # bytes of a feature: kind, source, label, weight


cdef inline int64_t word(const uint8_t[::1] data, int64_t at) except -1:
    """Return the word that begins at a byte."""
    if not 0 <= at <= data.shape[0] - 4:
        raise ValueError("it points beyond its end")
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16 | <int64_t>data[at + 3] << 24


cdef int64_t opened(const uint8_t[::1] data, int64_t at, bytes magic, int64_t count, int place) except -1:
    """Return the size of a list, which is the word at some place of a chunk, or raise an error if it is too short."""
    if bytes(data[at:at + 4]) != magic or word(data, at + place) < count:
        raise ValueError(f"no {magic.decode()} with {count:,} entries is at byte {at:,} of {data.shape[0]:,}")
    return word(data, at + place)


cdef tuple strings(const uint8_t[::1] data, int64_t at, int64_t count):
    """Return the places in the file and the lengths of the first `count` strings of a chunk, [count] each."""
    cdef int64_t k, record, total = 0, places
    opened(data, at, b"CQDB", count, 16)
    places = at + word(data, at + 20)
    if word(data, at + 12) != BYTE_ORDER or places + 4 * count > data.shape[0]:
        raise ValueError("its strings are cut off")
    begins, sizes = array("q", (0,)) * count, array("q", (0,)) * count
    cdef int64_t[::1] starts = begins, lengths = sizes
    for k in range(count):
        record = word(data, places + 4 * k)
        if not record:
            raise ValueError(f"the string of number {k} is not there")
        starts[k], lengths[k] = at + record + 8, word(data, at + record + 4) - 1
        if lengths[k] < 0 or starts[k] + lengths[k] >= data.shape[0] or data[starts[k] + lengths[k]]:
            raise ValueError("a string does not end")
        total += lengths[k]
        if total > data.shape[0]:
            raise ValueError("its strings are longer than the file")
    return begins, sizes


cdef tuple references(const uint8_t[::1] data, int64_t at, bytes magic, int64_t count, int64_t features, int64_t Y):
    """Return where the features of `count` sources end [count+1], their labels [K] and weights [K]."""
    cdef int64_t k, e, number, place, listed = opened(data, features, b"FEAT", 0, 8)
    cdef uint64_t bits
    cdef double largest = LARGEST
    opened(data, at, magic, count, 8)
    if at + 12 + 4 * count > data.shape[0] or features + 12 + RECORD * listed > data.shape[0]:
        raise ValueError("its features are cut off")
    borders = array("q", (0,)) * (count + 1)
    cdef int64_t[::1] ends = borders
    for k in range(count):
        ends[k + 1] = ends[k] + word(data, word(data, at + 12 + 4 * k))
        if ends[k + 1] > listed:
            raise ValueError("it lists more features than it has")
    labels, weights = array("i", (0,)) * ends[count], array("d", (0,)) * ends[count]
    cdef int32_t[::1] columns = labels
    cdef double[::1] values = weights
    for k in range(count):
        place = word(data, at + 12 + 4 * k) + 4
        for e in range(ends[k], ends[k + 1]):
            number = features + 12 + RECORD * word(data, place + 4 * (e - ends[k]))
            bits = word(data, number + 12) | <uint64_t>word(data, number + 16) << 32
            memcpy(&values[e], &bits, 8)
            columns[e] = word(data, number + 8)
            if number >= features + 12 + RECORD * listed or not (0 <= columns[e] < Y and fabs(values[e]) <= largest):
                raise ValueError("a feature, its label or a finite weight is not there")
    return borders, labels, weights


cdef tuple parts(const uint8_t[::1] data, int64_t Y, int64_t A, places):
    features, labels, attributes, of_labels, of_attributes = places
    cdef int64_t[::1] ends
    cdef int64_t y, e
    names = strings(data, labels, Y) + strings(data, attributes, A)
    borders, to, pairs = references(data, of_labels, b"LFRF", Y, features, Y)
    states = references(data, of_attributes, b"AFRF", A, features, Y)
    ends, transitions, listed = borders, array("d", (0,)) * (Y * Y), array("B", (0,)) * (Y * Y)
    cdef double[::1] values = pairs, matrix = transitions
    cdef int32_t[::1] columns = to
    cdef uint8_t[::1] known = listed
    for y in range(Y):
        for e in range(ends[y], ends[y + 1]):
            matrix[y * Y + columns[e]], known[y * Y + columns[e]] = values[e], True
    return *names, *states, transitions, listed


def read_crfsuite_parts(bytes data, str source):
    """Return labels, their places, and members of a `CrfsuiteModel` behind its text.

    Places are where each label begins and its length, [2 Y]. All of them are arrays of Python.
    """
    try:
        if len(data) < HEADER.size:
            raise ValueError("its header is cut off")
        _, _, kind, version, _, Y, A, *places = HEADER.unpack_from(data)
        if kind != KIND or version != VERSION:
            found = f"type {kind.decode('latin-1')!r} and version {version}"
            raise FileFormatError(f"{source}: a CRFsuite model of {found}; only FOMC of version {VERSION} can be read")
        if not 1 <= Y <= MOST_LABELS:
            raise ValueError(f"it has {Y:,} labels")
        starts, lengths, *more = parts(data, Y, A, places)
        both = list(zip(starts, lengths))
        labels = tuple([data[start:start + length].decode() for start, length in both])
        return labels, array("I", [number for place in both for number in place]), tuple(more)
    except UnicodeDecodeError:
        raise FileFormatError(f"{source}: a CRFsuite model whose labels are not UTF-8") from None
    except ValueError as error:
        raise damaged("CRFsuite", source, str(error)) from None
