from ..system import Registry
from .bases import StoredBasis, TermBasis, basis_digest, load_basis, save_basis, unpack_basis
from .conjunctions import ConjunctionTerm
from .fitted import DTYPES, FitContext, FittedTerm, MappedTerm, TermFootprint
from .label_match import LabelMatch
from .linear import Affine, AffineTerm, ExplicitTerm, FeatureTerm
from .observed_features import frequent_only, kept_in, observed_only
from .partitions import DataInMemory, MakeMap, TermInputs, TrainingData
from .pivots import FittedPivots, KernelTerm, PivotPlan
from .plans import begin_growth, fit_terms, fit_to, map_type, outside_gain, plan_term, select_bases, stored_bases
from .pruning import PruneReport
from .stored_terms import StoredTerm, read_terms, stored_config
from .term import Term, TermParts

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
    "PruneReport",
    "StoredBasis",
    "StoredTerm",
    "Term",
    "TermBasis",
    "TermFootprint",
    "TermInputs",
    "TermParts",
    "TrainingData",
    "basis_digest",
    "begin_growth",
    "fit_terms",
    "fit_to",
    "frequent_only",
    "kept_in",
    "load_basis",
    "map_type",
    "observed_only",
    "outside_gain",
    "plan_term",
    "read_terms",
    "save_basis",
    "select_bases",
    "stored_bases",
    "stored_config",
    "unpack_basis",
]
