from .candidates import (
    alternatives as alternatives,
    around as around,
    conjunctions as conjunctions,
    grams as grams,
    shape_features as shape_features,
)
from .dataset import (
    UNKNOWN as UNKNOWN,
    UNOBSERVED as UNOBSERVED,
    Amount as Amount,
    Dataset as Dataset,
    join_datasets as join_datasets,
    joined_hashes as joined_hashes,
    joined_labels as joined_labels,
)
from .defaults import (
    NUMBER_KERNEL as NUMBER_KERNEL,
    NUMBER_PIVOTS as NUMBER_PIVOTS,
    Defaults as Defaults,
    configured as configured,
    described as described,
    kernel_is_open as kernel_is_open,
    lookups as lookups,
    number_terms as number_terms,
    suggested_number_terms as suggested_number_terms,
    window_of_numbers as window_of_numbers,
    with_defaults as with_defaults,
    with_terms as with_terms,
)
from .encoding import (
    Encoding as Encoding,
    column_names as column_names,
    fit_encoding as fit_encoding,
    fit_to as fit_to,
    input_hashes as input_hashes,
    missing_remarks as missing_remarks,
    outside_remarks as outside_remarks,
)
from .exporting import export as export, literal_names as literal_names
from .features import (
    AttributeFeature as AttributeFeature,
    CategoricalFeature as CategoricalFeature,
    ConjunctionFeature as ConjunctionFeature,
    Feature as Feature,
    RealFeature as RealFeature,
    View as View,
    Vocabulary as Vocabulary,
    vector_rows as vector_rows,
    window_text as window_text,
)
from .group_scaling import Totals as Totals
from .half_known import label_names as label_names
from .hashing import (
    GOLDEN as GOLDEN,
    SHORTEST as SHORTEST,
    found_among as found_among,
    mixed as mixed,
    sequence_hashes as sequence_hashes,
    text_hashes as text_hashes,
)
from .lookup_feature import LookupFeature as LookupFeature, find_table as find_table, with_tables as with_tables
from .names import (
    conjunction_name as conjunction_name,
    field_name as field_name,
    plain_names as plain_names,
    real_names as real_names,
)
from .template_feature import (
    LineFeature as LineFeature,
    TemplateFeature as TemplateFeature,
    readable as readable,
    template_width as template_width,
)
from .translating import Translation as Translation, translation as translation
