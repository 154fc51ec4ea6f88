"""`KernelCRF`: training and tagging of arrays and dictionaries, in the manner of scikit-learn."""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
