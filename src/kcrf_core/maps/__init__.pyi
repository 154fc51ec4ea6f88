from collections.abc import Callable

from numpy.random import Generator

from ..system import Registry
from ._conjunctions import fill_slots, number_pairs
from .columns import ColumnOrder, add_products, largest_values, present_columns, scaled_rows, sparse_block
from .compressed import ColumnValues, CompressedRows
from .conjunction_table import (
    LARGEST_DEGREE,
    ConjunctionCounter,
    Conjunctions,
    conjunction_count,
    feature_base,
    find_conjunctions,
    shared_conjunctions,
    squared_weights,
    why_not,
)
from .explicit import ColumnSupports, ExplicitMap, ExplicitSpec, MergedColumns
from .factorisation import Basis, Candidates, DeviceWorkers, Factorisation, KernelSource, kernel_device
from .feature_map import FeatureMap, sum_of_parts, sums_of_rows
from .hash_tables import NO_PAIR, empty_slots
from .heads import Evaluated, ExplicitHead, Extent, Head, PivotHead, Rounding, summation_error
from .native import TOGETHER, new_sums, ordered_sums, product
from .partition_sums import Partitions, add_rows, new_token, summed_by, tree_sum
from .pivot_choice import LITTLE_LEFT, MOST_PIVOTS, GrowingBasis, automatic_size, choose_pivots, full_basis
from .reduced import PIECE_VALUES, KernelRows, KernelSpec, ReducedMap, pivot_triangle
from .repeated_maps import RepeatedMap, RepeatedSpec
from .sparse_weights import (
    KeptPlaces,
    KeptWeights,
    SparseWeights,
    Weights,
    as_dense,
    held_values,
    matrix_of,
    pack_weights,
    unpack_weights,
    without_zeros,
)
from .triangles import inverse_bytes

METHODS: Registry[Callable[[Factorisation, Generator], None]]

__all__ = [
    "LARGEST_DEGREE",
    "LITTLE_LEFT",
    "MOST_PIVOTS",
    "NO_PAIR",
    "PIECE_VALUES",
    "TOGETHER",
    "Basis",
    "Candidates",
    "ColumnOrder",
    "ColumnSupports",
    "ColumnValues",
    "CompressedRows",
    "ConjunctionCounter",
    "Conjunctions",
    "DeviceWorkers",
    "Evaluated",
    "ExplicitHead",
    "ExplicitMap",
    "ExplicitSpec",
    "Extent",
    "Factorisation",
    "FeatureMap",
    "GrowingBasis",
    "Head",
    "KeptPlaces",
    "KeptWeights",
    "KernelRows",
    "KernelSource",
    "KernelSpec",
    "MergedColumns",
    "Partitions",
    "PivotHead",
    "ReducedMap",
    "RepeatedMap",
    "RepeatedSpec",
    "Rounding",
    "SparseWeights",
    "Weights",
    "add_products",
    "add_rows",
    "as_dense",
    "automatic_size",
    "choose_pivots",
    "conjunction_count",
    "empty_slots",
    "feature_base",
    "fill_slots",
    "find_conjunctions",
    "full_basis",
    "held_values",
    "inverse_bytes",
    "kernel_device",
    "largest_values",
    "matrix_of",
    "new_sums",
    "new_token",
    "number_pairs",
    "ordered_sums",
    "pack_weights",
    "pivot_triangle",
    "present_columns",
    "product",
    "scaled_rows",
    "shared_conjunctions",
    "sparse_block",
    "squared_weights",
    "sum_of_parts",
    "summation_error",
    "summed_by",
    "sums_of_rows",
    "tree_sum",
    "unpack_weights",
    "why_not",
    "without_zeros",
]
