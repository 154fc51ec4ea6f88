"""From a dataset and a configuration to a model with its certificate, in stages."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .calibrating import CalibrationReport, Scored, fit_calibration, scored_parts
    from .checkpoint import EVERY, Checkpoint
    from .dev import DevReport
    from .engines import open_engine
    from .held_out import (
        FEW_WHOLE,
        LEAST_TRAINED,
        SEQUENCES,
        Blocks,
        HoldOut,
        Pieces,
        Split,
        Splits,
        Units,
        apart,
        blocks_of,
        make_splits,
        size_contents,
    )
    from .near_copies import kept_together
    from .preparing import Prepared, groups_of, prepare, read_folds, without_column
    from .problems import problem_of
    from .screening import choose_configuration
    from .shard_run import SAMPLE_POSITIONS, check_shard_terms, train_shards
    from .training import PruneReport, Report, judge, train
    from .warm_start import WarmStart
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
