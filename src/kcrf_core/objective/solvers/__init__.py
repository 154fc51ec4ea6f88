"""Solvers: one signature, one table of names.

    SOLVERS[name](objective, theta, run) -> SolverResult

A registered function `descend(objective, theta, now, run)` steps downhill from theta until its run stops it, or returns
where rounding hides all progress; `now` is the evaluation at theta, or None where there is none yet. See `newton` for
a short one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from ..._lazy import lazy
from ...system import Registry


class _Solvers(Registry[Callable[..., Any]]):
    """Solvers by name: a lookup wraps `descend` into a function that restarts it until the run is over."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        from .run import until_stopped

        return partial(until_stopped, super().__getitem__(name))


SOLVERS = _Solvers(
    "solver",
    __name__,
    {
        "auto": "nested:descend",
        "lbfgs": "lbfgs:descend",
        "newton": "newton:descend",
        "block-jacobi": "block_jacobi:descend",
        "subspace": "block_jacobi:descend_by_subspace",
        "proximal": "proximal:descend",
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
