"""SciPy's linear algebra, imported when something of it is first asked for.

It takes 20 MB and brings a BLAS of its own. Training on features alone never asks for it; whoever does while BLAS is
held to one thread finds this one held, too.

`in_place` has a few of LAPACK's functions for matrices by rows. They work in place and without the interpreter's lock.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import _lapack
from .threads import ONE_BLAS_THREAD


class _LinearAlgebra:
    """Has the names of `scipy.linalg`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module("scipy.linalg"), name)
        _hold_blas()
        setattr(self, name, found)
        return found


class _InPlace:
    """Has the names of `_lapack`."""

    def __getattr__(self, name: str) -> Any:
        lapack, blas = (import_module(f"scipy.linalg.cython_{each}") for each in ("lapack", "blas"))
        _hold_blas()
        if not _lapack.loaded():
            _lapack.load(lapack.__pyx_capi__, blas.__pyx_capi__)
        found = getattr(_lapack, name)
        setattr(self, name, found)
        return found


def _hold_blas() -> None:
    """Look for libraries that are new, and hold them to one thread for as long as anybody holds others."""
    with ONE_BLAS_THREAD:
        pass


linear_algebra, in_place = _LinearAlgebra(), _InPlace()
