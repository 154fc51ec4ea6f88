"""Threads, the memory budget, `.npz` containers, compressed files, registries and declared settings.

Nothing here knows of conditional random fields.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "compression": ["compression_of", "packing", "unpacked", "without_suffix"],
        "containers": [
            "Contents",
            "LARGEST",
            "container_size",
            "pack_sparse",
            "pack_strings",
            "read_container",
            "replacing",
            "write_container",
        ],
        "memory": ["Budget", "hand_back", "size_text"],
        "registry": ["NotRegistered", "Registry"],
        "settings": ["AUTO", "Number", "DeclaredSetting", "Whole", "described", "finite"],
        "threads": ["Workers", "available_threads", "ranges", "sequence_chunks"],
    },
)
