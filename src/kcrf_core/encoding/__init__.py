"""A corpus and a configuration become a `Dataset`: vocabularies, scaling, windows, and names of features."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
