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
    FinalFit,
    GrowthRound,
    Note,
    Observer,
    PivotsChosen,
    Stage,
    Structure,
    TermJudgement,
    Trial,
    WorkersThere,
)
from .run import BEST, CERTIFIED, INTERRUPTED, PASSES, PRUNED, STATE_CLASSES, Progress, Run, SolverResult, moved

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
    "TAKEN",
    "UNCONFIRMED",
    "UNDECIDED",
    "DevProgress",
    "DevScore",
    "Event",
    "FinalFit",
    "GrowthRound",
    "Note",
    "Observer",
    "PivotsChosen",
    "Progress",
    "Run",
    "SolverResult",
    "Stage",
    "Structure",
    "TermJudgement",
    "Trial",
    "WorkersThere",
    "fit_bytes",
    "moved",
]
