"""Files that are written whole or not at all, folders of scratch files, and errors of writing that name the file.

A file that takes the place of another one is as private as that was. A new one obeys the umask. On the way, a file is
never more readable than it will be.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
from collections.abc import Iterator
from typing import IO, Any

BINARY = getattr(os, "O_BINARY", 0)  # Windows
ACCESS_LIST = "system.posix_acl_access"  # an extended attribute; with it, the bits of the group are something else


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a binary file that takes the place of `path` when the block ends well, and is removed otherwise."""
    path = os.fspath(path)
    if not path:
        raise FileNotFoundError(errno.ENOENT, "an empty name is no file", path)
    if os.path.exists(path) and not os.path.isfile(path):
        # A device or a pipe, such as /dev/null, cannot be replaced.
        with io.BufferedWriter(NamedDevice(path, os.open(path, os.O_WRONLY | BINARY))) as stream:
            yield stream
        return
    target = os.path.realpath(path)  # a link keeps pointing where it pointed
    before = os.stat(target) if os.path.exists(target) else None
    # The name is known before the file is there: an interrupt at any moment finds it to remove.
    temporary = temporary_beside(target)
    try:
        with naming(path, temporary):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            number = os.open(temporary, flags | BINARY, 0o666 if before is None else 0o600)
        with io.BufferedWriter(NamedFile(path, number)) as stream:
            yield stream
            stream.flush()
            with naming(path):
                if before is not None:
                    _make_alike(stream.fileno(), target, before)
                os.fsync(stream.fileno())
        with naming(path, temporary):
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def temporary_beside(target: str) -> str:
    """Return a new name in the folder of another one."""
    return os.path.join(os.path.dirname(target), f".kcrf-{os.urandom(8).hex()}.tmp")


@contextlib.contextmanager
def naming(path: str, *instead: str) -> Iterator[None]:
    """Let errors of the system that name no file, or one of `instead`, name `path`, which the user asked for."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or error.filename in instead):
            raise OSError(error.errno, error.strerror, path) from None
        raise


class NamedFile(io.FileIO):
    """An open file to write to, whose errors, such as a full disk, name it."""

    def __init__(self, path: str, number: int):
        self._path = path
        super().__init__(number, "wb")

    def write(self, data: Any) -> int:
        with naming(self._path):
            return super().write(data)

    def close(self) -> None:
        with naming(self._path):
            super().close()


class NamedDevice(NamedFile):
    """An open device or pipe to write to, which has no positions.

    /dev/null takes every seek and says that it is at 0, from which `zipfile` computes negative sizes.
    """

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        raise io.UnsupportedOperation("seek")

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


def _make_alike(number: int, target: str, before: os.stat_result) -> None:
    """Give an open file the owner, group and permissions of the file that it takes the place of.

    Where the group cannot be kept, another one gets no more than everybody has; where a list of access rights cannot
    be, the group gets nothing. Permissions that a file system does not take leave the file private.
    """
    if not hasattr(os, "fchown"):  # Windows, where files inherit the rights of their folder
        return
    mode, now = before.st_mode & 0o777, os.fstat(number)
    with contextlib.suppress(OSError):  # only root gives files away
        if now.st_uid != before.st_uid:
            os.fchown(number, before.st_uid, -1)
    try:
        if now.st_gid != before.st_gid:
            os.fchown(number, -1, before.st_gid)
    except OSError:
        mode &= ~0o070 | (mode & 0o007) << 3
    try:
        rights = os.getxattr(target, ACCESS_LIST)
    except (AttributeError, OSError):  # a system without such lists, or a file without
        rights = None
    with contextlib.suppress(OSError):
        os.fchmod(number, mode if rights is None else mode & ~0o070)
        if rights is not None and os.fstat(number).st_gid == before.st_gid:
            os.setxattr(number, ACCESS_LIST, rights)


class ScratchFolder:
    """A new folder that only its owner may look into, unless `mode` is another.

    It is removed when the work that needs it ends or is interrupted.
    """

    def __init__(self, place: str, mode: int = 0o700):
        self.path = temporary_beside(os.path.join(place, ""))
        try:
            with naming(place, self.path):
                os.mkdir(self.path, mode)
        except BaseException:  # an interrupt may come at any moment
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
