from ..system import Registry
from .chain import Edges as Edges, Labellings as Labellings, best_labellings as best_labellings
from .cliques import (
    ABOVE as ABOVE,
    EDGE as EDGE,
    EDGE2 as EDGE2,
    EDGE_X as EDGE_X,
    MATRIX as MATRIX,
    NODE as NODE,
    STATE as STATE,
    TRANSITIONS as TRANSITIONS,
    Clique as Clique,
    Edge as Edge,
    InnerEdge as InnerEdge,
    LabelClique as LabelClique,
    MappedClique as MappedClique,
    PartialSum as PartialSum,
    Potentials as Potentials,
    Sums as Sums,
)
from .forward import Messages as Messages
from .partial_labels import (
    Expected as Expected,
    Held as Held,
    first_impossible as first_impossible,
    hold as hold,
)
from .problem import (
    HALF_KNOWN as HALF_KNOWN,
    HalfKnown as HalfKnown,
    Problem as Problem,
    borders_with_positions as borders_with_positions,
    borders_within as borders_within,
    partition_borders as partition_borders,
    pieces_of as pieces_of,
)
from .rules import EXACT as EXACT, IMPOSSIBLE as IMPOSSIBLE, LIMITED as LIMITED, RunRules as RunRules

CLIQUES: Registry[Clique]
