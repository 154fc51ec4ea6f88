from ._runtime import RuntimeModel, RuntimeTagger, checksum, pair_table, text_table
from .characters import VERSION, by_characters, unicode_table

QUANTIZED: dict[str, int]
TRANSFORMS: dict[str, int]

__all__ = [
    "VERSION",
    "RuntimeModel",
    "RuntimeTagger",
    "by_characters",
    "checksum",
    "pair_table",
    "text_table",
    "unicode_table",
]
