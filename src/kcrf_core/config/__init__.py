"""The description of columns, features, terms and training, and the YAML files, templates and options it is read from.

What may be chosen stands in the registries of the rooms before this one.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .config import (
        BAGS,
        GRADIENT,
        MAPS,
        MODEL_SECTIONS,
        NEAR_COPIES,
        PRECISIONS,
        RUN_TRANSFORMS,
        SETS,
        SOFT,
        Config,
        DeclaredOption,
        FeatureConfig,
        MapConfig,
        RulesConfig,
        TermConfig,
        TrainingConfig,
        declared_options,
        default_terms,
        feature_dict,
        layout_dict,
        option_paths,
        plain_kernels,
        variance_text,
    )
    from .options import parse_settings, resolve_c2, with_options
    from .reader import parse_config
    from .templates import (
        PATTERNS,
        Macro,
        is_wapiti_line,
        load_template,
        looks_like_template,
        matcher,
        pieces,
        same_line,
    )
    from .values import (
        CLUSTERS,
        EMBEDDINGS,
        LOOKUPS,
        UNSEEN,
        comma_separated_names,
        conjunction_part,
        part_text,
    )
    from .yaml_text import configuration_text, dump_yaml, load_value, load_yaml
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
