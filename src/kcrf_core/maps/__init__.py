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
        "columns": [
            "ColumnOrder",
            "add_products",
            "largest_values",
            "present_columns",
            "scaled_rows",
            "sparse_block",
        ],
        "compressed": ["CompressedRows"],
        "conjunctions": [
            "ConjunctionCounter",
            "Conjunctions",
            "LARGEST_DEGREE",
            "conjunction_count",
            "feature_base",
            "find_conjunctions",
            "shared_conjunctions",
            "squared_weights",
            "why_not",
        ],
        "explicit": [
            "Affine",
            "ColumnSupports",
            "ExplicitMap",
            "ExplicitRecipe",
            "MergedColumns",
            "MergedMap",
            "merged_columns",
        ],
        "factorisation": ["Basis", "Candidates", "FLOORS", "independent_pivots", "truncated"],
        "native": ["TOGETHER", "ordered_sums", "product"],
        "feature_map": [
            "FeatureMap",
            "accumulate",
            "has_nested_columns",
            "new_sums",
            "real_columns",
            "sum_of_parts",
            "sums_of_rows",
        ],
        "growing_basis": ["GrowingBasis"],
        "heads": ["ExplicitHead", "Head", "PivotHead"],
        "hash_tables": ["PairTable", "number_pairs"],
        "kept_places": ["KeptPlaces", "KeptWeights"],
        "pivots": ["LITTLE_LEFT", "MOST_PIVOTS", "automatic_size", "choose_pivots", "full_basis"],
        "portions": ["Portions", "add_rows", "new_token", "summed_by", "tree_sum"],
        "reduced": ["KernelRecipe", "KernelRows", "PIECE_VALUES", "ReducedMap", "pivot_triangle"],
        "repeated_maps": ["RepeatedMap", "RepeatedRecipe"],
        "rounding": ["Extent", "Rounding", "summation_error"],
        "sparse_weights": [
            "SparseWeights",
            "Weights",
            "as_dense",
            "held_values",
            "matrix_of",
            "pack_weights",
            "unpack_weights",
            "without_zeros",
        ],
        "triangles": ["inverse_bytes"],
    },
)
