"""A trained `Model` and its file: labels, probabilities, explanations, summaries, pruning."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "archives": [
            "StoredBasis",
            "TermBasis",
            "basis_digest",
            "digest",
            "joined_digests",
            "load_basis",
            "load_dataset",
            "save_basis",
            "save_dataset",
        ],
        "decoding": ["Decoded", "Decoder", "Wishes", "decided_labels", "given_labels"],
        "explanation": ["Explanation", "scores_in_place", "with_labels"],
        "importance": ["Importance", "importances"],
        "inspection": ["dump"],
        "feature_terms": ["AffineTerm", "ConjunctionTerm", "ExplicitTerm", "FeatureTerm"],
        "kernel_term": ["KernelTerm"],
        "lagging": ["LagDecoder"],
        "model": ["Model", "ROWS_AT_ONCE", "TERMS"],
        "model_labelling": ["Also", "from_model", "from_model_and_dataset", "from_model_and_folder"],
        "pruning": ["PruneReport"],
        "score_calibration": ["ScoreCalibration"],
        "shard_folders": [
            "ShardFolder",
            "StoredShard",
            "check_replaceable",
            "encoding_of",
            "is_shard_folder",
            "load_encoding",
            "load_folder",
            "new_folder",
            "save_shards",
        ],
        "summary": ["strongest_transitions", "summarise", "term_sizes", "trained_by", "unpack"],
        "term": ["Term"],
        "weights": ["NamedWeights", "end_weights", "feature_names", "state_weights", "transition_weights"],
    },
)
