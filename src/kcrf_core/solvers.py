"""The former place of `kcrf_core.objective.solvers`."""

import warnings
from typing import Any

from .objective import solvers


def __getattr__(name: str) -> Any:
    found = getattr(solvers, name)
    warnings.warn("kcrf_core.solvers is now kcrf_core.objective.solvers", DeprecationWarning, stacklevel=2)
    return found
