from .config import (
    BAGS,
    GRADIENT,
    MAPS,
    PRECISIONS,
    SCHEME_VIOLATIONS,
    Config,
    FeatureConfig,
    TermConfig,
    TrainingConfig,
    default_terms,
    feature_dict,
    layout_dict,
    selections,
    variance_text,
)
from .declarations import DeclaredOption, declared_options, option_paths
from .options import parse_settings, resolve_c2, with_options
from .reader import parse_config
from .templates import PATTERNS, load_template, looks_like_template, pieces, same_line
from .wapiti_patterns import Macro, is_wapiti_line, matcher
from .yaml_text import configuration_text, load_value, load_yaml

__all__ = [
    "BAGS",
    "GRADIENT",
    "MAPS",
    "PATTERNS",
    "PRECISIONS",
    "SCHEME_VIOLATIONS",
    "Config",
    "DeclaredOption",
    "FeatureConfig",
    "Macro",
    "TermConfig",
    "TrainingConfig",
    "configuration_text",
    "declared_options",
    "default_terms",
    "feature_dict",
    "is_wapiti_line",
    "layout_dict",
    "load_template",
    "load_value",
    "load_yaml",
    "looks_like_template",
    "matcher",
    "option_paths",
    "parse_config",
    "parse_settings",
    "pieces",
    "resolve_c2",
    "same_line",
    "selections",
    "variance_text",
    "with_options",
]
