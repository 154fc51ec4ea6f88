from ..system import Registry
from .arriving import Arrival, arriving_lines
from .corpus import ATTRIBUTE_FORMAT, COLUMN_FORMAT, MOST_LABELS, AttributeRows, Corpus, concatenate, ones
from .crfsuite import WEIGHT, escaped
from .embeddings import NamedVectors, VectorStream, open_vectors, with_vectors
from .formats import Format, guess_format, read_corpus, stream_corpus, stream_parsers
from .layout import MISSING, PLAIN, Layout
from .lines import BYTE_ORDER_MARK, PREDICTED, Block, ParsedBlock, display_name, encode_lines
from .sequences import (
    BREAKS,
    COLUMNS,
    ITEMS,
    LABEL_TYPES,
    ArrayLike,
    InputSequence,
    InputSequences,
    LabelLists,
    LabelNames,
    LabelSequences,
    LabelValue,
    SequenceWeights,
    check_labels,
    check_sequences,
    check_weights,
    corpus_of,
    form_of,
)
from .spool import SharedColumn, Spool, SpooledRows, spool_corpus
from .tables import LACKING, NUMBER, WORD, CodedColumn, NameCells, NumberColumn, in_order
from .weight_lines import parse_weight

FORMATS: Registry[Format]

__all__ = [
    "ATTRIBUTE_FORMAT",
    "BREAKS",
    "BYTE_ORDER_MARK",
    "COLUMNS",
    "COLUMN_FORMAT",
    "ITEMS",
    "LABEL_TYPES",
    "LACKING",
    "MISSING",
    "MOST_LABELS",
    "NUMBER",
    "PLAIN",
    "PREDICTED",
    "WEIGHT",
    "WORD",
    "ArrayLike",
    "Arrival",
    "AttributeRows",
    "Block",
    "CodedColumn",
    "Corpus",
    "Format",
    "InputSequence",
    "InputSequences",
    "LabelLists",
    "LabelNames",
    "LabelSequences",
    "LabelValue",
    "Layout",
    "NameCells",
    "NamedVectors",
    "NumberColumn",
    "ParsedBlock",
    "SequenceWeights",
    "SharedColumn",
    "Spool",
    "SpooledRows",
    "VectorStream",
    "arriving_lines",
    "check_labels",
    "check_sequences",
    "check_weights",
    "concatenate",
    "corpus_of",
    "display_name",
    "encode_lines",
    "escaped",
    "form_of",
    "guess_format",
    "in_order",
    "ones",
    "open_vectors",
    "parse_weight",
    "read_corpus",
    "spool_corpus",
    "stream_corpus",
    "stream_parsers",
    "with_vectors",
]
