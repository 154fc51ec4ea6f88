"""Model selection: fit on a part of the data and judge by the rest, to compare settings, configurations and labels.

`cross_validation` fits every setting of a `grid` on every fold, on `processes`, with a `journal` to resume from.
`tuning` searches for a configuration: `space` makes candidates, `search` decides which is judged next, `arena` judges.
`label_audit` finds labels that are probably wrong, by the `evidence` of models of the other folds. `pool` chooses
sequences to label next.
"""

from .._lazy import lazy

# These stand here because the help of commands names them, which should not have to wait for NumPy.
STRATEGIES, COSTS = ("entropy", "least-confidence"), ("position", "sequence")  # of `pool`
# Work of the efforts, as `arena.pass_cost` estimates it: 20 seconds, 20 minutes and 4 hours of processor time.
EFFORTS = {"small": 2e10, "normal": 1e12, "large": 1.4e13}

__getattr__, __dir__, __all__ = lazy(__name__)
