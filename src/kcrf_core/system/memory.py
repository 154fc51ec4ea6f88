"""The memory that a run may fill with tables that it could also compute again.

A budget decides what is kept and what is recomputed, never the result. Large tables reserve their bytes here and give
them back when they are gone; rows that are not granted are recomputed whenever they are needed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path

from ..errors import NoRoomError

DEFAULT_SHARE = 0.6  # of free memory that tables may take by default: data, weights and other programs need some, too
FALLBACK = 4 << 30  # if the memory of this machine cannot be found out
GROUPS = Path("/sys/fs/cgroup")
# Address space of a library with a BLAS: 98 MiB with SciPy 1.17, 40 MiB for each further thread.
BLAS_ROOM, THREAD_ROOM = 112 << 20, 48 << 20


class Budget:
    """Bytes that may be held, and how many of them are."""

    def __init__(self, total: int | None = None):
        self.total = int(DEFAULT_SHARE * free_memory()) if total is None else total
        self._left = self.total
        self.renew()

    def renew(self) -> None:
        """Replace the lock, in a process that was forked while it was held."""
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that nothing holds."""
        return max(self._left, 0)

    def reserve(self, owner: object, wanted: int, unit: int) -> int:
        """Return the bytes granted, a multiple of `unit` or all that is wanted, until `owner` is gone."""
        with self._lock:
            granted = wanted if wanted <= self._left else max(self._left, 0) // unit * unit
            self._left -= granted
        weakref.finalize(owner, self._add, granted).atexit = False
        return granted

    def spend(self, owner: object, needed: int) -> None:
        """Count bytes that have to be held in any case, until `owner` is gone."""
        self._add(-needed)
        weakref.finalize(owner, self._add, needed).atexit = False

    def _add(self, count: int) -> None:
        with self._lock:
            self._left += count


def hand_back() -> None:
    """Give freed memory back to the system if the C library offers that; glibc keeps a good part."""
    with suppress(OSError, AttributeError, TypeError):  # another library, or Windows
        ctypes.CDLL(None).malloc_trim(0)


def check_room_for_blas(library: str) -> None:
    """Raise an error where `ulimit -v` leaves too little address space for a library with a BLAS.

    OpenBLAS up to 0.3.30 asks again and again for memory that it does not get, and no signal is
    heard meanwhile.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    threads = os.environ.get("OPENBLAS_NUM_THREADS", "")
    others = (int(threads) if threads.isdecimal() else os.cpu_count() or 1) - 1
    needed = BLAS_ROOM + THREAD_ROOM * max(others, 0)
    try:
        mmap.mmap(-1, needed).close()
    except OSError:
        allowed, wanted = limit >> 20, needed >> 20
        raise NoRoomError(
            f"too little address space is left to load {library}: it needs {wanted:,} MiB, and all "
            f"of this process may have {allowed:,} MiB (ulimit -v): raise that limit"
        ) from None


def free_memory() -> int:
    """Return the bytes that this process could still take without driving anything out of memory."""
    return min([value for value in (_available(), *_group_limits()) if value is not None], default=FALLBACK)


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
    """Return the bytes that control groups leave this process: a container may have less than its machine.

    A limit of a group holds for all groups in it, so each folder from that of the process up counts. Version 1 has a
    tree for memory alone. A container may see names of groups that have no folder in it: these are passed over.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found = []
    for line in lines:
        _, controllers, own = [*line.split(":", 2), "", ""][:3]
        if "memory" in controllers.split(","):
            root, names = GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        elif not controllers:
            root, names = GROUPS, ("memory.max", "memory.current", "inactive_file")
        else:
            continue
        folder = root / own.strip("/")
        for one in (folder, *folder.parents):
            with suppress(OSError, ValueError):  # no such file, or the word max
                most, now = (int((one / name).read_text(encoding="ascii")) for name in names[:2])
                with suppress(OSError, ValueError):  # files that the system caches do not count as used
                    rows = (one / "memory.stat").read_text(encoding="ascii").splitlines()
                    now -= int(dict(line.split() for line in rows).get(names[2], 0))
                found.append(max(most - now, 0))
            if one == root:
                break
    return found
