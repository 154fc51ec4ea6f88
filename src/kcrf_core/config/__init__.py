"""The description of columns, features, terms and training, and the YAML files, templates and options it is read from.

What may be chosen stands in the registries of the rooms before this one.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "config": [
            "AUTO",
            "BAGS",
            "Config",
            "DEEPEST_KERNEL",
            "EXPLICIT_KERNELS",
            "FeatureConfig",
            "GRADIENT",
            "KERNEL_KEYS",
            "KernelConfig",
            "LARGEST_BLUR",
            "LARGEST_REACH",
            "TermConfig",
            "TrainingConfig",
            "feature_dict",
            "matching_features",
        ],
        "options": ["OPTION_PATHS", "with_options"],
        "reader": ["parse_config"],
        "templates": ["load_template", "looks_like_template", "pieces"],
        "values": ["integer", "shape"],
        "yaml_text": ["load_yaml"],
    },
)
