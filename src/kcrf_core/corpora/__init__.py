"""Files and objects become a `Corpus`: sequences of positions with columns, attributes and labels, still as text.

Each file format is one `Format` object in `FORMATS`.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "conll": ["append_labels"],
        "conllu": ["NO_VALUE", "column_places", "put_labels"],
        "corpus": ["AttributeRows", "CodedColumn", "Corpus", "NumberColumn", "complete_sequences", "sequence_rows"],
        "crfsuite": ["WEIGHT", "escaped", "label_column"],
        "formats": ["guess_format", "read_corpus", "stream_corpus"],
        "lines": ["BYTE_ORDER_MARK", "ParsedBlock", "display_name"],
        "sequences": [
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
        "weight_lines": ["parse_weight"],
    },
)
