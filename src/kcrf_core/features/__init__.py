"""Kinds of terms that look at the input, each from its plan to the term of a model.

`linear`, `conjunctions` and `pivots` own a kind each. A `TermPlan` says which map a term of the configuration gets and
how much memory that takes, and fits it over partitions of the data; a `FittedTerm` has the map on training data, and a
`Term` is what a model keeps: weights, scores, explanations.
"""

from .._lazy import lazy
from ..system import Registry

# Terms of a model by the words for them in files.
TERMS = Registry(
    "kind of term",
    __name__,
    {
        "explicit": "linear:ExplicitTerm",
        "affine": "linear:AffineTerm",
        "reduced": "pivots:KernelTerm",
        "conjunctions": "conjunctions:ConjunctionTerm",
    },
)

__getattr__, __dir__, __all__ = lazy(__name__)
