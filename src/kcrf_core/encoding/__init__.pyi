from collections.abc import Callable, Iterator

from ..system import Registry
from .counts import TermCount, TermCounter
from .dataset import UNKNOWN, UNOBSERVED, Amount, Dataset, join_datasets
from .defaults import (
    NUMBER_KERNEL,
    NUMBER_PIVOTS,
    Defaults,
    configured,
    described,
    kernel_is_open,
    lookups,
    number_terms,
    suggested_number_terms,
    window_of_numbers,
    with_defaults,
    with_number_terms,
    with_terms,
)
from .encoding import Encoding, column_names, fit_encoding, fit_to, missing_remarks
from .exporting import Exported, export, literal_names
from .features import (
    AttributeFeature,
    CategoricalFeature,
    ConjunctionFeature,
    Feature,
    RealFeature,
    View,
    Vocabulary,
    window_text,
)
from .lookup_feature import LookupFeature, find_table, table_keys, with_tables
from .names import CONSTANT, FeatureNames, conjunction_name, field_name, plain_names, real_names
from .template_feature import LineFeature, TemplateFeature, readable, template_width
from .translating import Translation, translation

EXPORTS: Registry[Callable[[Exported], Iterator[str]]]

__all__ = [
    "CONSTANT",
    "NUMBER_KERNEL",
    "NUMBER_PIVOTS",
    "UNKNOWN",
    "UNOBSERVED",
    "Amount",
    "AttributeFeature",
    "CategoricalFeature",
    "ConjunctionFeature",
    "Dataset",
    "Defaults",
    "Encoding",
    "Exported",
    "Feature",
    "FeatureNames",
    "LineFeature",
    "LookupFeature",
    "RealFeature",
    "TemplateFeature",
    "TermCount",
    "TermCounter",
    "Translation",
    "View",
    "Vocabulary",
    "column_names",
    "configured",
    "conjunction_name",
    "described",
    "export",
    "field_name",
    "find_table",
    "fit_encoding",
    "fit_to",
    "join_datasets",
    "kernel_is_open",
    "literal_names",
    "lookups",
    "missing_remarks",
    "number_terms",
    "plain_names",
    "readable",
    "real_names",
    "suggested_number_terms",
    "table_keys",
    "template_width",
    "translation",
    "window_of_numbers",
    "window_text",
    "with_defaults",
    "with_number_terms",
    "with_tables",
    "with_terms",
]
