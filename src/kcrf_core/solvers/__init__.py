"""Solvers: one file each, one signature, one table of names.

    SOLVERS[name](posterior, theta, run) -> SolverResult

Each file has a `descend` that steps downhill from theta until its run stops it.
"""

from __future__ import annotations

from functools import partial

from . import block_jacobi, lbfgs, nested, newton, subspace
from .run import (
    BEST,
    CERTIFIED,
    INTERRUPTED,
    PASSES,
    PRECISION,
    PRUNED,
    STATIONARY,
    Progress,
    Run,
    SolverResult,
    until_stopped,
)

SOLVERS = {
    "auto": partial(until_stopped, nested.descend),
    "lbfgs": partial(until_stopped, lbfgs.descend),
    "newton": partial(until_stopped, newton.descend),
    "block-jacobi": partial(until_stopped, block_jacobi.descend),
    "subspace": partial(until_stopped, subspace.descend),
}

__all__ = [
    "BEST",
    "CERTIFIED",
    "INTERRUPTED",
    "PASSES",
    "PRECISION",
    "PRUNED",
    "SOLVERS",
    "STATIONARY",
    "Progress",
    "Run",
    "SolverResult",
]
