"""Files and objects become a `Corpus`: sequences of positions with columns, attributes and labels, numbered as read.

Each file format is one `Format` object in `FORMATS`.
"""

from .._lazy import lazy
from ..system import Registry

FORMATS = Registry(
    "format",
    __name__,
    {"conll": "conll:CONLL", "conllu": "conllu:CONLLU", "crfsuite": "crfsuite:CRFSUITE"},
)

__getattr__, __dir__, __all__ = lazy(__name__)
