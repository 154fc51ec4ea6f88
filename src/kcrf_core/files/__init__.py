"""Files: atomic writing, `.npz` containers, compression, scratch folders, trees of values without pickle."""

from typing import TYPE_CHECKING

from .._lazy import lazy

# The largest number that a model may hold, with its sign left out. The weights of a trained model have a squared length
# of at most 2 sigma2 N log Y (P is no larger than at zero), so that none comes near it, whatever the columns hold.
LARGEST = 1e100

if TYPE_CHECKING:
    from .compression import CompressedText, compressing, is_compressed
    from .containers import (
        Contents,
        PlainContents,
        container_size,
        content_digest,
        file_digest,
        pack_sparse,
        pack_strings,
        read_container,
        write_container,
    )
    from .kinds import INDEX, is_archive, is_encoded, is_folder, refuse_vectors, text_ending
    from .trees import pack_tree, unpack_tree
    from .writing import ScratchFolder, naming, replacing, temporary_beside
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
