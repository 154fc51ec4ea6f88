"""The search for a configuration: candidates made from what columns hold, judged on held-out parts of the data.

`space` makes candidates, `search` says which to judge next, `arena` judges them, `tuning` is the whole of it.
"""

from .._lazy import lazy

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "search": ["Listener", "Outcome", "Search"],
        "space": ["Candidate", "Space"],
        "tuning": ["EFFORTS", "Nested", "Tuning", "make_space", "tune"],
        "writing": ["configuration_text"],
    },
)
