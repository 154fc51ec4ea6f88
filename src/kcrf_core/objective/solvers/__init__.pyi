from collections.abc import Callable

from ...system import Registry
from .observer import (
    ALL_TERMS as ALL_TERMS,
    ALWAYS as ALWAYS,
    CHANCE as CHANCE,
    DROPPED as DROPPED,
    EXCLUDED as EXCLUDED,
    TAKEN as TAKEN,
    UNCONFIRMED as UNCONFIRMED,
    UNDECIDED as UNDECIDED,
    Event as Event,
    GrowthRound as GrowthRound,
    Note as Note,
    Observer as Observer,
    Stage as Stage,
    Structure as Structure,
    TermJudgement as TermJudgement,
    Trial as Trial,
)
from .run import (
    CERTIFIED as CERTIFIED,
    INTERRUPTED as INTERRUPTED,
    NATS_PER_1000 as NATS_PER_1000,
    PASSES as PASSES,
    PRUNED as PRUNED,
    SHARE as SHARE,
    STATIONARY as STATIONARY,
    Progress as Progress,
    Run as Run,
    SolverResult as SolverResult,
    Tolerance as Tolerance,
    moved as moved,
)

SOLVERS: Registry[Callable[..., SolverResult]]
