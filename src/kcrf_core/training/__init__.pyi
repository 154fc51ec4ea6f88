from .calibrating import CalibrationReport, Scored, fit_calibration, scored_parts
from .checkpoint import EVERY, Checkpoint
from .dev import DevReport
from .engines import OpenEngine, open_engine
from .forecast import Footprint, footprint, shard_footprint
from .growth import Growth
from .held_out import (
    SEQUENCES,
    Blocks,
    DecoderChoice,
    HoldOut,
    Pieces,
    Split,
    Splits,
    Units,
    apart,
    blocks_of,
    choose_decoder,
    make_splits,
    size_contents,
)
from .preparing import Prepared, groups_of, prepare, read_folds, without_column
from .prior_search import Prior
from .problems import problem_of
from .shard_run import SAMPLE_POSITIONS, check_shard_terms, train_shards
from .structure import MIN_GAIN
from .training import PruneReport, Report, judge, train
from .warm_start import WarmStart

__all__ = [
    "EVERY",
    "MIN_GAIN",
    "SAMPLE_POSITIONS",
    "SEQUENCES",
    "Blocks",
    "CalibrationReport",
    "Checkpoint",
    "DecoderChoice",
    "DevReport",
    "Footprint",
    "Growth",
    "HoldOut",
    "OpenEngine",
    "Pieces",
    "Prepared",
    "Prior",
    "PruneReport",
    "Report",
    "Scored",
    "Split",
    "Splits",
    "Units",
    "WarmStart",
    "apart",
    "blocks_of",
    "check_shard_terms",
    "choose_decoder",
    "fit_calibration",
    "footprint",
    "groups_of",
    "judge",
    "make_splits",
    "open_engine",
    "prepare",
    "problem_of",
    "read_folds",
    "scored_parts",
    "shard_footprint",
    "size_contents",
    "train",
    "train_shards",
    "without_column",
]
