from collections.abc import Callable

from ...system import Registry
from .bundle import PROOF_POINTS
from .lbfgs import fit_bytes
from .observer import (
    ALL_TERMS,
    ALWAYS,
    CHANCE,
    DROPPED,
    EXCLUDED,
    TAKEN,
    UNCONFIRMED,
    UNDECIDED,
    DevProgress,
    DevScore,
    Event,
    GrowthRound,
    Note,
    Observer,
    Stage,
    Structure,
    TermJudgement,
    Trial,
)
from .run import (
    BEST,
    CERTIFIED,
    INTERRUPTED,
    PASSES,
    PRUNED,
    STATE_CLASSES,
    STATIONARY,
    Progress,
    Run,
    SolverResult,
    moved,
)

SOLVERS: Registry[Callable[..., SolverResult]]

__all__ = [
    "ALL_TERMS",
    "ALWAYS",
    "BEST",
    "CERTIFIED",
    "CHANCE",
    "DROPPED",
    "EXCLUDED",
    "INTERRUPTED",
    "PASSES",
    "PROOF_POINTS",
    "PRUNED",
    "STATE_CLASSES",
    "STATIONARY",
    "TAKEN",
    "UNCONFIRMED",
    "UNDECIDED",
    "DevProgress",
    "DevScore",
    "Event",
    "GrowthRound",
    "Note",
    "Observer",
    "Progress",
    "Run",
    "SolverResult",
    "Stage",
    "Structure",
    "TermJudgement",
    "Trial",
    "fit_bytes",
    "moved",
]
