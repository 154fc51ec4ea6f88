"""Cross-validation: folds, grids of settings, a journal to resume from, and processes to run on."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "crossval": [
            "Division",
            "Plan",
            "Task",
            "base_seed",
            "FoldData",
            "cut_parts",
            "fold_data",
            "task_rows",
            "finished",
            "make_plan",
            "rows",
            "run_plan",
            "summarise",
            "task_count",
            "without_column",
        ],
        "calibrating": ["CalibrationReport", "fit_calibration"],
        "folds": ["groups_of", "read_folds"],
        "grid": ["Setting", "make_settings", "parse_grid", "shown"],
        "journal": ["Journal", "corpus_digest", "digest_of"],
        "scored": ["Scored", "scored_parts"],
    },
)
