from ._runtime import RuntimeModel, RuntimeTagger, checksum, pair_table, text_table, transformed
from .characters import VERSION, unicode_table

QUANTIZED: dict[str, int]

__all__ = [
    "VERSION",
    "RuntimeModel",
    "RuntimeTagger",
    "checksum",
    "pair_table",
    "text_table",
    "transformed",
    "unicode_table",
]
