"""Threads, products of rows, memory, writing files, `.npz` containers, compressed files, registries, declared settings.

Nothing here knows of conditional random fields.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "_row_products": ["VECTOR_WIDTHS", "vector_width"],
        "compression": ["compression_of", "packing", "unpacked", "without_suffix"],
        "containers": [
            "Contents",
            "LARGEST",
            "MAGIC",
            "container_size",
            "content_digest",
            "header_of",
            "pack_sparse",
            "pack_strings",
            "read_container",
            "write_container",
        ],
        "forks": ["renew_after_fork"],
        "late_scipy": ["in_place", "linear_algebra"],
        "memory": ["Budget", "free_memory", "hand_back"],
        "products": ["Factor", "SLAB", "padded", "row_products", "row_squares"],
        "registry": ["NotRegistered", "Registry"],
        "scratch_folders": ["ScratchFolder"],
        "settings": ["AUTO", "LEAST_TOLERANCE", "Number", "DeclaredSetting", "Whole", "described", "finite"],
        "team": ["Team"],
        "threads": ["PAUSE", "Pause", "Workers", "available_threads", "ranges", "sequence_chunks"],
        "trees": ["pack_tree", "unpack_tree"],
        "wording": ["counted", "listed", "size_text"],
        "writing": ["NamedFile", "naming", "replacing", "temporary_beside"],
    },
)
