"""Threads, the memory budget, long vectors, `.npz` containers and compressed files.

Nothing here knows of conditional random fields.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "compression": ["compression_of", "packing", "unpacked", "without_suffix"],
        "containers": [
            "Contents",
            "container_size",
            "pack_sparse",
            "pack_strings",
            "read_container",
            "replacing",
            "write_container",
        ],
        "memory": ["Budget", "hand_back", "size_text"],
        "threads": ["Workers", "available_threads", "ranges", "sequence_chunks"],
        "vectors": ["Vectors"],
    },
)
