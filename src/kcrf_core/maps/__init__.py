"""Feature maps: operators Phi with Phi Phi^T = K, or nearly; and the choice of pivots, which reduced maps stand on."""

from .._lazy import lazy
from ..system import Registry

# Ways to choose pivots: functions of a factorisation and a source of chance, which append pivots until it is full.
METHODS = Registry(
    "method to choose pivots",
    __name__,
    {
        "random": "pivots:random_pivots",
        "greedy": "pivots:greedy_pivots",
        "uniform": "pivots:uniform_pivots",
        "kmeans": "pivots:kmeans_pivots",
    },
)

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "affine": ["Affine"],
        "conjunctions": [
            "Conjunctions",
            "LARGEST_DEGREE",
            "conjunction_count",
            "feature_base",
            "find_conjunctions",
            "squared_weights",
            "why_not",
        ],
        "feature_maps": ["ExplicitMap", "FeatureMap", "ReducedMap", "pivot_triangle"],
        "growing_basis": ["GrowingBasis"],
        "merged": ["MergedColumns", "MergedMap", "merged_columns"],
        "pivots": ["LITTLE_LEFT", "MOST_PIVOTS", "automatic_size"],
        "repeated_maps": ["RepeatedMap", "has_nested_columns"],
        "sparse_rows": ["scaled_rows", "sparse_block"],
        "sparse_weights": ["SparseWeights", "Weights", "as_dense", "matrix_of"],
    },
)
