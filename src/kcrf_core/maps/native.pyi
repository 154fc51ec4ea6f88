from numpy import dtype, ndarray

from ..system.team import Team

LOWER: int
UPPER: int
ALONE: Team
TOGETHER: int

class Products:
    @property
    def sums(self) -> int: ...

def padded_columns(C: int, single: bool) -> int: ...
def sparse(indptr: ndarray, indices: ndarray, values: ndarray, W: ndarray) -> Products: ...
def kept(indptr: ndarray, indices: ndarray, values: ndarray, starts: ndarray, W: ndarray, C: int) -> Products: ...
def dense(matrix: ndarray, W: ndarray, C: int) -> Products: ...
def padded(values: ndarray, dtype: dtype) -> ndarray: ...
def dealt(source: ndarray, group: ndarray) -> Products: ...
def all_scores(team: Team, own: Products, rows: int, out: ndarray, fresh: bool) -> None: ...
def all_sums(team: Team, own: Products, R: ndarray) -> ndarray: ...
def rows_per_part(rows: int) -> int: ...
def add_sums(matrix: ndarray, R: ndarray, sums: ndarray) -> None: ...
def ordered_sums(team: Team, parts: ndarray, out: ndarray) -> None: ...
def features_gathered(
    team: Team,
    indptr: ndarray,
    indices: ndarray,
    values: ndarray,
    scale: ndarray,
    R: ndarray,
    tasks: ndarray,
    out: ndarray,
) -> None: ...
def kept_places_gathered(
    team: Team,
    indptr: ndarray,
    indices: ndarray,
    values: ndarray,
    scale: ndarray,
    R: ndarray,
    tasks: ndarray,
    kept: ndarray,
    ends: ndarray,
    out: ndarray,
) -> None: ...
def scaled_rows(team: Team, W: ndarray, scale: ndarray, out: ndarray) -> None: ...
def laid_out(
    team: Team,
    block: ndarray,
    scale: ndarray,
    kept: ndarray,
    ends: ndarray,
    starts: ndarray,
    C: int,
    rows: int,
    out: ndarray,
) -> None: ...
def product(
    team: Team, matrix: ndarray, X: ndarray, out: ndarray, filled: int = 0, less: ndarray | None = None
) -> None: ...
