from .forecast import Footprint, footprint, shard_footprint
from .label_match import LabelMatch
from .observed_features import frequent_only, kept_in, observed_only
from .shard_maps import Scratch, ShardedData, ShardPart
from .shard_terms import ShardedTerm, ShardFitter, check_shard_terms, observed_in_shards, shard_map_type
from .term_plans import begin_growth, fit_terms, outside_gain, select_bases
from .terms import DTYPES, FittedTerm, MappedTerm

__all__ = [
    "DTYPES",
    "FittedTerm",
    "Footprint",
    "LabelMatch",
    "MappedTerm",
    "Scratch",
    "ShardFitter",
    "ShardPart",
    "ShardedData",
    "ShardedTerm",
    "begin_growth",
    "check_shard_terms",
    "fit_terms",
    "footprint",
    "frequent_only",
    "kept_in",
    "observed_in_shards",
    "observed_only",
    "outside_gain",
    "select_bases",
    "shard_footprint",
    "shard_map_type",
]
