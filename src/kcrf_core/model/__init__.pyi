from ._attribute_scores import ItemRows, LabelScorer, ScoredItems, name_hashes
from .archives import (
    StoredBasis,
    TermBasis,
    basis_digest,
    digest,
    joined_digests,
    load_basis,
    load_dataset,
    save_basis,
    save_dataset,
)
from .attribute_labels import AttributeLabeller, AttributeSequences, label_scorer
from .decoding import Decoded, Decoder, Wishes, decided_labels, given_labels
from .explanation import Explanation, scores_in_place, with_labels
from .feature_terms import AffineTerm, ConjunctionTerm, ExplicitTerm, FeatureTerm
from .importance import Importance, importances
from .inspection import dump
from .kernel_term import KernelTerm
from .lagging import LagDecoder
from .model import ROWS_AT_ONCE, TERMS, Model
from .model_labelling import Also, from_model, from_model_and_dataset, from_model_and_folder
from .pruning import PruneReport
from .score_calibration import ScoreCalibration
from .shard_folders import (
    ShardFolder,
    StoredShard,
    check_replaceable,
    encoding_of,
    load_encoding,
    load_folder,
    new_folder,
    save_shards,
)
from .summary import strongest_transitions, summarise, term_sizes, trained_by, unpack
from .term import Term
from .weights import NamedWeights, end_weights, feature_names, state_weights, transition_weights

__all__ = [
    "ROWS_AT_ONCE",
    "TERMS",
    "AffineTerm",
    "Also",
    "AttributeLabeller",
    "AttributeSequences",
    "ConjunctionTerm",
    "Decoded",
    "Decoder",
    "Explanation",
    "ExplicitTerm",
    "FeatureTerm",
    "Importance",
    "ItemRows",
    "KernelTerm",
    "LabelScorer",
    "LagDecoder",
    "Model",
    "NamedWeights",
    "PruneReport",
    "ScoreCalibration",
    "ScoredItems",
    "ShardFolder",
    "StoredBasis",
    "StoredShard",
    "Term",
    "TermBasis",
    "Wishes",
    "basis_digest",
    "check_replaceable",
    "decided_labels",
    "digest",
    "dump",
    "encoding_of",
    "end_weights",
    "feature_names",
    "from_model",
    "from_model_and_dataset",
    "from_model_and_folder",
    "given_labels",
    "importances",
    "joined_digests",
    "label_scorer",
    "load_basis",
    "load_dataset",
    "load_encoding",
    "load_folder",
    "name_hashes",
    "new_folder",
    "save_basis",
    "save_dataset",
    "save_shards",
    "scores_in_place",
    "state_weights",
    "strongest_transitions",
    "summarise",
    "term_sizes",
    "trained_by",
    "transition_weights",
    "unpack",
    "with_labels",
]
