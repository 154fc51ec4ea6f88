from numpy import dtype, ndarray

from ..system.team import Team

LOWER: int
UPPER: int
ALONE: Team
TOGETHER: int

class Products:
    @property
    def sums(self) -> int: ...

def new_sums(size: int, C: int, dtype: dtype) -> ndarray: ...
def sparse(
    indptr: ndarray, indices: ndarray, values: ndarray, W: ndarray, C: int, starts: ndarray | None = None
) -> Products: ...
def dense(matrix: ndarray, C: int, W: ndarray | None = None) -> Products: ...
def padded(values: ndarray, dtype: dtype) -> ndarray: ...
def all_scores(team: Team, own: Products, rows: int, out: ndarray, fresh: bool) -> None: ...
def all_sums(team: Team, own: Products, R: ndarray) -> ndarray: ...
def rows_per_part(rows: int) -> int: ...
def add_sums(matrix: ndarray, R: ndarray, sums: ndarray) -> None: ...
def ordered_sums(team: Team, parts: ndarray, out: ndarray) -> None: ...
def gathered(
    team: Team,
    indptr: ndarray,
    indices: ndarray,
    values: ndarray,
    scale: ndarray,
    R: ndarray,
    tasks: ndarray,
    out: ndarray,
    kept: ndarray | None = None,
    ends: ndarray | None = None,
) -> None: ...
def laid_out(
    team: Team,
    block: ndarray,
    scale: ndarray,
    kept: ndarray | None,
    ends: ndarray | None,
    starts: ndarray | None,
    C: int,
    rows: int,
    out: ndarray,
) -> None: ...
def product(
    team: Team, matrix: ndarray, X: ndarray, out: ndarray, filled: int = 0, less: ndarray | None = None
) -> None: ...
