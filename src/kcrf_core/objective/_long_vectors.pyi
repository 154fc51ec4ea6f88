from numpy import ndarray

class Values:
    def __init__(self, array: ndarray, size: int, written: bool = False) -> None: ...

class Rows:
    count: int
    def __init__(self, rows: list[Values]) -> None: ...

def stepped(
    start: Values, step: float, direction: Values, out: Values, bounds: ndarray, first: int, last: int
) -> None: ...
def copied(vector: Values, out: Values, bounds: ndarray, first: int, last: int) -> None: ...
def combined(a: Values, b: Values, divide: bool, out: Values, bounds: ndarray, first: int, last: int) -> None: ...
def dots(a: Values, b: Values, sums: ndarray, bounds: ndarray, first: int, last: int) -> None: ...
def products(rows: Rows, count: int, vector: Values, sums: ndarray, bounds: ndarray, first: int, last: int) -> None: ...
def add_curvature(
    target: Values, vector: Values, precisions: ndarray, bounds: ndarray, first: int, last: int
) -> None: ...
def add_prior(
    gradient: Values, theta: Values, precisions: ndarray, sums: ndarray, bounds: ndarray, first: int, last: int
) -> None: ...
def linearised(
    theta: Values,
    gradient: Values,
    precisions: ndarray,
    others: Rows,
    out: Values,
    sums: ndarray,
    bounds: ndarray,
    first: int,
    last: int,
) -> None: ...
def put_pair(
    steps: Rows,
    changes: Rows,
    count: int,
    slot: int,
    before: Values,
    after: Values,
    gradient: Values,
    new_gradient: Values,
    sums: ndarray,
    bounds: ndarray,
    first: int,
    last: int,
) -> None: ...
def reduced(
    changes: Rows,
    shares: ndarray,
    gradient: Values,
    scale: Values | None,
    newest: int,
    out: Values,
    sums: ndarray | None,
    bounds: ndarray,
    first: int,
    last: int,
) -> None: ...
def finished(
    steps: Rows,
    weights: ndarray,
    length: float,
    target: Values,
    gradient: Values,
    sums: ndarray,
    bounds: ndarray,
    first: int,
    last: int,
) -> None: ...
