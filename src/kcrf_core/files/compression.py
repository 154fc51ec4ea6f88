"""Text compressed by gzip, recognised by the end of a file's name and read as a stream.

Several streams one after the other are one text, as for the program gzip. A truncated stream and bytes behind the last
one are errors (zeros behind it, as tapes leave them, are not).
"""

from __future__ import annotations

import gzip
import os
import zlib
from typing import IO

from ..errors import DataError


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return True if the name of a file says that it is compressed."""
    return os.path.splitext(path)[1] == ".gz"


class CompressedText(gzip.GzipFile):
    """The text of a compressed file; the error for a damaged file names it."""

    def __init__(self, packed: IO[bytes], name: str):
        super().__init__(fileobj=packed, mode="rb")
        self._shown = name

    def read1(self, size: int = -1) -> bytes:
        try:
            return self.read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            hint = "copy the file again, or rename it if it is not compressed"
            raise DataError(f"damaged gzip data: {error} ({hint})", self._shown) from None


def compressing(stream: IO[bytes]) -> gzip.GzipFile:
    """Return a stream that writes compressed data to another one. The same text gives the same bytes."""
    return gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0)
