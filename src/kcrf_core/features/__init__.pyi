from ..system import Registry
from .conjunctions import ConjunctionTerm
from .fitted import (
    DTYPES,
    DataInMemory,
    FitContext,
    FittedTerm,
    LabelMatch,
    MakeMap,
    MappedTerm,
    TermFootprint,
    TermInputs,
    TrainingData,
)
from .linear import Affine, AffineTerm, ExplicitTerm, FeatureTerm
from .pivots import FittedPivots, KernelTerm, PivotPlan
from .plans import (
    fit_terms,
    fit_to,
    frequent_only,
    map_type,
    observed_only,
    plan_term,
    select_bases,
)
from .term import (
    StoredBasis,
    StoredTerm,
    Term,
    TermBasis,
    TermParts,
    load_basis,
    read_terms,
    save_basis,
    stored_config,
    unpack_basis,
)

TERMS: Registry[type[Term]]

__all__ = [
    "DTYPES",
    "Affine",
    "AffineTerm",
    "ConjunctionTerm",
    "DataInMemory",
    "ExplicitTerm",
    "FeatureTerm",
    "FitContext",
    "FittedPivots",
    "FittedTerm",
    "KernelTerm",
    "LabelMatch",
    "MakeMap",
    "MappedTerm",
    "PivotPlan",
    "StoredBasis",
    "StoredTerm",
    "Term",
    "TermBasis",
    "TermFootprint",
    "TermInputs",
    "TermParts",
    "TrainingData",
    "fit_terms",
    "fit_to",
    "frequent_only",
    "load_basis",
    "map_type",
    "observed_only",
    "plan_term",
    "read_terms",
    "save_basis",
    "select_bases",
    "stored_config",
    "unpack_basis",
]
