from collections.abc import Callable

from numpy.random import Generator

from ..system import Registry
from ._conjunctions import fill_slots as fill_slots, number_pairs as number_pairs
from .columns import (
    ColumnOrder as ColumnOrder,
    add_products as add_products,
    largest_values as largest_values,
    present_columns as present_columns,
    scaled_rows as scaled_rows,
    sparse_block as sparse_block,
)
from .compressed import ColumnValues as ColumnValues, CompressedRows as CompressedRows
from .conjunction_table import (
    ConjunctionCounter as ConjunctionCounter,
    Conjunctions as Conjunctions,
    conjunction_count as conjunction_count,
    feature_base as feature_base,
    shared_conjunctions as shared_conjunctions,
    squared_weights as squared_weights,
    why_not as why_not,
)
from .explicit import (
    ColumnSupports as ColumnSupports,
    ExplicitMap as ExplicitMap,
    ExplicitSpec as ExplicitSpec,
    MergedColumns as MergedColumns,
)
from .factorisation import (
    Basis as Basis,
    Candidates as Candidates,
    Factorisation as Factorisation,
    KernelSource as KernelSource,
)
from .feature_map import (
    FeatureMap as FeatureMap,
    sum_of_parts as sum_of_parts,
    sums_of_rows as sums_of_rows,
)
from .hash_tables import NO_PAIR as NO_PAIR, empty_slots as empty_slots
from .heads import (
    Empty as Empty,
    Evaluated as Evaluated,
    ExplicitHead as ExplicitHead,
    Extent as Extent,
    Head as Head,
    PivotHead as PivotHead,
    Rounding as Rounding,
    summation_error as summation_error,
)
from .native import TOGETHER as TOGETHER, new_sums as new_sums, ordered_sums as ordered_sums, product as product
from .partition_sums import (
    Partitions as Partitions,
    add_rows as add_rows,
    summed_by as summed_by,
    tree_sum as tree_sum,
)
from .pivot_choice import (
    LITTLE_LEFT as LITTLE_LEFT,
    MOST_PIVOTS as MOST_PIVOTS,
    GrowingBasis as GrowingBasis,
    automatic_size as automatic_size,
    choose_pivots as choose_pivots,
    full_basis as full_basis,
)
from .reduced import (
    KernelRows as KernelRows,
    KernelSpec as KernelSpec,
    ReducedMap as ReducedMap,
    pivot_triangle as pivot_triangle,
)
from .repeated_maps import RepeatedMap as RepeatedMap, RepeatedSpec as RepeatedSpec
from .sparse_weights import (
    KeptPlaces as KeptPlaces,
    KeptWeights as KeptWeights,
    SparseWeights as SparseWeights,
    Weights as Weights,
    as_dense as as_dense,
    held_values as held_values,
    matrix_of as matrix_of,
    pack_weights as pack_weights,
    unpack_weights as unpack_weights,
    without_zeros as without_zeros,
)

METHODS: Registry[Callable[[Factorisation, Generator], None]]
