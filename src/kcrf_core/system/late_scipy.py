"""SciPy's linear algebra, imported when something of it is first asked for.

It takes 20 MB and brings a BLAS of its own. Training on features alone never asks for it; whoever does while BLAS is
held to one thread finds this one held, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .threads import ONE_BLAS_THREAD


class _LinearAlgebra:
    """Has the names of `scipy.linalg`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module("scipy.linalg"), name)
        with ONE_BLAS_THREAD:  # looks for libraries that are new, and holds them for as long as anybody is inside
            pass
        setattr(self, name, found)
        return found


linear_algebra = _LinearAlgebra()
