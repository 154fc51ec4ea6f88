from ..system import Registry
from .arriving import arriving_lines as arriving_lines
from .columns import (
    Columns as Columns,
    Encode as Encode,
    TrainingColumns as TrainingColumns,
    column_weights as column_weights,
)
from .corpus import (
    ATTRIBUTE_FORMAT as ATTRIBUTE_FORMAT,
    COLUMN_FORMAT as COLUMN_FORMAT,
    AttributeRows as AttributeRows,
    Corpus as Corpus,
    concatenate as concatenate,
    joined_weights as joined_weights,
    ones as ones,
)
from .crfsuite import WEIGHT as WEIGHT, escaped as escaped
from .embeddings import (
    NamedVectors as NamedVectors,
    load_word_vectors as load_word_vectors,
    open_vectors as open_vectors,
    with_vectors as with_vectors,
)
from .formats import (
    Format as Format,
    guess_format as guess_format,
    named_layout as named_layout,
    read_corpus as read_corpus,
    stream_corpus as stream_corpus,
    stream_parsers as stream_parsers,
)
from .frames import ColumnNames as ColumnNames, Frame as Frame, FrameRows as FrameRows, is_frame as is_frame
from .labelled_texts.documents import (
    OUTSIDE as OUTSIDE,
    DocumentBlock as DocumentBlock,
    joined as joined,
    tokens as tokens,
)
from .labelled_texts.xml_files import PART as PART
from .layout import (
    IOB2 as IOB2,
    MISSING as MISSING,
    NAMES as NAMES,
    PLAIN as PLAIN,
    SPAN_LABELS as SPAN_LABELS,
    TOKEN_RULES as TOKEN_RULES,
    Layout as Layout,
    column_place as column_place,
)
from .lexicon_files import load_clusters as load_clusters, load_lexicon as load_lexicon
from .lexicons import NONE as NONE, Clusters as Clusters, Lexicon as Lexicon, Lookup as Lookup
from .lines import (
    BYTE_ORDER_MARK as BYTE_ORDER_MARK,
    PREDICTED as PREDICTED,
    Block as Block,
    ParsedBlock as ParsedBlock,
    display_name as display_name,
    encode_lines as encode_lines,
)
from .number_transforms import (
    QUANTILE as QUANTILE,
    Moments as Moments,
    NumberTransform as NumberTransform,
    quantiles as quantiles,
)
from .sequences import (
    BREAKS as BREAKS,
    COLUMNS as COLUMNS,
    ITEMS as ITEMS,
    LABEL_TYPES as LABEL_TYPES,
    ArrayLike as ArrayLike,
    Classes as Classes,
    InputSequence as InputSequence,
    InputSequences as InputSequences,
    LabelNames as LabelNames,
    LabelSequences as LabelSequences,
    LabelValue as LabelValue,
    Position as Position,
    SequenceResults as SequenceResults,
    SequenceWeights as SequenceWeights,
    check_labels as check_labels,
    check_sequences as check_sequences,
    check_weights as check_weights,
    corpus_of as corpus_of,
    form_of as form_of,
)
from .spool import SUGGESTING_POSITIONS as SUGGESTING_POSITIONS, Spool as Spool, spread_sequences as spread_sequences
from .tables import (
    CategoryColumn as CategoryColumn,
    Cells as Cells,
    CodedColumn as CodedColumn,
    NameCells as NameCells,
    NumberColumn as NumberColumn,
    in_order as in_order,
    joined_columns as joined_columns,
)
from .word_vectors import WordVectors as WordVectors

MOST_LABELS: int
FORMATS: Registry[Format]
NUMBER_TRANSFORMS: Registry[NumberTransform]
