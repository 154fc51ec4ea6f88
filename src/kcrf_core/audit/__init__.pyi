from .audit import (
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
from .channel import Channel, fit_channel
from .correcting import Correction, changes_of, corrected, differences, read_worklist, worklist
from .evidence import Evidence, gather

__all__ = [
    "BY_FOLDS",
    "BY_MODEL",
    "RANKINGS",
    "Audit",
    "Channel",
    "Correction",
    "DoubtfulPosition",
    "DoubtfulSequence",
    "DoubtfulSpan",
    "Evidence",
    "audit_by_folds",
    "audit_by_model",
    "changes_of",
    "corrected",
    "differences",
    "fit_channel",
    "gather",
    "read_worklist",
    "worklist",
]
