"""Files: atomic writing, `.npz` containers, compression, scratch folders, trees of values without pickle."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
