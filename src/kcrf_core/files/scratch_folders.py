"""Folders of scratch files that are removed with the process that made them, or by the next one in the same place.

A folder has a file that its owner holds a lock on, which the system releases however the process ends; making another
folder in the place removes those of this machine whose lock is free. Without locks nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from typing import IO

from .writing import TEMPORARY, naming, temporary_beside

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

OWNER = ".owner"


class ScratchFolder:
    """A new folder that only its owner may look into, unless `mode` is another."""

    def __init__(self, place: str, mode: int = 0o700):
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            there = [each for each in entries if TEMPORARY.fullmatch(each.name)]
            folders = [each.path for each in there if each.is_dir(follow_symlinks=False)]
            for path in filter(_is_abandoned, folders):
                shutil.rmtree(path, ignore_errors=True)
        self.path = temporary_beside(os.path.join(place, ""))
        self._claim: IO[str] | None = None
        try:
            with naming(place, self.path):
                os.mkdir(self.path, mode)
            self._claim = _claimed(self.path)
        except BaseException:  # an interrupt may come at any moment
            self.remove()
            raise

    def release(self) -> None:
        """Let it stay when this process ends."""
        if self._claim is not None:
            # While it is locked: no other process may take the folder for abandoned.
            os.unlink(os.path.join(self.path, OWNER))
            self._claim.close()
            self._claim = None

    def remove(self) -> None:
        if self._claim is not None:
            self._claim.close()  # Windows removes no file that is open
        shutil.rmtree(self.path, ignore_errors=True)


def _claimed(folder: str) -> IO[str] | None:
    """Return the file that names the owner of a folder, locked before it has its name."""
    if fcntl is None:
        return None
    path = os.path.join(folder, OWNER)
    stream = open(path + ".new", "x", encoding="utf-8")  # noqa: SIM115, it lives as long as the folder
    try:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # a file system without locks
            stream.close()
            os.unlink(path + ".new")
            return None
        stream.write(socket.gethostname())
        stream.flush()
        os.rename(path + ".new", path)
    except BaseException:
        stream.close()
        raise
    return stream


def _is_abandoned(folder: str) -> bool:
    if fcntl is None:
        return False
    try:
        with open(os.path.join(folder, OWNER), encoding="utf-8") as stream:
            if stream.read() != socket.gethostname():
                return False
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(stream.fileno()), os.stat(stream.name))  # else it was released meanwhile
    except (OSError, ValueError):  # its owner lives, or it is none of ours
        return False
