"""A corpus and a configuration become a `Dataset`: vocabularies, scaling, windows, and names of features."""

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .candidates import alternatives, around, conjunctions, grams, shape_features
    from .cut_offs import RareValues
    from .dataset import UNKNOWN, UNOBSERVED, Amount, Dataset, join_datasets, joined_hashes, joined_labels
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
        with_terms,
    )
    from .encoding import (
        Encoding,
        column_names,
        fit_encoding,
        fit_to,
        input_hashes,
        left_out_columns,
        missing_remarks,
        outside_remarks,
    )
    from .exporting import export, literal_names
    from .features import (
        AttributeFeature,
        CategoricalFeature,
        ConjunctionFeature,
        Feature,
        RealFeature,
        View,
        Vocabulary,
        vector_rows,
        window_text,
    )
    from .group_scaling import Totals
    from .half_known import label_counts
    from .hashing import GOLDEN, SHORTEST, found_among, mixed, sequence_hashes, text_hashes
    from .likely_slips import slip_warnings
    from .lookup_feature import LookupFeature, find_table, with_tables
    from .names import conjunction_name, field_name, plain_names, real_names
    from .template_feature import LineFeature, TemplateFeature, readable, template_width
    from .translating import Translation, translation
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
