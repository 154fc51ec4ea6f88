from ._row_products import VECTOR_WIDTHS, vector_width
from .backend import DOUBLE, SINGLE, Array, Backend
from .forks import renew_after_fork
from .late_scipy import in_place, linear_algebra
from .memory import Budget, free_memory, hand_back
from .products import SLAB, Factor, padded, row_products, row_squares
from .ragged import complete_sequences, offsets_of, piece_rows, positions_within, sequence_rows, shifted_real
from .registry import NotRegistered, Registry
from .settings import (
    AUTO,
    LEAST_TOLERANCE,
    Automatic,
    DeclaredSetting,
    Number,
    OneOf,
    Whole,
    boolean,
    declared,
    described,
    finite,
    settings_of,
)
from .team import Team
from .threads import PAUSE, Pause, Workers, available_threads, ranges, sequence_chunks
from .wording import counted, listed, size_text

__all__ = [
    "AUTO",
    "DOUBLE",
    "LEAST_TOLERANCE",
    "PAUSE",
    "SINGLE",
    "SLAB",
    "VECTOR_WIDTHS",
    "Array",
    "Automatic",
    "Backend",
    "Budget",
    "DeclaredSetting",
    "Factor",
    "NotRegistered",
    "Number",
    "OneOf",
    "Pause",
    "Registry",
    "Team",
    "Whole",
    "Workers",
    "available_threads",
    "boolean",
    "complete_sequences",
    "counted",
    "declared",
    "described",
    "finite",
    "free_memory",
    "hand_back",
    "in_place",
    "linear_algebra",
    "listed",
    "offsets_of",
    "padded",
    "piece_rows",
    "positions_within",
    "ranges",
    "renew_after_fork",
    "row_products",
    "row_squares",
    "sequence_chunks",
    "sequence_rows",
    "settings_of",
    "shifted_real",
    "size_text",
    "vector_width",
]
