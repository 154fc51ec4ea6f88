"""The C library `kcrf_runtime`, which labels sequences without Python, from Python; and the table of characters."""

from .._lazy import lazy

# Forms of weights in a file, and the bytes of a weight.
QUANTIZED = {"none": 8, "float32": 4}
# Transforms of texts, and their numbers in files.
TRANSFORMS = {"identity": 0, "lower": 1, "prefix": 2, "suffix": 3, "shape": 4, "variants": 5}

__getattr__, __dir__, __all__ = lazy(__name__)
