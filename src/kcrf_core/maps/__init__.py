"""Feature maps: operators Phi with Phi Phi^T = K, or nearly; and the choice of pivots, which reduced maps stand on."""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..system import Registry

# Ways to choose pivots: functions of a factorisation and a random generator, which append pivots until it is full.
METHODS: "Registry[Callable[[Factorisation, Generator], None]]" = Registry(
    "method to choose pivots",
    __name__,
    {"random": "pivot_choice:random_pivots", "greedy": "pivot_choice:greedy_pivots"},
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from ._conjunctions import fill_slots, number_pairs
    from .columns import ColumnOrder, add_products, largest_values, present_columns, scaled_rows, sparse_block
    from .compressed import ColumnValues, CompressedRows
    from .conjunction_table import (
        NO_PAIR,
        ConjunctionCounter,
        Conjunctions,
        conjunction_count,
        empty_slots,
        feature_base,
        shared_conjunctions,
        squared_weights,
        why_not,
    )
    from .explicit import ColumnSupports, ExplicitMap, ExplicitSpec, MergedColumns
    from .factorisation import Basis, Candidates, Factorisation, KernelSource
    from .feature_map import FeatureMap, sum_of_parts, sums_of_rows
    from .heads import Empty, Evaluated, ExplicitHead, Extent, Head, PivotHead, Rounding, summation_error
    from .native import TOGETHER, new_sums, ordered_sums, product
    from .partition_sums import Partitions, add_rows, summed_by, tree_sum
    from .pivot_choice import LITTLE_LEFT, MOST_PIVOTS, GrowingBasis, automatic_size, choose_pivots, full_basis
    from .reduced import KernelRows, KernelSpec, ReducedMap, pivot_triangle
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
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
