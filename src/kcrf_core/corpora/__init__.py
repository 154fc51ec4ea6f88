"""Files and objects become a `Corpus`: sequences of positions with columns, attributes and labels, numbered as read.

Each file format is one `Format` object in `FORMATS`.
"""

from .._lazy import lazy
from ..system import Registry

# Pairs of labels are held in dense tables: training has several, which take some gigabytes then, and evaluation one.
# No task has so many labels, but words have that are read as labels.
MOST_LABELS = 5_000

FORMATS = Registry(
    "format",
    __name__,
    {"conll": "conll:CONLL", "conllu": "conllu:CONLLU", "crfsuite": "crfsuite:CRFSUITE"},
)

# Transforms of columns of numbers.
NUMBER_TRANSFORMS = Registry(
    "transform of numbers",
    __name__,
    {
        name: f"number_transforms:{name.upper()}"
        for name in ("difference", "speed", "log1p", "clip", "rank", "mean", "std")
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
