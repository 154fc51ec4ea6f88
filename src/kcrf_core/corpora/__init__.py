"""Files and objects become a `Corpus`: sequences of positions with columns, attributes and labels, still as text.

Each file format is one `Format` object in `FORMATS`.
"""

from .._lazy import lazy
from ..system import Registry

FORMATS = Registry(
    "format",
    __name__,
    {"conll": "conll:CONLL", "conllu": "conllu:CONLLU", "crfsuite": "crfsuite:CRFSUITE"},
)

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "arriving": ["Arrival", "arriving_lines"],
        "corpus": [
            "AttributeRows",
            "COLUMN_FORMAT",
            "CodedColumn",
            "Corpus",
            "MOST_LABELS",
            "NumberColumn",
            "complete_sequences",
            "concatenate",
            "sequence_rows",
        ],
        "crfsuite": ["WEIGHT", "escaped"],
        "formats": ["Format", "guess_format", "read_corpus", "stream_corpus", "stream_parsers"],
        "lines": ["BYTE_ORDER_MARK", "Block", "ParsedBlock", "display_name", "encode_lines"],
        "sequences": [
            "BREAKS",
            "COLUMNS",
            "ITEMS",
            "LABEL_TYPES",
            "LabelLists",
            "LabelNames",
            "check_labels",
            "check_sequences",
            "check_weights",
            "corpus_of",
            "form_of",
        ],
        "vectors": ["NamedVectors", "VectorStream", "open_vectors", "with_vectors"],
        "weight_lines": ["parse_weight"],
    },
)
