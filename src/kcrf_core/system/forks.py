"""Locks and threads in a process that is forked while other threads are at work.

A forked process has one thread, and a copy of every lock as it was: one that another thread held is never released.
So what has locks or threads, and may be shared by threads, is registered here, and makes new ones in the child. What
the locks protect is whole at any moment, for the interpreter's lock is held where a process is forked.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from functools import cached_property
from typing import Protocol


class Renewable(Protocol):
    """Something with locks or threads."""

    def renew(self) -> None:
        """Replace them: this is another process, with one thread."""


_KNOWN: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_after_fork(thing: Renewable) -> None:
    """Have `thing.renew()` called in processes that are forked from this one, as long as it is there."""
    _KNOWN.add(thing)


def _renew() -> None:
    for thing in list(_KNOWN):
        thing.renew()
    if sys.version_info < (3, 12):
        _renew_cached_properties()


def _renew_cached_properties() -> None:
    """Replace the locks that cached properties have before Python 3.12: one for all objects of a class."""
    package = __name__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package:
            for kind in [value for value in vars(module).values() if isinstance(value, type)]:
                for own in vars(kind).values():
                    if isinstance(own, cached_property):
                        vars(own)["lock"] = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_renew)
