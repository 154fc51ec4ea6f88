from ._runtime import (
    ItemRows as ItemRows,
    RuntimeModel as RuntimeModel,
    RuntimeTagger as RuntimeTagger,
    largest_size as largest_size,
    pair_table as pair_table,
    text_table as text_table,
    weight_rows as weight_rows,
)
from .characters import VERSION as VERSION, by_characters as by_characters, unicode_table as unicode_table

QUANTIZED: dict[str, int]
TRANSFORMS: tuple[str, ...]
OF_CHARACTERS: tuple[str, ...]
