from ..system import Registry
from .bases import StoredBasis, TermBasis, basis_digest, load_basis, save_basis, unpack_basis
from .explicit_terms import MOST_CONJUNCTIONS, FittedAffine, FittedConjunctions, FittedLinear, FittedMerged
from .feature_terms import AffineTerm, ConjunctionTerm, ExplicitTerm, FeatureTerm
from .kernel_term import DeviceKernelTerm, KernelTerm
from .label_match import LabelMatch
from .observed_features import by_label, frequent_only, kept_in, observed_only
from .pruning import PruneReport
from .stored_terms import StoredTerm, read_terms, stored_config
from .term import Term, TermParts
from .term_plans import begin_growth, fit_terms, outside_gain, plan_term, select_bases, stored_bases
from .terms import DTYPES, FittedLabels, FittedTerm, MappedTerm, TermFootprint, worth_sharing

TERMS: Registry[type[Term]]

__all__ = [
    "DTYPES",
    "MOST_CONJUNCTIONS",
    "AffineTerm",
    "ConjunctionTerm",
    "DeviceKernelTerm",
    "ExplicitTerm",
    "FeatureTerm",
    "FittedAffine",
    "FittedConjunctions",
    "FittedLabels",
    "FittedLinear",
    "FittedMerged",
    "FittedTerm",
    "KernelTerm",
    "LabelMatch",
    "MappedTerm",
    "PruneReport",
    "StoredBasis",
    "StoredTerm",
    "Term",
    "TermBasis",
    "TermFootprint",
    "TermParts",
    "basis_digest",
    "begin_growth",
    "by_label",
    "fit_terms",
    "frequent_only",
    "kept_in",
    "load_basis",
    "observed_only",
    "outside_gain",
    "plan_term",
    "read_terms",
    "save_basis",
    "select_bases",
    "stored_bases",
    "stored_config",
    "unpack_basis",
    "worth_sharing",
]
