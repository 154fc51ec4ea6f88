from numpy import ndarray

from ..system.team import Team

class Operation: ...

stepped: Operation
copied: Operation
multiplied: Operation
dots: Operation
products: Operation
add_prior: Operation
add_sparse_prior: Operation
beyond: Operation
linearised: Operation
put_pair: Operation
reduced: Operation
finished: Operation

class Values:
    def __init__(self, array: ndarray, size: int, written: bool = False) -> None: ...

def go(
    team: Team,
    bounds: ndarray,
    runs: ndarray,
    operation: Operation,
    sums: ndarray,
    a: Values | None = None,
    b: Values | None = None,
    c: Values | None = None,
    d: Values | None = None,
    e: Values | None = None,
    rows: list[Values] | None = None,
    number: int = -1,
    factor: float = 0.0,
    factors: ndarray | None = None,
) -> None: ...
