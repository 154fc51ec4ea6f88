from ._row_products import VECTOR_WIDTHS, vector_width
from .compression import compression_of, packing, unpacked, without_suffix
from .containers import (
    LARGEST,
    MAGIC,
    Contents,
    container_size,
    content_digest,
    header_of,
    pack_sparse,
    pack_strings,
    read_container,
    write_container,
)
from .forks import renew_after_fork
from .late_scipy import in_place, linear_algebra
from .memory import Budget, free_memory, hand_back
from .products import SLAB, Factor, padded, row_products, row_squares
from .registry import NotRegistered, Registry
from .scratch_folders import ScratchFolder
from .settings import AUTO, LEAST_TOLERANCE, DeclaredSetting, Number, Whole, described, finite
from .team import Team
from .threads import PAUSE, Pause, Workers, available_threads, ranges, sequence_chunks
from .trees import pack_tree, unpack_tree
from .wording import counted, listed, size_text
from .writing import NamedFile, naming, replacing, temporary_beside

__all__ = [
    "AUTO",
    "LARGEST",
    "LEAST_TOLERANCE",
    "MAGIC",
    "PAUSE",
    "SLAB",
    "VECTOR_WIDTHS",
    "Budget",
    "Contents",
    "DeclaredSetting",
    "Factor",
    "NamedFile",
    "NotRegistered",
    "Number",
    "Pause",
    "Registry",
    "ScratchFolder",
    "Team",
    "Whole",
    "Workers",
    "available_threads",
    "compression_of",
    "container_size",
    "content_digest",
    "counted",
    "described",
    "finite",
    "free_memory",
    "hand_back",
    "header_of",
    "in_place",
    "linear_algebra",
    "listed",
    "naming",
    "pack_sparse",
    "pack_strings",
    "pack_tree",
    "packing",
    "padded",
    "ranges",
    "read_container",
    "renew_after_fork",
    "replacing",
    "row_products",
    "row_squares",
    "sequence_chunks",
    "size_text",
    "temporary_beside",
    "unpack_tree",
    "unpacked",
    "vector_width",
    "without_suffix",
    "write_container",
]
