from .compression import (
    CompressedText as CompressedText,
    compressing as compressing,
    is_compressed as is_compressed,
)
from .containers import (
    Contents as Contents,
    container_size as container_size,
    content_digest as content_digest,
    file_digest as file_digest,
    pack_sparse as pack_sparse,
    pack_strings as pack_strings,
    read_container as read_container,
    write_container as write_container,
)
from .kinds import (
    INDEX as INDEX,
    is_archive as is_archive,
    is_encoded as is_encoded,
    is_folder as is_folder,
    refuse_vectors as refuse_vectors,
    text_ending as text_ending,
)
from .scratch_folders import ScratchFolder as ScratchFolder
from .trees import pack_tree as pack_tree, unpack_tree as unpack_tree
from .writing import naming as naming, replacing as replacing, temporary_beside as temporary_beside

LARGEST: float
