"""The memory that a run may fill with what it could also compute again.

A budget decides what is kept and what is recomputed, never the result. Whoever holds a large table reserves its bytes
here and gives them back when it is gone; what is not granted is recomputed whenever it is needed.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path

# The part of free memory that tables may take where nothing is said: data, weights and other programs want some, too.
DEFAULT_SHARE = 0.6

# Where the memory of this machine cannot be found out.
FALLBACK = 4 << 30

UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Budget:
    """Bytes that may be held, and how many of them are."""

    def __init__(self, total: int | None = None):
        self.total = int(DEFAULT_SHARE * free_memory()) if total is None else total
        self._left = self.total
        self._lock = threading.Lock()

    def reserve(self, owner: object, wanted: int, unit: int) -> int:
        """Bytes granted, a multiple of `unit` or all that is wanted; they come back when `owner` is gone."""
        with self._lock:
            granted = wanted if wanted <= self._left else max(self._left, 0) // unit * unit
            self._left -= granted
        weakref.finalize(owner, self._release, granted).atexit = False
        return granted

    def spend(self, owner: object, needed: int) -> None:
        """Count what has to be held in any case, until `owner` is gone."""
        with self._lock:
            self._left -= needed
        weakref.finalize(owner, self._release, needed).atexit = False

    def _release(self, granted: int) -> None:
        with self._lock:
            self._left += granted


def hand_back() -> None:
    """Give memory that was freed back to the system, where the C library can be asked to; glibc keeps a good part."""
    with suppress(OSError, AttributeError, TypeError):  # another library, or Windows
        ctypes.CDLL(None).malloc_trim(0)


def free_memory() -> int:
    """Bytes that this process could still take without driving anything out of memory."""
    found = [_available(), *_group_limits()]
    known = [value for value in found if value is not None]
    return min(known) if known else FALLBACK


def _available() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2  # macOS
    except (AttributeError, ValueError, OSError):
        return None


def _group_limits() -> list[int]:
    """What the control groups of this process leave: a container may have less than its machine."""
    try:
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8").strip().splitlines()[-1].split("::", 1)[1]
        folders = [Path("/sys/fs/cgroup") / own.strip("/"), Path("/sys/fs/cgroup")]
    except (OSError, IndexError):
        return []
    found = []
    for folder in folders:
        try:
            limit = int((folder / "memory.max").read_text(encoding="ascii"))
            used = int((folder / "memory.current").read_text(encoding="ascii"))
        except (OSError, ValueError):  # none, or the word max
            continue
        found.append(max(limit - used, 0))
    return found


def size_text(count: float) -> str:
    """Bytes for people: 1.5 GiB."""
    number = 0
    while count >= 1000 and number < len(UNITS) - 1:
        count, number = count / 1024, number + 1
    return f"{count:.3g} {UNITS[number]}"
