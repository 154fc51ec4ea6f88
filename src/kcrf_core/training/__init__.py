"""From a dataset and a configuration to a model with its certificate, in stages."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
