"""Locks and threads in a process that is forked while other threads are at work.

A forked process has one thread, and a copy of every lock: one that another thread held is never released. So objects
with locks or threads that threads may share are registered here and make new ones in the child. The data that locks
protect is consistent at any moment, as the interpreter's lock is held while a process is forked.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewable(Protocol):
    """Something with locks or threads."""

    def renew(self) -> None:
        """Replace them: this is another process, with one thread."""


_KNOWN: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_after_fork(thing: Renewable) -> None:
    """Have `thing.renew()` called in processes that are forked from this one while it exists."""
    _KNOWN.add(thing)


def _renew() -> None:
    for thing in list(_KNOWN):
        thing.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_renew)
