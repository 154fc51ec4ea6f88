"""Threads, products of rows, ragged arrays, memory, registries, declared settings.

Nothing here knows of conditional random fields.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
