"""The search for a configuration: candidates made from what columns hold, judged on held-out parts of the data.

`space` makes candidates, `search` says which to judge next, `arena` judges them, `tuning` is the whole of it.
"""

from .._lazy import lazy

# Work of the efforts, as `arena.pass_cost` counts it: about ten seconds, ten minutes and two hours of two cores. It
# stands here because the help of commands names them, which should not have to wait for NumPy.
EFFORTS = {"small": 2e10, "normal": 1.2e12, "large": 1.4e13}

__getattr__, __dir__, __all__ = lazy(__name__)
