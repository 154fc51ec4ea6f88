from ._row_products import VECTOR_WIDTHS as VECTOR_WIDTHS, vector_width as vector_width
from .backend import DOUBLE as DOUBLE, Array as Array, Backend as Backend
from .cholesky import (
    FACTORISED_AT_ONCE as FACTORISED_AT_ONCE,
    factorise as factorise,
    solve_factorised as solve_factorised,
)
from .forks import renew_after_fork as renew_after_fork
from .late_scipy import in_place as in_place, linear_algebra as linear_algebra, scipy_module as scipy_module
from .memory import (
    Budget as Budget,
    check_room_for_blas as check_room_for_blas,
    free_memory as free_memory,
    hand_back as hand_back,
)
from .products import (
    SLAB as SLAB,
    Factor as Factor,
    padded as padded,
    row_products as row_products,
    row_squares as row_squares,
)
from .ragged import (
    complete_sequences as complete_sequences,
    offsets_of as offsets_of,
    piece_rows as piece_rows,
    positions_within as positions_within,
    sequence_rows as sequence_rows,
    shifted_real as shifted_real,
    without_empty as without_empty,
)
from .registry import (
    ANOTHER as ANOTHER,
    PLUGINS as PLUGINS,
    NotRegistered as NotRegistered,
    Plugin as Plugin,
    Registry as Registry,
    load_plugin as load_plugin,
)
from .settings import (
    AUTO as AUTO,
    LEAST_TOLERANCE as LEAST_TOLERANCE,
    Automatic as Automatic,
    DeclaredSetting as DeclaredSetting,
    Number as Number,
    OneOf as OneOf,
    Whole as Whole,
    boolean as boolean,
    declared as declared,
    described as described,
    settings_of as settings_of,
)
from .team import Team as Team
from .threads import (
    PAUSE as PAUSE,
    Pause as Pause,
    Workers as Workers,
    available_threads as available_threads,
    ranges as ranges,
    sequence_chunks as sequence_chunks,
)
from .wording import (
    MOST_LISTED as MOST_LISTED,
    Remark as Remark,
    counted as counted,
    listed as listed,
    size_text as size_text,
)
