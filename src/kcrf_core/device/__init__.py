"""One device for the arithmetic of training: a GPU, PyTorch without one, or NumPy to test the same code with.

Maps, forward-backward and vectors use the few operations of a `Backend`. PyTorch is imported by its own backend alone.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
