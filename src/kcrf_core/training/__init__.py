"""From a dataset and a configuration to a model with its certificate, in stages."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "dev": ["DevProgress", "DevReport", "DevScore"],
        "fitted_terms": ["select_bases"],
        "forecast": ["Footprint", "footprint"],
        "growth": ["Growth", "GrowthRound"],
        "observer": ["Observer", "Trial"],
        "prior_search": ["ALL_TERMS"],
        "structure": ["MIN_GAIN", "Structure"],
        "training": ["Report", "train"],
        "warm_start": ["WarmStart"],
    },
)
