"""Solvers: one file each, one signature, one table of names.

minimise(posterior, theta, run) -> SolverResult
"""

from __future__ import annotations

from . import block_jacobi, lbfgs, newton, subspace
from .run import CERTIFIED, INTERRUPTED, PASSES, PRECISION, Progress, Run, SolverResult

SOLVERS = {
    "lbfgs": lbfgs.minimise,
    "newton": newton.minimise,
    "block-jacobi": block_jacobi.minimise,
    "subspace": subspace.minimise,
}
DEFAULT_SOLVER = "lbfgs"

__all__ = [
    "CERTIFIED",
    "DEFAULT_SOLVER",
    "INTERRUPTED",
    "PASSES",
    "PRECISION",
    "SOLVERS",
    "Progress",
    "Run",
    "SolverResult",
]
