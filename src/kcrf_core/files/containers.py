"""The `.npz` container of datasets, bases and models.

It holds plain little-endian arrays, and a JSON header under the name `header`: a magic word, the kind of file, a format
number, the version that wrote it and the names of the arrays. There is no pickle, no path, no time and no host in it,
so equal content gives equal bytes.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import struct
import sys
import zipfile
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, TypeVar

from .._lazy import deferred
from .._version import __version__
from ..errors import FileFormatError
from ..runtime import largest_size
from .writing import replacing

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse
else:
    np = deferred("numpy")  # PlainContents needs none

MAGIC = "kcrf"
# Files that are given in the place of ours, by their first bytes.
OTHER_FILES = {
    b"lCRF": "a model of CRFsuite, which 'kcrf import' converts",
    b"#mdl": "a model of Wapiti, which 'kcrf import' converts",
    b"KCRF": "a model for kcrf-tag, which 'kcrf export' wrote: give the .npz file that it was made of",
}
FORMAT = 4
HASHED_AT_ONCE = 1 << 20  # bytes
SPOOLED = 1 << 26  # bytes of a container that is written to memory, to find its size
Made = TypeVar("Made")
# Arrays as NumPy writes them, and the letters of their types for memoryviews.
ARRAY_HEADER = re.compile(
    rb"\x93NUMPY\x01\0..\{'descr': '([<|]\w\d)', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n", re.DOTALL
)
LETTERS_IN_FILES = {"|u1": "B", "|b1": "?", "<i4": "i", "<i8": "q", "<u8": "Q", "<f8": "d"}
LETTERS = {"uint8": "B", "bool": "?", "int32": "i", "int64": "q", "uint64": "Q", "float64": "d"}


def pack_strings(strings: Sequence[str], name: str) -> dict[str, np.ndarray]:
    """Return strings as one UTF-8 blob and the offsets of their ends, under `name.text` and `name.ends`."""
    encoded = [string.encode("utf-8") for string in strings]
    ends = np.cumsum([len(item) for item in encoded], dtype=np.int64) if encoded else np.zeros(0, np.int64)
    return {f"{name}.text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}.ends": ends}


def pack_sparse(matrix: scipy.sparse.csr_array, name: str) -> dict[str, np.ndarray]:
    """Return compressed rows under `name.indptr`, `name.indices` and `name.values`."""
    return {
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.indices": matrix.indices.astype(np.int32, copy=False),
        f"{name}.values": matrix.data,
    }


class Contents:
    """Contents of a container, checked by every access."""

    def __init__(self, path: str, header: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.path, self.header, self.arrays = path, header, arrays
        self._made: dict[tuple[bytes, bytes, Hashable], Any] = {}

    def once(self, name: str, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the result of `make`, one object for all strings (see `strings`) with the same content and key."""
        text, ends = (self.array(f"{name}.{part}", kind, 1) for part, kind in (("text", "uint8"), ("ends", "int64")))
        content = (text.tobytes(), ends.tobytes(), key)
        if content not in self._made:
            self._made[content] = make()
        return self._made[content]

    @staticmethod
    def read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
        """Return the array of a member."""
        with archive.open(member) as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
            if stream.read(1):
                raise ValueError(f"there are bytes after the array {member.filename}")
        return array

    def error(self, message: str) -> FileFormatError:
        return FileFormatError(f"{self.path}: damaged or altered: {message}")

    def array(self, name: str, kind: str, ndim: int, largest: float = math.inf) -> np.ndarray:
        """Return the array `name`, whose dtype must be `kind` ("int32", "float64" and the like).

        Its numbers must be finite and, with their sign left out, no larger than `largest`.
        """
        array = self.arrays.get(name)
        if not isinstance(array, np.ndarray):  # NumPy hands out the bytes of members that are no arrays
            raise self.error(f"'{name}' is missing")
        if array.dtype != np.dtype(kind) or array.ndim != ndim:
            raise self.error(f"'{name}' is {array.dtype}{list(array.shape)}, expected {ndim}-dimensional {kind}")
        if array.dtype.kind == "f" and array.size:
            size = max(-float(array.min()), float(array.max()))  # no number where one of them is none
            if not size < math.inf:
                raise self.error(f"'{name}' holds values that are not finite")
            if size > largest:
                raise self.error(f"'{name}' holds values beyond {largest:g}")
        return np.ascontiguousarray(array)

    def strings(self, name: str) -> list[str]:
        text = self.array(f"{name}.text", "uint8", 1).tobytes()
        ends = self.array(f"{name}.ends", "int64", 1)
        bounds = [0, *ends.tolist()]
        if bounds[-1] != len(text) or bounds != sorted(bounds):
            raise self.error(f"'{name}' has offsets that do not fit its text")
        if text.isascii():  # half of the time
            whole = text.decode("ascii")
            return [whole[a:b] for a, b in pairwise(bounds)]
        try:
            return [text[a:b].decode("utf-8") for a, b in pairwise(bounds)]
        except UnicodeDecodeError:
            raise self.error(f"'{name}' is not UTF-8") from None

    def sparse(self, name: str, rows: int, width: int, largest: float = math.inf) -> scipy.sparse.csr_array:
        """Return compressed rows of the given shape."""
        indptr = self.array(f"{name}.indptr", "int64", 1)
        indices = self.array(f"{name}.indices", "int32", 1)
        values = self.array(f"{name}.values", "float64", 1, largest)
        fits = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(values)
        if not fits or np.any(np.diff(indptr) < 0) or np.any((indices < 0) | (indices >= width)):
            raise self.error(f"'{name}' does not fit")
        import scipy.sparse

        small = np.int32 if len(indices) < np.iinfo(np.int32).max else np.int64  # columns get the type of ends, too
        return scipy.sparse.csr_array((values, indices, indptr.astype(small)), shape=(rows, width))

    def get(self, key: str, kind: type | tuple[type, ...]) -> Any:
        """Return a value of the header, of the given type."""
        value = self.header.get(key)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error(f"the header's '{key}' is missing or of the wrong type")
        return value


class PlainContents(Contents):
    """Contents of a container without NumPy; arrays are memoryviews."""

    @staticmethod
    def read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
        data = archive.read(member)
        found = ARRAY_HEADER.match(data)
        if found is None or found.end() - 10 != data[8] | data[9] << 8 or found.end() % 8:
            raise ValueError(f"the array {member.filename} is in no form that is read without NumPy")
        view: Any = memoryview(data)[found.end() :]
        return view.cast(LETTERS_IN_FILES[found[1].decode()], [int(size) for size in found[2].split(b",") if size])

    def array(self, name: str, kind: str, ndim: int, largest: float = math.inf) -> Any:
        view = self.arrays.get(name)
        if not isinstance(view, memoryview) or view.format != LETTERS.get(kind) or view.ndim != ndim:
            raise self.error(f"'{name}' is no {ndim}-dimensional {kind}")
        if kind == "float64" and not largest_size(view.cast("B").cast("d")) <= min(largest, sys.float_info.max):
            raise self.error(f"'{name}' holds values that are not finite or beyond {largest:g}")
        return view


def write_container(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a container atomically."""
    with replacing(path) as stream:
        _save(stream, kind, header, arrays)


def content_digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of the contents of a container."""
    import hashlib

    total = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        total.update(repr((name, array.dtype.str, array.shape)).encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    import hashlib

    total = hashlib.sha256()
    with open(path, "rb") as stream:
        while part := stream.read(HASHED_AT_ONCE):
            total.update(part)
    return total.hexdigest()


def container_size(kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> int:
    """Return the number of bytes that `write_container` writes."""
    import tempfile

    with tempfile.SpooledTemporaryFile(SPOOLED) as stream:
        _save(stream, kind, header, arrays)
        return stream.tell()


def _save(stream: Any, kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    own = {"magic": MAGIC, "kind": kind, "format": FORMAT, "version": __version__}
    full = {**own, **header, "arrays": sorted(arrays)}
    text = json.dumps(full, ensure_ascii=False, allow_nan=False, sort_keys=True)
    portable = {
        name: np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        for name, array in arrays.items()
    }
    # The only keyword of savez itself is allow_pickle, and no array has its name.
    np.savez(stream, header=np.frombuffer(text.encode("utf-8"), dtype=np.uint8), **portable)  # type: ignore[arg-type]


def read_container(
    path: str | os.PathLike[str], *kinds: str, data: bytes | None = None, form: type[Contents] = Contents
) -> Contents:
    """Read a container of one of the given kinds, from `data` where given; anything else is a FileFormatError."""
    shown, expected = os.fspath(path), " or ".join(f"a {kind}" for kind in kinds)
    with open(path, "rb") if data is None else io.BytesIO(data) as stream:
        begins = stream.read(4)
        if begins not in (b"PK\x03\x04", b"PK\x05\x06"):
            raise FileFormatError(f"{shown}: {OTHER_FILES.get(begins, 'not a kcrf file')} (expected {expected})")
        stream.seek(0)
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_members(archive, stream)
                arrays = {
                    member.filename.removesuffix(".npy"): form.read(archive, member) for member in archive.infolist()
                }
        except Exception as error:
            # Damage shows as nearly anything: BadZipFile, ValueError, EOFError, zlib.error, RuntimeError for a
            # bit for "encrypted", OSError for a place before the beginning, MemoryError for a shape.
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # the disk's, not the file's
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise FileFormatError(f"{shown}: truncated, damaged or not a kcrf file ({reason})") from None
    try:
        header = header_of(arrays.pop("header").tobytes().decode("utf-8"))
        if header["magic"] != MAGIC:
            raise ValueError
        found, number, version = header["kind"], header["format"], header["version"]
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError):
        raise FileFormatError(f"{shown}: an .npz file, but not one of kcrf (expected {expected})") from None
    if number != FORMAT:
        later = isinstance(number, int) and number > FORMAT
        raise FileFormatError(
            f"{shown}: format {number}, written by {'a later version, ' if later else ''}kcrf {version}; this is kcrf "
            f"{__version__}, which reads format {FORMAT}: {'upgrade kcrf' if later else 'train the model again'}"
        )
    if found not in kinds:
        raise FileFormatError(f"{shown}: a kcrf {found} file, expected {expected}")
    contents = form(shown, header, arrays)
    if header.pop("arrays", None) != sorted(arrays):  # one wrong bit in a zip directory can make members vanish
        raise contents.error("its arrays are not those that its header lists")
    return contents


def header_of(text: str) -> Any:
    """Return a header, checked: JSON can hold infinite numbers and text that UTF-8 cannot."""
    header = json.loads(text, parse_constant=_finite_number, parse_float=_finite_number, parse_int=_whole_number)
    if "\\ud" in text.lower():  # half of a pair, perhaps; we never write it
        json.dumps(header, ensure_ascii=False).encode("utf-8")
    return header


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number


def _whole_number(text: str) -> int:
    _finite_number(text)
    return int(text)


LOCAL_HEADER, END_RECORD = struct.Struct("<4s22xHH"), struct.Struct("<4s16xH")
DESCRIPTOR = 24  # bytes behind a member that was written to a pipe, for sizes that were not known before it
NOT_KNOWN_BEFORE = 0x08  # the flag of such members


def _check_members(archive: zipfile.ZipFile, stream: IO[bytes]) -> None:
    """Refuse a file with anything but uncompressed members of distinct names, one after the other.

    So its contents are no larger than the file, and are the same for every reader.
    """
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which kcrf never does")
    end = stream.seek(0, os.SEEK_END)
    if sum(member.file_size for member in members) > end:
        raise ValueError("its members are larger than the file")
    if len({member.filename.removesuffix(".npy") for member in members}) < len(members):
        raise ValueError("it has a member twice")
    place = 0
    for member in members:
        stream.seek(place)
        signature, name, extra = LOCAL_HEADER.unpack(stream.read(LOCAL_HEADER.size))
        if member.header_offset != place or signature != b"PK\x03\x04":
            raise ValueError("its members do not follow each other")
        described = DESCRIPTOR if member.flag_bits & NOT_KNOWN_BEFORE else 0
        place += LOCAL_HEADER.size + name + extra + member.file_size + described
    stream.seek(end - END_RECORD.size)
    signature, comment = END_RECORD.unpack(stream.read(END_RECORD.size))
    if place != archive.start_dir or signature != b"PK\x05\x06" or comment:
        raise ValueError("it has bytes besides its members")
