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
    variances_text as variances_text,
)
from .run import Progress as Progress, Run as Run
from .stopping import (
    CERTIFIED as CERTIFIED,
    INTERRUPTED as INTERRUPTED,
    NATS_PER_1000 as NATS_PER_1000,
    PASSES as PASSES,
    PRUNED as PRUNED,
    SHARE as SHARE,
    STATIONARY as STATIONARY,
    SolverResult as SolverResult,
    Tolerance as Tolerance,
    moved as moved,
)
from .wolfe import line_search as line_search

SOLVERS: Registry[Callable[..., SolverResult]]
