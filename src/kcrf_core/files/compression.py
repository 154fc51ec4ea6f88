"""Compressed text, recognised by the end of a file's name: .gz, .bz2 and .xz, read as a stream.

Several streams one after the other are one text, as for the programs gzip, bzip2 and xz. A truncated stream and bytes
behind the last one are errors (zeros behind it, as tapes leave them, are not).
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import IO, Any

from ..errors import DataError

COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}  # by the suffix of a name

READ_SIZE = 1 << 16  # bytes of a compressed file at a time
MOST_MEMORY = 1 << 28  # for the dictionary of an .xz file; `xz -9` needs a quarter of it


def unpacked(packed: IO[bytes], kind: str, name: str) -> io.BufferedReader:
    """Return the text of a compressed file. Closing it closes the file."""
    return io.BufferedReader(_Unpacked(packed, kind, name), READ_SIZE)


def packing(stream: IO[bytes], kind: str) -> IO[bytes]:
    """Return a stream that writes compressed data to another one. The same text gives the same bytes."""
    if kind == "gzip":
        import gzip

        # A file of bytes in all that is used of it, though not for typeshed.
        return gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0)  # type: ignore[return-value]
    if kind == "bzip2":
        import bz2

        return bz2.BZ2File(stream, "wb")
    import lzma

    return lzma.LZMAFile(stream, "wb")


class _Unpacked(io.RawIOBase):
    """The bytes that a file of compressed streams holds."""

    def __init__(self, packed: IO[bytes], kind: str, name: str):
        self._packed, self._kind, self._name = packed, kind, name
        self._begin, self._errors = _decompressor(kind)
        self._stream: Any = None  # the one that is being read; None between two of them
        self._streams = 0
        self._input = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if not self._input:
                self._input = self._packed.read(READ_SIZE)
            ended = not self._input
            if self._stream is None:
                if ended:
                    return 0
                if self._streams:
                    self._input = self._input.lstrip(b"\0")
                    if not self._input:
                        continue
                self._stream = self._begin()
                self._streams += 1
            try:
                data, self._input, done = _decompressed(self._stream, self._input, len(buffer))
            except self._errors as error:
                if "Memory usage limit" in str(error):  # liblzma has no other sign of it
                    limit = f"needs more than {MOST_MEMORY >> 20} MiB to be decompressed (pipe it through xzcat)"
                    raise DataError(limit, self._name) from None
                behind = "after its first stream: " if self._streams > 1 else ""
                raise self._damaged(f"{behind}{error}") from None
            if done:
                self._stream = None
            elif ended and not data:
                raise self._damaged("it is truncated")
            if data:
                buffer[: len(data)] = data
                return len(data)

    def _damaged(self, reason: str) -> DataError:
        hint = "copy the file again, or rename it if it is not compressed"
        return DataError(f"damaged {self._kind} data: {reason} ({hint})", self._name)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()


def _decompressor(kind: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return a function that makes a decompressor of one stream, and the errors of that."""
    if kind == "gzip":
        return lambda: zlib.decompressobj(wbits=31), (zlib.error,)
    if kind == "bzip2":
        import bz2

        return bz2.BZ2Decompressor, (OSError, ValueError)
    import lzma

    return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY), (lzma.LZMAError,)


def _decompressed(stream: Any, data: bytes, size: int) -> tuple[bytes, bytes, bool]:
    """Return up to `size` bytes, the rest of the input, and True if the stream has ended."""
    if hasattr(stream, "unconsumed_tail"):  # gzip: zlib hands back what it did not get to
        out = stream.decompress(data, size)
        return out, stream.unused_data if stream.eof else stream.unconsumed_tail, stream.eof
    # The others keep what they did not get to, and take no more before that is used up.
    hungry = stream.needs_input
    out = stream.decompress(data if hungry else b"", size)
    left = b"" if hungry else data
    return out, stream.unused_data + left if stream.eof else left, stream.eof
