from .config import (
    BAGS as BAGS,
    GRADIENT as GRADIENT,
    MAPS as MAPS,
    MODEL_SECTIONS as MODEL_SECTIONS,
    NEAR_COPIES as NEAR_COPIES,
    PRECISIONS as PRECISIONS,
    RUN_TRANSFORMS as RUN_TRANSFORMS,
    SETS as SETS,
    SOFT as SOFT,
    Config as Config,
    DeclaredOption as DeclaredOption,
    FeatureConfig as FeatureConfig,
    MapConfig as MapConfig,
    RulesConfig as RulesConfig,
    TermConfig as TermConfig,
    TrainingConfig as TrainingConfig,
    declared_options as declared_options,
    default_terms as default_terms,
    feature_dict as feature_dict,
    layout_dict as layout_dict,
    option_paths as option_paths,
    plain_kernels as plain_kernels,
    variance_text as variance_text,
)
from .options import parse_settings as parse_settings, resolve_c2 as resolve_c2, with_options as with_options
from .reader import parse_config as parse_config
from .templates import (
    PATTERNS as PATTERNS,
    Macro as Macro,
    is_wapiti_line as is_wapiti_line,
    load_template as load_template,
    looks_like_template as looks_like_template,
    matcher as matcher,
    pieces as pieces,
    same_line as same_line,
)
from .values import (
    CLUSTERS as CLUSTERS,
    EMBEDDINGS as EMBEDDINGS,
    LOOKUPS as LOOKUPS,
    UNSEEN as UNSEEN,
    comma_separated_names as comma_separated_names,
)
from .yaml_text import (
    configuration_text as configuration_text,
    dump_yaml as dump_yaml,
    load_value as load_value,
    load_yaml as load_yaml,
)
