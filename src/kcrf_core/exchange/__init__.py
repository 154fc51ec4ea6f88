"""Models of CRFsuite, CRF++ and Wapiti: read as models of ours, and written for their programs to read."""

from .._lazy import lazy

# What they are called, by the words for them.
PROGRAMS = {"crfsuite": "CRFsuite", "crf++": "CRF++", "wapiti": "Wapiti"}

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "attribute_labels": ["AttributeLabeller", "AttributeSequences", "label_scorer"],
        "crfsuite_models": ["CrfsuiteModel", "crfsuite_header", "read_crfsuite", "write_crfsuite"],
        "model_export": ["crfsuite_of", "export_model", "program_of"],
        "foreign": ["ForeignModel"],
        "model_import": ["import_model", "read_foreign", "training_configuration"],
        "_lookup": ["ItemRows", "LabelScorer", "ScoredItems"],
    },
)
