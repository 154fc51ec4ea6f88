"""The negative log-posterior P: a sum over chunks of sequences, its gradient, its Hessian and what they prove.

An engine does the arithmetic and owns the vectors; `Objective` is the prior plus an engine.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
