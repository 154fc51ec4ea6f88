"""One device for the arithmetic of training: a GPU, PyTorch without one, or NumPy to test the same code with."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
