"""Threads, products of rows, memory, writing files, `.npz` containers, compressed files, registries, declared settings.

Nothing here knows of conditional random fields.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
