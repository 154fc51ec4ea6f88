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

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "arriving": ["Arrival", "arriving_lines"],
        "tables": [
            "LACKING",
            "NUMBER",
            "WORD",
            "CodedColumn",
            "NameCells",
            "NumberColumn",
            "in_order",
        ],
        "corpus": [
            "ATTRIBUTE_FORMAT",
            "AttributeRows",
            "COLUMN_FORMAT",
            "Corpus",
            "MOST_LABELS",
            "complete_sequences",
            "ones",
            "concatenate",
            "piece_rows",
            "sequence_rows",
        ],
        "crfsuite": ["WEIGHT", "escaped"],
        "formats": ["Format", "guess_format", "read_corpus", "stream_corpus", "stream_parsers"],
        "layout": ["Layout", "MISSING", "PLAIN"],
        "lines": ["BYTE_ORDER_MARK", "PREDICTED", "Block", "ParsedBlock", "display_name", "encode_lines", "open_input"],
        "sequences": [
            "ArrayLike",
            "BREAKS",
            "InputSequence",
            "InputSequences",
            "LabelSequences",
            "LabelValue",
            "SequenceWeights",
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
        "spool": ["SharedColumn", "Spool", "SpooledRows", "spool_corpus"],
        "embeddings": ["NamedVectors", "VectorStream", "open_vectors", "with_vectors"],
        "weight_lines": ["parse_weight"],
    },
)
