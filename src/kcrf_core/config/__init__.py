"""The description of columns, features, terms and training, and the YAML files, templates and options it is read from.

What may be chosen stands in the registries of the rooms before this one.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
