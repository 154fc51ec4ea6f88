from .arena import Outcome as Outcome
from .cross_validation import (
    Division as Division,
    Found as Found,
    Plan as Plan,
    Task as Task,
    base_seed as base_seed,
    finished as finished,
    make_plan as make_plan,
    out_of_fold as out_of_fold,
    run_plan as run_plan,
    summarise as summarise,
    tasks_of as tasks_of,
)
from .curves import extrapolate as extrapolate, learning_curve as learning_curve
from .evidence import IMPROBABLE as IMPROBABLE
from .grid import Setting as Setting, make_settings as make_settings, parse_grid as parse_grid
from .journal import Journal as Journal
from .label_audit import (
    Audit as Audit,
    DoubtfulPosition as DoubtfulPosition,
    audit_by_folds as audit_by_folds,
    audit_by_model as audit_by_model,
    corrected as corrected,
    read_worklist as read_worklist,
    worklist as worklist,
)
from .pool import (
    Judged as Judged,
    Pool as Pool,
    PoolJudge as PoolJudge,
    PoolSequence as PoolSequence,
)
from .search import Listener as Listener, Search as Search
from .space import Candidate as Candidate
from .tuning import Tuning as Tuning, train_chosen as train_chosen, tune as tune

STRATEGIES: tuple[str, ...]
COSTS: tuple[str, ...]
EFFORTS: dict[str, float]
