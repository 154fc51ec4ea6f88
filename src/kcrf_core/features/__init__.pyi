from ..system import Registry
from .conjunctions import ConjunctionTerm as ConjunctionTerm
from .fitted import (
    DTYPES as DTYPES,
    DataInMemory as DataInMemory,
    FitContext as FitContext,
    FittedTerm as FittedTerm,
    LabelMatch as LabelMatch,
    MakeMap as MakeMap,
    MappedTerm as MappedTerm,
    TermInputs as TermInputs,
    TrainingData as TrainingData,
)
from .linear import ExplicitTerm as ExplicitTerm, FeatureTerm as FeatureTerm
from .pivots import FittedPivots as FittedPivots, KernelTerm as KernelTerm
from .plans import (
    fit_terms as fit_terms,
    fit_to as fit_to,
    frequent_only as frequent_only,
    map_type as map_type,
    observed_only as observed_only,
    plan_term as plan_term,
    select_bases as select_bases,
)
from .term import (
    StoredBasis as StoredBasis,
    Term as Term,
    WeightTable as WeightTable,
    load_basis as load_basis,
    read_terms as read_terms,
    save_basis as save_basis,
    stored_config as stored_config,
    unpack_basis as unpack_basis,
)

TERMS: Registry[type[Term]]
