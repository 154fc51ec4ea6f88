from .arena import Outcome
from .correcting import Correction, changes_of, corrected, differences, read_worklist, worklist
from .cross_validation import (
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
)
from .evidence import Channel, Evidence, fit_channel, gather
from .grid import Setting, make_settings, parse_grid, shown
from .journal import Journal, corpus_digest, digest_of
from .label_audit import (
    BY_FOLDS,
    BY_MODEL,
    RANKINGS,
    Audit,
    DoubtfulPosition,
    DoubtfulSequence,
    DoubtfulSpan,
    audit_by_folds,
    audit_by_model,
)
from .search import Listener, Search
from .space import Candidate, Space
from .tuning import Nested, Tuning, make_space, tune

EFFORTS: dict[str, float]

__all__ = [
    "BY_FOLDS",
    "BY_MODEL",
    "RANKINGS",
    "Audit",
    "Candidate",
    "Channel",
    "Correction",
    "Division",
    "DoubtfulPosition",
    "DoubtfulSequence",
    "DoubtfulSpan",
    "Evidence",
    "FoldData",
    "Journal",
    "Listener",
    "Nested",
    "Outcome",
    "Plan",
    "Search",
    "Setting",
    "Space",
    "Task",
    "Tuning",
    "audit_by_folds",
    "audit_by_model",
    "base_seed",
    "changes_of",
    "corpus_digest",
    "corrected",
    "cut_parts",
    "differences",
    "digest_of",
    "finished",
    "fit_channel",
    "fold_data",
    "gather",
    "make_plan",
    "make_settings",
    "make_space",
    "parse_grid",
    "read_worklist",
    "rows",
    "run_plan",
    "shown",
    "summarise",
    "task_count",
    "tune",
    "worklist",
]
