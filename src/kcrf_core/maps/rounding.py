"""Effects of rounding in double precision on an evaluation of P, so that what is proven stays true.

Let scores be F + dF where F = Phi W exactly, errors m, and the gradient of the loss g + dg where g = Phi^T m. The loss
is convex in the scores, so Lemma 9 becomes

    min P >= P - <m, dF> - (sigma^2 / 2) (|gradient| + |dg|)^2

A map says how large dF and dg can be. That of pivots adds what its triangle L is off by: L L^T = K_BB + E changes
|W|^2 by alpha^T E alpha, the gradient by L^-1 E alpha / sigma^2, and squared lengths of gradients by the factor
1 / (1 - |E| |L^-1|^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

# A sum of n rounded products is off by up to n units in the last place, and practically never by more than a few times
# their root (Higham and Mary 2019).
ROOTS = 8
UNIT = float(np.finfo(np.float64).eps) / 2


def summation_error(terms: int) -> float:
    """Bound the error of a sum of so many products, as a part of the sum of their sizes."""
    return ROOTS * sqrt(max(terms, 1)) * UNIT


@dataclass(frozen=True)
class Extent:
    """Largest length and width of rows of a map."""

    largest: float  # length of a row; of pivots its square, k(x, x)
    widest: int = 0  # values of a row
    value_error: float = 0.0  # of kernel values in double precision, as a part of the largest
    outside: bool = False  # whether a map that stands for the whole space leaves some of it out

    def joined(self, other: Extent) -> Extent:
        """Return the extent of the rows of both."""
        return Extent(
            max(self.largest, other.largest),
            max(self.widest, other.widest),
            max(self.value_error, other.value_error),
            self.outside or other.outside,
        )


@dataclass(frozen=True)
class Rounding:
    """Bounds on what rounding may change, of one map at some weights."""

    loss: float = 0.0  # <m, dF>
    gradient: float = 0.0  # the gradient of the loss, in length
    prior: float = 0.0  # |W|^2
    prior_gradient: float = 0.0  # W, in length, where it stands in the gradient as W / sigma^2
    factor: float = 0.0  # |gradient|^2, as a part
    outside: float = 0.0  # |gradient|^2 outside the span of a map that stands for the whole space
