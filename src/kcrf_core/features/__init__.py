"""Kinds of terms that look at the input, each from its `TermPlan` by its `FittedTerm` to the `Term` of a model."""

from .._lazy import lazy
from ..system import Registry

# Terms of a model by the words for them in files.
TERMS = Registry(
    "kind of term",
    __name__,
    {
        "explicit": "linear:ExplicitTerm",
        "reduced": "pivots:KernelTerm",
        "conjunctions": "conjunctions:ConjunctionTerm",
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
