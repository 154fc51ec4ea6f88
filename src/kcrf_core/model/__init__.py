"""A trained `Model` and its file: labels, probabilities, explanations, summaries, pruning."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
