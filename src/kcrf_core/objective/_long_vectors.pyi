from numpy import ndarray

from ..system.team import Team

class Values:
    def __init__(self, array: ndarray, size: int, written: bool = False) -> None: ...

class Rows:
    count: int
    def __init__(self, rows: list[Values]) -> None: ...

class Slices:
    def __init__(self, team: Team, bounds: ndarray) -> None: ...

def stepped(slices: Slices, runs: ndarray, start: Values, step: float, direction: Values, out: Values) -> None: ...
def copied(slices: Slices, runs: ndarray, vector: Values, out: Values) -> None: ...
def combined(slices: Slices, runs: ndarray, a: Values, b: Values, divide: bool, out: Values) -> None: ...
def dots(slices: Slices, runs: ndarray, a: Values, b: Values, sums: ndarray) -> None: ...
def products(slices: Slices, runs: ndarray, rows: Rows, count: int, vector: Values, sums: ndarray) -> None: ...
def add_curvature(slices: Slices, runs: ndarray, target: Values, vector: Values, precisions: ndarray) -> None: ...
def add_prior(
    slices: Slices, runs: ndarray, gradient: Values, theta: Values, precisions: ndarray, sums: ndarray
) -> None: ...
def linearised(
    slices: Slices,
    runs: ndarray,
    theta: Values,
    gradient: Values,
    precisions: ndarray,
    others: Rows,
    out: Values,
    sums: ndarray,
) -> None: ...
def put_pair(
    slices: Slices,
    runs: ndarray,
    steps: Rows,
    changes: Rows,
    count: int,
    slot: int,
    before: Values,
    after: Values,
    gradient: Values,
    new_gradient: Values,
    sums: ndarray,
) -> None: ...
def reduced(
    slices: Slices,
    runs: ndarray,
    changes: Rows,
    shares: ndarray,
    gradient: Values,
    scale: Values | None,
    newest: int,
    out: Values,
    sums: ndarray | None,
) -> None: ...
def finished(
    slices: Slices,
    runs: ndarray,
    steps: Rows,
    weights: ndarray,
    length: float,
    target: Values,
    gradient: Values,
    sums: ndarray,
) -> None: ...
