"""A trained `Model` and its file: labels, probabilities, explanations, summaries, pruning."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .dataset_files import (
        ShardFolder,
        StoredShard,
        check_replaceable,
        digest,
        encoding_of,
        joined_digests,
        load_dataset,
        load_encoding,
        load_folder,
        new_folder,
        save_dataset,
        save_shards,
    )
    from .decoding import Decoded, Decoder, Wishes, given_labels
    from .explanation import Explanation, scores_in_place
    from .guaranteeing import add_guarantees
    from .importance import Importance, importances
    from .inspection import dump, state_weights, strongest_edges, summarise, term_sizes, trained_by, unpack
    from .lagging import LagDecoder
    from .library_labels import CorpusPart, LibraryLabels
    from .model import VITERBI, Inference, Model, ScoreCalibration
    from .model_labelling import from_model, from_model_and_encoded
    from .rules import LabelRules, combined
    from .runtime_files import runtime_image
    from .runtime_sections import attribute_image, attribute_sections, packed_names
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
