"""Cross-validation: folds, grids of settings, a journal to resume from, and processes to run on."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
