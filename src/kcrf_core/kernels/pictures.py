"""Pictures as inputs: what makes neighbouring pixels neighbours.

A picture x of H rows and W columns is seen through products of a pixel with itself alone and with each pixel s
within reach, pooled by a Gaussian around the points c of a coarser grid:

    psi_{s,c}(x) = root( sum_q g(q - c) x_q x_{q+s} ),   s = 0: x_q alone

Products say which strokes there are (two pixels along a line are both set), pooling that it does not matter exactly
where; the root keeps long strokes from drowning short ones. Beyond the edges there is nothing, that is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..config import LARGEST_BLUR, LARGEST_REACH
from . import _pictures
from .inputs import Inputs

# Grid points stand this many blurs apart, and no closer than pixels: nearer ones would say the same again.
SPACING = 1.5
# A Gaussian ends at this many blurs.
SUPPORT = 4.0


@dataclass(frozen=True)
class Neighbourhoods:
    shape: tuple[int, int]  # rows and columns of a picture
    reach: int  # pixels down and to the sides
    blur: float  # standard deviation of the pools, in pixels

    def why_not(self, inputs: Inputs) -> str | None:
        """What keeps these inputs from being pictures, or these values from being neighbourhoods; None if nothing."""
        whole = [*self.shape, self.reach]
        if any(isinstance(value, bool) or not isinstance(value, int) for value in whole) or len(self.shape) != 2:
            return "'shape' and 'reach' are whole numbers"
        if min(self.shape) < 1 or not 0 <= self.reach <= LARGEST_REACH:
            return f"'reach' must be from 0 to {LARGEST_REACH}"
        number = isinstance(self.blur, int | float) and not isinstance(self.blur, bool)
        if not number or not 0 < self.blur <= LARGEST_BLUR:
            return f"'blur' must be greater than 0 and at most {LARGEST_BLUR:g}"
        H, W = self.shape
        if inputs.codes.shape[1] or inputs.bag is not None:
            return "a picture is made of real columns alone"
        if inputs.real.shape[1] != H * W:
            return f"a picture of {H}x{W} pixels has {H * W} real columns, not {inputs.real.shape[1]}"
        return None

    @cached_property
    def _offsets(self) -> np.ndarray:
        """[K, 2] (down, right): itself, and one of each two opposite neighbours."""
        reach = range(-self.reach, self.reach + 1)
        pairs = [(dy, dx) for dy in range(self.reach + 1) for dx in reach if dy > 0 or dx >= 0]
        return np.array(pairs, dtype=np.int32)

    def _weights(self, length: int) -> np.ndarray:
        """Of each row or column in the pools along one side, [length, pools]."""
        spacing = max(1.0, round(SPACING * self.blur))
        count = int(np.ceil((length - 1) / spacing)) + 1
        centres = (length - 1) / 2 + spacing * (np.arange(count) - (count - 1) / 2)
        distance = (np.arange(length)[:, None] - centres) / self.blur
        return np.where(np.abs(distance) <= SUPPORT, np.exp(-(distance**2) / 2), 0.0)

    @cached_property
    def _pools(self) -> tuple[np.ndarray, np.ndarray]:
        return self._weights(self.shape[0]), self._weights(self.shape[1])

    def of(self, pictures: np.ndarray) -> np.ndarray:
        """psi of each row of pixels [n, H * W]: [n, D] float64."""
        down, across = self._pools
        D = len(self._offsets) * down.shape[1] * across.shape[1]
        out = np.empty((len(pictures), D))
        line = np.empty(across.shape[1])
        pictures = np.ascontiguousarray(pictures, dtype=np.float64)
        _pictures.neighbourhoods(pictures, self._offsets, down, across, line, out)
        return out
