from ._attribute_scores import ItemRows, LabelScorer, ScoredItems, name_hashes
from .attribute_labels import AttributeLabeller, AttributeSequences, label_scorer, packed_names
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
from .decoding import Decoded, Decoder, Wishes, decided_labels, given_labels
from .explanation import Explanation, scores_in_place
from .importance import Importance, importances
from .inspection import (
    NamedWeights,
    dump,
    forbidden_in_training,
    state_weights,
    strongest_edges,
    summarise,
    term_sizes,
    trained_by,
    unpack,
)
from .lagging import LagDecoder
from .model import ROWS_AT_ONCE, Model, ScoreCalibration
from .model_labelling import Also, from_model, from_model_and_encoded
from .rules import LabelRules, RulesProbability, broken_sequences, combined
from .runtime_files import runtime_image, runtime_labels

__all__ = [
    "ROWS_AT_ONCE",
    "Also",
    "AttributeLabeller",
    "AttributeSequences",
    "Decoded",
    "Decoder",
    "Explanation",
    "Importance",
    "ItemRows",
    "LabelRules",
    "LabelScorer",
    "LagDecoder",
    "Model",
    "NamedWeights",
    "RulesProbability",
    "ScoreCalibration",
    "ScoredItems",
    "ShardFolder",
    "StoredShard",
    "Wishes",
    "broken_sequences",
    "check_replaceable",
    "combined",
    "decided_labels",
    "digest",
    "dump",
    "encoding_of",
    "forbidden_in_training",
    "from_model",
    "from_model_and_encoded",
    "given_labels",
    "importances",
    "joined_digests",
    "label_scorer",
    "load_dataset",
    "load_encoding",
    "load_folder",
    "name_hashes",
    "new_folder",
    "packed_names",
    "runtime_image",
    "runtime_labels",
    "save_dataset",
    "save_shards",
    "scores_in_place",
    "state_weights",
    "strongest_edges",
    "summarise",
    "term_sizes",
    "trained_by",
    "unpack",
]
