"""Inference on chains: forward-backward, Viterbi, tangents, n-best lists, constraints, missing labels."""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..system import Registry

# Types of terms, by the cliques that they are over.
CLIQUES: "Registry[Clique]" = Registry(
    "type of term",
    __name__,
    {
        "node": "cliques:NODE",
        "state": "cliques:STATE",
        "edge-x": "cliques:EDGE_X",
        "edge": "cliques:EDGE",
        "transitions": "cliques:TRANSITIONS",
        "seen-transitions": "cliques:SEEN_TRANSITIONS",
        "edge2": "cliques:EDGE2",
    },
)

if TYPE_CHECKING:
    from ._samples import count_cliques, draw_labellings
    from .chain import Edges, Labellings, best_labellings
    from .cliques import (
        ABOVE,
        EDGE,
        EDGE2,
        EDGE_X,
        MATRIX,
        NODE,
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
    from .partial_labels import Expected, Held, hold, impossible_sequences
    from .problem import (
        HALF_KNOWN,
        HalfKnown,
        Problem,
        borders_of,
        borders_within,
        partition_borders,
        pieces_of,
    )
    from .rules import EXACT, IMPOSSIBLE, LIMITED, RunRules
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
