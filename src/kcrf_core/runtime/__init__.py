"""The C library `kcrf_runtime`, which labels sequences without Python, from Python; and the table of characters."""

from .._lazy import lazy

# Forms of weights in a file, and the bytes of a weight.
QUANTIZED = {"none": 8, "float32": 4}
# Transforms of texts at their numbers in files, and those that need the table of characters.
TRANSFORMS = ("identity", "lower", "prefix", "suffix", "shape", "variants", "edges", "kind", "stripped")
OF_CHARACTERS = ("lower", "shape", "variants", "edges", "kind", "stripped")

__getattr__, __dir__, __all__ = lazy(__name__)
