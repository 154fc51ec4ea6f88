from ..system import Registry
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
from .runs import run_probabilities

CLIQUES: Registry[Clique]

__all__ = [
    "ABOVE",
    "EDGE",
    "EDGE2",
    "EDGE_X",
    "MATRIX",
    "NODE",
    "SEEN_TRANSITIONS",
    "STATE",
    "TRANSITIONS",
    "Clique",
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
