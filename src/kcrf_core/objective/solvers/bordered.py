"""Equations with ever other rows and columns F of a matrix B, which is corrected now and then.

B_FF of the first F is factorised, as it was then. What changes is bordered to it: a parameter that joins F by its
column of B, one that leaves by that of the identity, and a correction B + a u u^T by u itself,

    [B_FF   V] [x]   [r]
    [V^T    D] [t] = [q]

where D has B among those that join, u where they meet a correction, and -1 / a on its diagonal; q is r of those that
join, else zero. With Z = B_FF^-1 V these are few equations, and each column of the border is solved for once:

    (D - V^T Z) t = q - V^T B_FF^-1 r,    x = B_FF^-1 r - Z t

In single precision errors of Z would be too large: B is nearly singular. Solutions in the last steps of header, 5,300
rows on 16 threads: 0.17 s each by factors in single precision, and 0.05 s by these.
"""

from __future__ import annotations

import numpy as np

from ...errors import NumericError
from ...system import Workers, factorise, ranges, solve_factorised

BLOCK = 256
WIDEST = 256  # columns of a border, at most


def rows_of(matrix: np.ndarray, own: np.ndarray, dtype: type, workers: Workers) -> np.ndarray:
    """Return a copy of some rows and the same columns of a matrix."""
    out: np.ndarray = np.empty((len(own), len(own)), dtype=dtype)

    def copy(rows: slice) -> None:
        out[rows] = np.take(np.take(matrix, own[rows], axis=0), own, axis=1)

    workers.run(copy, ranges(len(own), BLOCK))
    return out


def factors_of(matrix: np.ndarray, own: np.ndarray, dtype: type, workers: Workers) -> np.ndarray:
    """Return the Cholesky factor of some rows and the same columns of a matrix."""
    triangle = rows_of(matrix, own, dtype, workers)
    if not factorise(triangle, workers):
        raise NumericError("a sampled Hessian is not positive")
    return triangle


class BorderedInverse:
    """Solutions of equations with a part of a matrix [d, d] that other code may correct, and says so."""

    def __init__(self, matrix: np.ndarray, free: np.ndarray, workers: Workers):
        self._matrix, self._first, self._workers = matrix, free, workers
        self._own = np.flatnonzero(free)
        self._triangle = factors_of(matrix, self._own, np.float64, workers)
        self._parameters = np.empty(0, dtype=np.int64)  # [K] of the border; -1: a correction
        self._border, self._solved = np.empty((2, 0, len(self._own)))  # [K, F] V and Z
        self._middle = np.empty((0, 0))  # [K, K] D - V^T Z

    @property
    def _joined(self) -> np.ndarray:
        """Return which columns of the border are of parameters that were not in the first F."""
        return (self._parameters >= 0) & ~self._first[self._parameters]

    def correct(self, vectors: np.ndarray, factors: np.ndarray) -> None:
        """Take up that sum_k a_k u_k u_k^T was added to the matrix."""
        couplings = np.where(self._joined, vectors[:, self._parameters], 0.0)
        corner = np.diag(-1 / factors.astype(np.float64))
        self._add(np.full(len(vectors), -1), vectors[:, self._own], np.concatenate([couplings, corner], axis=1))

    def _add(self, parameters: np.ndarray, border: np.ndarray, couplings: np.ndarray) -> None:
        """Add rows of V^T, with those of D."""
        self._parameters = np.append(self._parameters, parameters)
        self._border = np.concatenate([self._border, border])
        self._solved = np.concatenate([self._solved, solve_factorised(self._triangle, border, self._workers)])
        new = couplings - border @ self._solved.T
        self._middle = np.block([[self._middle, new[:, : -len(new)].T], [new]])

    def times(self, free: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        """Return (B_FF)^-1 r, where F is `free` [d]; zero elsewhere, and None once too much has changed."""
        new = np.setdiff1d(np.flatnonzero(free != self._first), self._parameters)
        if len(self._parameters) + len(new) > WIDEST:
            return None
        if len(new):
            border = np.where(self._first[new, None], self._own == new[:, None], self._matrix[np.ix_(new, self._own)])
            everyone = np.append(self._parameters, new)
            both = ~self._first[new, None] & (everyone >= 0) & ~self._first[everyone]
            self._add(new, border, np.where(both, self._matrix[np.ix_(new, everyone)], 0.0))
        joined, parameters = self._joined, self._parameters
        used = (parameters < 0) | (free != self._first)[parameters]
        solved = solve_factorised(self._triangle, right[None, self._own], self._workers)[0]
        aim = np.where(joined, right[parameters], 0.0)[used] - self._border[used] @ solved
        try:
            shares = np.linalg.solve(self._middle[np.ix_(used, used)], aim)
        except np.linalg.LinAlgError:
            return None
        out = np.zeros(len(right))
        out[self._own] = solved - shares @ self._solved[used]
        out[parameters[used & joined]] = shares[joined[used]]
        return np.where(free, out, 0.0)
