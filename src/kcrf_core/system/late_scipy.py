"""SciPy's linear algebra, imported when it is first used: it takes 20 MB and brings a BLAS of its own.

`in_place` has functions of LAPACK for matrices by rows, which work in place and without the interpreter's lock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from . import _lapack
from .memory import check_room_for_blas
from .threads import ONE_BLAS_THREAD


class _Late:
    """Names of a module that is loaded when one of them is first used."""

    def __init__(self, load: Callable[[], ModuleType]):
        self._load = load

    def __getattr__(self, name: str) -> Any:
        module = self._load()
        with ONE_BLAS_THREAD:  # finds the new library, and limits it while others are limited
            found = getattr(module, name)
        setattr(self, name, found)
        return found


def scipy_module(name: str) -> Any:
    """Import a module of SciPy that brings BLAS, such as `linalg` or `special`."""
    if "scipy.linalg" not in sys.modules:
        check_room_for_blas("SciPy")
    return import_module(f"scipy.{name}")


def _loaded_lapack() -> ModuleType:
    lapack, blas = (scipy_module(f"linalg.cython_{each}") for each in ("lapack", "blas"))
    _lapack.load(lapack.__pyx_capi__, blas.__pyx_capi__)
    return _lapack


linear_algebra, in_place = _Late(lambda: scipy_module("linalg")), _Late(_loaded_lapack)
