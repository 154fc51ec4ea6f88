"""Powers of positive matrices between -1 and 0, by inverses that threads can share.

    A^-p = sin(pi p) / pi  integral over u of  e^((1-p) u) (A + e^u)^-1 du,    0 < p < 1

and the trapezoidal rule with steps of h is off by the order of e^(-2 pi^2 / h). Beyond the eigenvalues of A what is
left are geometric series. So half a dozen inverses bring every eigenvalue within 4 %, enough for an initial matrix.
"""

from __future__ import annotations

import numpy as np

from ..errors import NumericError
from ..system import Workers, in_place

STEP = 4.2
MARGIN = 1.5  # in u, beyond the eigenvalues on both sides
OPERATIONS_PER_CUBE = 7


def inverse_power(matrix: np.ndarray, shift: float, power: float, workers: Workers) -> np.ndarray:
    """Return (matrix + shift I)^-power of a positive semidefinite matrix [m, m], to 4 %."""
    m = len(matrix)
    if m == 0:
        return np.zeros((0, 0))
    parts, above, scale = inverse_power_parts(float(np.abs(matrix).sum(axis=1).max()), shift, power)
    total = np.zeros((m, m))  # its lower triangle
    workers.fold(lambda term: _scaled_inverse(matrix, *term), parts, total.__iadd__)
    total[np.diag_indices(m)] += above
    total *= scale
    return np.tril(total) + np.tril(total, -1).T


def inverse_power_parts(norm: float, shift: float, power: float) -> tuple[list[tuple[float, float]], float, float]:
    """Write (A + shift I)^-power, for A of at most this norm, as a sum of inverses of A + s I times factors.

    Return pairs of s and its factor, the summand of the diagonal, and the factor of the sum.
    """
    largest = norm + shift  # no eigenvalue is larger
    first = int(np.floor((np.log(shift) - MARGIN) / STEP))
    last = int(np.ceil((np.log(largest) + MARGIN) / STEP))
    nodes = STEP * np.arange(first, last + 1)
    weights = np.exp((1 - power) * nodes)
    below = np.exp((1 - power) * (nodes[0] - STEP)) / -np.expm1(-(1 - power) * STEP)
    above = np.exp(-power * (nodes[-1] + STEP)) / -np.expm1(-power * STEP)
    terms = [(shift, below), *((shift + np.exp(node), weight) for node, weight in zip(nodes, weights, strict=True))]
    return terms, above, STEP * np.sin(np.pi * power) / np.pi


def _scaled_inverse(matrix: np.ndarray, shift: float, factor: float) -> np.ndarray:
    """Return the lower triangle of factor (matrix + shift I)^-1; values above it have no meaning."""
    shifted = matrix.astype(np.float64, order="C")
    shifted[np.diag_indices(len(matrix))] += shift
    status = in_place.factorise(shifted) or in_place.invert_factorised(shifted)
    if status:
        raise NumericError("a Gram matrix is not positive: scale the columns, or choose a smaller sigma2")
    shifted *= factor
    return shifted
