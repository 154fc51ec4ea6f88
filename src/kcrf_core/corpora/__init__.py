"""Files and objects become a `Corpus`: sequences of positions with columns, attributes and labels, numbered as read.

Each file format is one `Format` object in `FORMATS`.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..system import Registry

# Pairs of labels are held in dense tables: training has several, which take some gigabytes then, and evaluation one.
# No task has so many labels, but words have that are read as labels.
MOST_LABELS = 5_000

FORMATS: "Registry[Format]" = Registry(
    "format",
    __name__,
    {"conll": "conll:CONLL", "conllu": "conllu:CONLLU", "crfsuite": "crfsuite:CRFSUITE"},
)

# Transforms of columns of numbers.
NUMBER_TRANSFORMS: "Registry[NumberTransform]" = Registry(
    "transform of numbers",
    __name__,
    {
        name: f"number_transforms:{name.upper()}"
        for name in ("difference", "speed", "log1p", "clip", "rank", "mean", "std")
    },
)

if TYPE_CHECKING:
    from .columns import Columns, Encode, TrainingColumns, column_weights, position_weights
    from .corpus import ATTRIBUTE_FORMAT, COLUMN_FORMAT, AttributeRows, Corpus, concatenate, joined_weights, ones
    from .crfsuite import WEIGHT, escaped
    from .embeddings import NamedVectors, load_word_vectors, open_vectors, with_vectors
    from .formats import Format, arriving_lines, guess_format, named_layout, read_corpus, stream_corpus, stream_parsers
    from .frames import ColumnNames, Frame, FrameRows, is_frame, is_missing, named_row
    from .labelled_texts.documents import OUTSIDE, DocumentBlock, joined, tokens
    from .labelled_texts.xml_files import PART
    from .layout import EMPTY_LABELS, IOB2, MISSING, NAMES, PLAIN, SPAN_LABELS, TOKEN_RULES, Layout, column_place
    from .lexicon_files import load_clusters, load_lexicon
    from .lexicons import NONE, Clusters, Lexicon, Lookup
    from .lines import BYTE_ORDER_MARK, PREDICTED, Block, ParsedBlock, display_name, encode_lines, names_beside
    from .number_transforms import QUANTILE, Moments, NumberTransform, quantiles
    from .sequences import (
        BREAKS,
        COLUMNS,
        ITEMS,
        LABEL_TYPES,
        ArrayLike,
        Classes,
        InputSequence,
        InputSequences,
        ItemStore,
        LabelNames,
        LabelSequences,
        LabelValue,
        Position,
        SequenceResults,
        SequenceWeights,
        StoredItems,
        check_labels,
        check_sequences,
        check_weights,
        corpus_of,
        form_of,
    )
    from .spool import SUGGESTING_POSITIONS, Spool, spread_sequences
    from .tables import CategoryColumn, Cells, CodedColumn, NameCells, NumberColumn, in_order, joined_columns
    from .word_vectors import WordVectors
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
