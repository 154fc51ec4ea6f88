from .compression import COMPRESSIONS, packing, unpacked
from .containers import (
    LARGEST,
    MAGIC,
    Contents,
    container_size,
    content_digest,
    file_digest,
    header_of,
    pack_sparse,
    pack_strings,
    read_container,
    write_container,
)
from .kinds import is_archive, is_encoded, is_folder, refuse_vectors
from .scratch_folders import ScratchFolder
from .trees import pack_tree, unpack_tree
from .writing import NamedFile, naming, replacing, temporary_beside

__all__ = [
    "COMPRESSIONS",
    "LARGEST",
    "MAGIC",
    "Contents",
    "NamedFile",
    "ScratchFolder",
    "container_size",
    "content_digest",
    "file_digest",
    "header_of",
    "is_archive",
    "is_encoded",
    "is_folder",
    "naming",
    "pack_sparse",
    "pack_strings",
    "pack_tree",
    "packing",
    "read_container",
    "refuse_vectors",
    "replacing",
    "temporary_beside",
    "unpack_tree",
    "unpacked",
    "write_container",
]
