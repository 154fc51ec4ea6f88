from .calibrating import CalibrationReport, fit_calibration
from .crossval import (
    Division,
    FoldData,
    Plan,
    Task,
    base_seed,
    cut_parts,
    finished,
    fold_data,
    make_plan,
    rows,
    run_plan,
    summarise,
    task_count,
    task_rows,
    without_column,
)
from .folds import groups_of, read_folds
from .grid import Setting, make_settings, parse_grid, shown
from .journal import Journal, corpus_digest, digest_of
from .scored import Scored, scored_parts

__all__ = [
    "CalibrationReport",
    "Division",
    "FoldData",
    "Journal",
    "Plan",
    "Scored",
    "Setting",
    "Task",
    "base_seed",
    "corpus_digest",
    "cut_parts",
    "digest_of",
    "finished",
    "fit_calibration",
    "fold_data",
    "groups_of",
    "make_plan",
    "make_settings",
    "parse_grid",
    "read_folds",
    "rows",
    "run_plan",
    "scored_parts",
    "shown",
    "summarise",
    "task_count",
    "task_rows",
    "without_column",
]
