from .dataset_files import (
    ShardFolder as ShardFolder,
    StoredShard as StoredShard,
    check_replaceable as check_replaceable,
    digest as digest,
    encoding_of as encoding_of,
    joined_digests as joined_digests,
    load_dataset as load_dataset,
    load_encoding as load_encoding,
    load_folder as load_folder,
    new_folder as new_folder,
    save_dataset as save_dataset,
    save_shards as save_shards,
)
from .decoding import (
    Decoded as Decoded,
    Decoder as Decoder,
    Wishes as Wishes,
    given_labels as given_labels,
)
from .explanation import Explanation as Explanation, scores_in_place as scores_in_place
from .guaranteeing import add_guarantees as add_guarantees
from .importance import Importance as Importance, importances as importances
from .inspection import (
    dump as dump,
    state_weights as state_weights,
    strongest_edges as strongest_edges,
    summarise as summarise,
    term_sizes as term_sizes,
    trained_by as trained_by,
    unpack as unpack,
)
from .lagging import LagDecoder as LagDecoder
from .library_labels import CorpusPart as CorpusPart, LibraryLabels as LibraryLabels
from .model import VITERBI as VITERBI, Inference as Inference, Model as Model, ScoreCalibration as ScoreCalibration
from .model_labelling import from_model as from_model, from_model_and_encoded as from_model_and_encoded
from .rules import (
    LabelRules as LabelRules,
    combined as combined,
)
from .runtime_files import runtime_image as runtime_image
from .runtime_sections import attribute_image as attribute_image, packed_names as packed_names
