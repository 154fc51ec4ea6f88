"""Model selection: fit on a part of the data and judge by the rest, to compare settings, configurations and labels.

`cross_validation` fits every setting of a `grid` on every fold, on `processes`, with a `journal` to resume from.
`tuning` searches for a configuration: `space` makes candidates, `search` decides which is judged next, `arena` judges.
`label_audit` finds labels that are probably wrong, by the `evidence` of models of the other folds. `pool` chooses
sequences to label next.
"""

from typing import TYPE_CHECKING

from .._lazy import lazy

# These stand here because the help of commands names them, which should not have to wait for NumPy.
STRATEGIES, COSTS = ("entropy", "least-confidence"), ("position", "sequence")  # of `pool`
# Work of the efforts, as `arena.pass_cost` estimates it: 20 seconds, 20 minutes and 4 hours of processor time.
EFFORTS = {"small": 2e10, "normal": 1e12, "large": 1.4e13}

if TYPE_CHECKING:
    from .arena import Outcome
    from .cross_validation import (
        Division,
        Found,
        Plan,
        Task,
        base_seed,
        finished,
        make_plan,
        out_of_fold,
        run_plan,
        summarise,
        tasks_of,
    )
    from .curves import extrapolate, learning_curve
    from .evidence import IMPROBABLE
    from .grid import Setting, make_settings, parse_grid
    from .journal import Journal
    from .label_audit import Audit, DoubtfulPosition, audit_by_folds, audit_by_model, corrected, read_worklist, worklist
    from .pool import Judged, Pool, PoolJudge, PoolSequence
    from .search import Listener, Search
    from .space import Candidate
    from .tuning import Tuning, train_chosen, tune
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
