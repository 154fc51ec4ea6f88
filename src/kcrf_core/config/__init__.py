"""The description of columns, features, terms and training, and the YAML files, templates and options it is read from.

What may be chosen stands in the registries of the rooms before this one.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "config": [
            "BAGS",
            "Config",
            "FeatureConfig",
            "GRADIENT",
            "MAPS",
            "PRECISIONS",
            "SCHEME_VIOLATIONS",
            "TermConfig",
            "TrainingConfig",
            "default_terms",
            "feature_dict",
            "layout_dict",
            "selections",
            "variance_text",
        ],
        "options": ["option_paths", "parse_settings", "with_options"],
        "reader": ["parse_config"],
        "templates": ["PATTERNS", "load_template", "looks_like_template", "pieces", "same_line"],
        "wapiti_patterns": ["Macro", "is_wapiti_line", "matcher"],
        "yaml_text": ["configuration_text", "load_value", "load_yaml"],
    },
)
