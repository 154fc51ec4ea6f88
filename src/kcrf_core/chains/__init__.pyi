from ..system import Registry
from ._rules import Counters
from .chain import Edges, Labellings, best_labellings
from .cliques import (
    ABOVE,
    EDGE,
    EDGE2,
    EDGE_X,
    MATRIX,
    NODE,
    SEEN_TRANSITIONS,
    STATE,
    TRANSITIONS,
    Clique,
    Edge,
    InnerEdge,
    LabelClique,
    MappedClique,
    PartialSum,
    Potentials,
    Sums,
)
from .forward import Messages
from .partial_labels import Held, first_impossible, hold
from .problem import (
    Problem,
    borders_with_positions,
    borders_within,
    gathered,
    partition_borders,
    pieces_of,
    score_columns,
    spread,
)
from .rules import (
    EXACT,
    IMPOSSIBLE,
    LIMITED,
    MOST_STATES,
    NONE_FOUND,
    RunRules,
)
from .runs import run_probabilities

CLIQUES: Registry[Clique]

__all__ = [
    "ABOVE",
    "EDGE",
    "EDGE2",
    "EDGE_X",
    "EXACT",
    "IMPOSSIBLE",
    "LIMITED",
    "MATRIX",
    "MOST_STATES",
    "NODE",
    "NONE_FOUND",
    "SEEN_TRANSITIONS",
    "STATE",
    "TRANSITIONS",
    "Clique",
    "Counters",
    "Edge",
    "Edges",
    "Held",
    "InnerEdge",
    "LabelClique",
    "Labellings",
    "MappedClique",
    "Messages",
    "PartialSum",
    "Potentials",
    "Problem",
    "RunRules",
    "Sums",
    "best_labellings",
    "borders_with_positions",
    "borders_within",
    "first_impossible",
    "gathered",
    "hold",
    "partition_borders",
    "pieces_of",
    "run_probabilities",
    "score_columns",
    "spread",
]
