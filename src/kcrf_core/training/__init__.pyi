from .calibrating import (
    CalibrationReport as CalibrationReport,
    Scored as Scored,
    fit_calibration as fit_calibration,
    scored_parts as scored_parts,
)
from .checkpoint import EVERY as EVERY, Checkpoint as Checkpoint
from .dev import DevReport as DevReport
from .engines import open_engine as open_engine
from .held_out import (
    FEW_WHOLE as FEW_WHOLE,
    LEAST_TRAINED as LEAST_TRAINED,
    SEQUENCES as SEQUENCES,
    Blocks as Blocks,
    HoldOut as HoldOut,
    Pieces as Pieces,
    Split as Split,
    Splits as Splits,
    Units as Units,
    apart as apart,
    blocks_of as blocks_of,
    make_splits as make_splits,
    size_contents as size_contents,
)
from .near_copies import kept_together as kept_together
from .preparing import (
    Prepared as Prepared,
    groups_of as groups_of,
    prepare as prepare,
    read_folds as read_folds,
    without_column as without_column,
)
from .problems import problem_of as problem_of
from .screening import choose_configuration as choose_configuration
from .shard_run import (
    SAMPLE_POSITIONS as SAMPLE_POSITIONS,
    check_shard_terms as check_shard_terms,
    train_shards as train_shards,
)
from .training import PruneReport as PruneReport, Report as Report, judge as judge, train as train
from .warm_start import WarmStart as WarmStart
