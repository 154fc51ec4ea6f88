"""One device for the arithmetic of training: a GPU, PyTorch without one, or NumPy to test the same code with.

Maps, forward-backward and vectors are written once, on the few operations of a `Backend`. PyTorch is imported where an
engine of it is asked for, and nowhere else.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
