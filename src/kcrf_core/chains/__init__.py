"""Inference on chains: forward-backward, Viterbi, tangents, n-best lists, constraints, missing labels."""

from .._lazy import lazy
from ..system import Registry

# Types of terms, by the cliques that they are over.
CLIQUES = Registry(
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

__getattr__, __dir__, __all__ = lazy(__name__)
