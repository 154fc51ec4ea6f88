"""Inference on chains: forward-backward, Viterbi, tangents, n-best lists, constraints, missing labels."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "chain": ["Edges"],
        "cliques": [
            "CLIQUES",
            "EDGE",
            "EDGE2",
            "EDGE_X",
            "MATRIX",
            "NODE",
            "Clique",
            "LabelClique",
            "MappedClique",
            "Part",
            "Potentials",
            "Sums",
        ],
        "nbest": ["Labellings", "best_labellings"],
        "partial_labels": ["Held", "first_impossible", "hold"],
        "problem": ["Problem", "gathered", "positions_within", "score_columns", "spread"],
    },
)
