"""Terms of a configuration on their data: which map each gets, what that takes, and the map itself.

A `TermPlan` says what a term will be and how much memory it takes, a `FittedTerm` has its map (`explicit_terms`,
`pivot_terms`); `term_plans` makes them.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "forecast": ["Footprint", "footprint", "shard_footprint"],
        "label_match": ["LabelMatch"],
        "observed_features": ["frequent_only", "kept_in", "observed_only"],
        "shard_maps": ["Scratch", "ShardPart", "ShardedData"],
        "shard_terms": ["ShardFitter", "ShardedTerm", "check_shard_terms", "observed_in_shards", "shard_map_type"],
        "term_plans": ["begin_growth", "fit_terms", "outside_gain", "select_bases"],
        "terms": ["DTYPES", "FittedTerm", "MappedTerm"],
    },
)
