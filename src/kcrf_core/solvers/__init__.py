"""Solvers: one file each, one signature, one table of names.

    SOLVERS[name](posterior, theta, run) -> SolverResult

Each file has a `descend` that steps downhill from theta until its run stops it.
"""

from functools import partial

from .._lazy import lazy
from . import block_jacobi, lbfgs, nested, newton, subspace
from .run import until_stopped

SOLVERS = {
    "auto": partial(until_stopped, nested.descend),
    "lbfgs": partial(until_stopped, lbfgs.descend),
    "newton": partial(until_stopped, newton.descend),
    "block-jacobi": partial(until_stopped, block_jacobi.descend),
    "subspace": partial(until_stopped, subspace.descend),
}

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "lbfgs": ["vectors_held"],
        "run": ["BEST", "CERTIFIED", "INTERRUPTED", "PASSES", "PRUNED", "Progress", "Run", "SolverResult", "moved"],
    },
)
