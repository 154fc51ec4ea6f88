"""Terms of a configuration on their data: which map each gets, what that takes, and the map itself.

A `TermPlan` says what a term will be and how much memory it takes, a `FittedTerm` has its map (`explicit_terms`,
`pivot_terms`); `term_plans` makes them.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
