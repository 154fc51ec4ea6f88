"""Which labels are probably wrong: by models that have not seen them; how many errors that makes, and corrections."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "audit": [
            "BY_FOLDS",
            "BY_MODEL",
            "RANKINGS",
            "Audit",
            "DoubtfulPosition",
            "DoubtfulSequence",
            "DoubtfulSpan",
            "audit_by_folds",
            "audit_by_model",
        ],
        "channel": ["Channel", "fit_channel"],
        "correcting": ["Correction", "changes_of", "corrected", "differences", "read_worklist", "worklist"],
        "evidence": ["Evidence", "gather"],
    },
)
