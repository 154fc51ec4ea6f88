from collections.abc import Callable

from ..system import Registry
from .bundle import PROOF_POINTS
from .lbfgs import fit_bytes
from .run import BEST, CERTIFIED, INTERRUPTED, PASSES, PRUNED, STATE_CLASSES, Progress, Run, SolverResult, moved

SOLVERS: Registry[Callable[..., SolverResult]]

__all__ = [
    "BEST",
    "CERTIFIED",
    "INTERRUPTED",
    "PASSES",
    "PROOF_POINTS",
    "PRUNED",
    "STATE_CLASSES",
    "Progress",
    "Run",
    "SolverResult",
    "fit_bytes",
    "moved",
]
