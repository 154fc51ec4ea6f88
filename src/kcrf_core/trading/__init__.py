"""Models of CRFsuite, CRF++ and Wapiti: read as models of ours, and written for their programs to read."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "crfsuite_models": ["CrfsuiteModel", "read_crfsuite", "write_crfsuite"],
        "foreign": ["ForeignModel"],
        "importing": ["import_model", "read_foreign"],
        "_lookup": ["ItemRows", "LabelScorer"],
    },
)
