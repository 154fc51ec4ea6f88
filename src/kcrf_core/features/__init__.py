"""Kinds of terms that look at the input, each from its `TermPlan` by its `FittedTerm` to the `Term` of a model."""

from typing import TYPE_CHECKING

from .._lazy import lazy
from ..system import Registry

# Terms of a model by the words for them in files.
TERMS: "Registry[type[Term]]" = Registry(
    "kind of term",
    __name__,
    {"explicit": "linear:ExplicitTerm", "reduced": "pivots:KernelTerm", "conjunctions": "conjunctions:ConjunctionTerm"},
)

if TYPE_CHECKING:
    from .conjunctions import ConjunctionTerm
    from .fitted import (
        DTYPES,
        DataInMemory,
        FitContext,
        FittedTerm,
        LabelMatch,
        MakeMap,
        MappedTerm,
        TermInputs,
        TrainingData,
    )
    from .linear import ExplicitTerm, FeatureTerm
    from .pivots import FittedPivots, KernelTerm
    from .plans import fit_terms, fit_to, frequent_only, map_type, observed_only, plan_term, select_bases
    from .term import StoredBasis, Term, WeightTable, load_basis, read_terms, save_basis, stored_config, unpack_basis
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
