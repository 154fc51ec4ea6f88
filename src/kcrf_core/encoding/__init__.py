"""A corpus and a configuration become a `Dataset`: vocabularies, scaling, windows, and names of features."""

from .._lazy import lazy
from ..system import Registry

# Formats of other programs that encoded data is written in: functions from `Exported` to lines.
EXPORTS = Registry(
    "format to export to", __name__, {"crfsuite": "exporting:crfsuite_lines", "svmlight": "exporting:svmlight_lines"}
)

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "counts": ["TermCount", "TermCounter", "term_counts"],
        "dataset": ["Dataset", "Amount", "UNKNOWN", "UNOBSERVED"],
        "defaults": [
            "Defaults",
            "configured",
            "described",
            "kernel_is_open",
            "number_terms",
            "window_of_numbers",
            "with_defaults",
            "with_terms",
        ],
        "encoding": ["Encoding", "column_names", "fit_encoding", "missing_remarks"],
        "exporting": ["export", "literal_names"],
        "features": [
            "AttributeFeature",
            "CategoricalFeature",
            "ConjunctionFeature",
            "Feature",
            "RealFeature",
            "Vocabulary",
        ],
        "names": ["CONSTANT", "FeatureNames", "conjunction_name", "field_name", "plain_names", "real_names"],
        "spooled": [
            "SUGGESTING_POSITIONS",
            "SpooledColumns",
            "encoded_shards",
            "fit_spooled",
            "join_datasets",
            "shard_borders",
            "spread_sequences",
        ],
        "template_feature": ["LineFeature", "TemplateFeature", "readable", "template_width"],
        "translating": ["Translation", "translation"],
        "views": ["View"],
    },
)
