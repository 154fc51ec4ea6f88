"""The kernel of images, which compares neighbourhoods of pixels.

    image     exp(-gamma |psi(x) - psi(x')|^2), gamma by default 1 / median of |psi(x) - psi(x')|^2

An image x of H rows and W columns is described by products of a pixel with itself alone and with each pixel s
within reach, pooled by a Gaussian around the points c of a coarser grid:

    psi_{s,c}(x) = root( sum_q g(q - c) x_q x_{q+s} ),   s = 0: x_q alone

Products say which strokes there are (two pixels along a line are both set), pooling that it does not matter exactly
where; the root keeps long strokes from drowning short ones. Beyond the edges there is nothing, that is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from .._lazy import cached_property, deferred
from ..errors import ConfigError
from ..system import Number, Whole, described
from .kernel import Fitting, Kernel, KernelConfig, setting
from .plain import RBFKernel, check_width, sample_rows, suitable_gamma

if TYPE_CHECKING:
    import numpy as np

    from ..system import Backend
    from .inputs import Inputs
else:
    np = deferred("numpy")

LARGEST_SIDE = 10_000  # of an image, in pixels
LARGEST_REACH = 8  # of the pixels of a product
LARGEST_BLUR = 100  # in pixels

# Grid points stand this many blurs apart, and no closer than pixels: nearer ones would say the same again.
SPACING = 1.5
IMAGES_AT_ONCE = 4096  # on a device
# A Gaussian ends at this many blurs.
SUPPORT = 4.0


@dataclass(frozen=True)
class Shape:
    """Rows and columns of pixels, `[16, 8]` or `16x8`."""

    name: ClassVar[str] = "rxc"

    def __call__(self, value: Any) -> tuple[int, int]:
        sides = value.lower().split("x") if isinstance(value, str) else value
        if not isinstance(sides, (list, tuple)) or len(sides) != 2:
            raise ConfigError(f"must be rows and columns such as [16, 8] or 16x8, not {described(value)}")
        rows, columns = (Whole(1, LARGEST_SIDE)(side) for side in sides)
        return rows, columns


@dataclass(frozen=True)
class ImageKernel(RBFKernel):
    """The rbf kernel on the neighbourhoods of an image instead of its pixels."""

    shape: tuple[int, int] = setting(
        Shape(),
        None,
        "Rows and columns of the image whose pixels the real columns are, row by row, as 16x8 (image). Default: none.",
        needed="of the image, such as 16x8",
    )
    reach: int = setting(
        Whole(0, LARGEST_REACH),
        2,
        "Largest distance of the two pixels of a product, in pixels (image). Default: 2.",
        "P",
    )
    blur: float = setting(
        Number(0, LARGEST_BLUR, above=True),
        1.5,
        "Standard deviation, in pixels, of the pools that products are summed in (image). Default: 1.5.",
        "S",
    )

    type: ClassVar[str] = "image"

    @cached_property
    def offsets(self) -> np.ndarray:
        """Offsets [K, 2] (down, right) of pixels: none, and one of each two opposite neighbours."""
        reach = range(-self.reach, self.reach + 1)
        pairs = [(dy, dx) for dy in range(self.reach + 1) for dx in reach if dy > 0 or dx >= 0]
        return np.array(pairs, dtype=np.int32)

    @cached_property
    def pools(self) -> list[np.ndarray]:
        """Weights of each row, and of each column, in the pools along its side, [length, pools]."""
        spacing, found = max(1.0, round(SPACING * self.blur)), []
        for length in self.shape:
            count = int(np.ceil((length - 1) / spacing)) + 1
            centres = (length - 1) / 2 + spacing * (np.arange(count) - (count - 1) / 2)
            distance = (np.arange(length)[:, None] - centres) / self.blur
            found.append(np.where(np.abs(distance) <= SUPPORT, np.exp(-(distance**2) / 2), 0.0))
        return found

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        kernel = cls(**{**config.settings, "gamma": 1.0})
        reason = kernel.why_not(inputs)
        if reason is not None:
            raise ConfigError(f"term '{fitting.term}': kernel '{cls.type}': {reason}")
        if config.gamma is not None:
            kernel = replace(kernel, gamma=config.gamma)
            check_width(kernel, inputs, fitting)
            return kernel
        seen = kernel.seen_by(sample_rows(inputs, fitting.seed))
        return replace(kernel, gamma=suitable_gamma(seen, fitting))

    def why_not(self, inputs: Inputs) -> str | None:
        H, W = self.shape
        if inputs.codes.shape[1] or inputs.bag is not None:
            return "an image is made of real columns alone"
        if inputs.real.shape[1] != H * W:
            return f"an image of {H}x{W} pixels has {H * W} real columns, not {inputs.real.shape[1]}"
        return None

    def seen_by(self, inputs: Inputs) -> Inputs:
        from . import _kernels

        down, across = self.pools
        out = np.empty((len(inputs), len(self.offsets) * down.shape[1] * across.shape[1]))
        pixels = np.ascontiguousarray(inputs.real, dtype=np.float64)
        _kernels.neighbourhoods(pixels, self.offsets, down, across, np.empty(across.shape[1]), out)
        return replace(inputs, real=out)

    def seen_on(self, inputs: Inputs, backend: Backend) -> Inputs:
        # By products of matrices, as suits a device: a processor core takes 13 microseconds an image.
        from ..system import ranges  # which imports NumPy, and `--help` reads the settings of this file

        xp, (down, across), (H, W) = backend.xp, map(backend.array, self.pools), self.shape
        found = [np.zeros((0, len(self.offsets) * down.shape[1] * across.shape[1]))]
        for part in ranges(len(inputs), IMAGES_AT_ONCE):
            pixels = backend.array(inputs.real[part]).reshape(-1, H, W)
            pools = []
            for dy, dx in self.offsets.tolist():
                first, last = max(0, -dx), min(W, W - dx)
                values = pixels[:, : H - dy, first:last]
                if dy or dx:
                    values = values * pixels[:, dy:, first + dx : last + dx]
                pools.append((down[: H - dy].T @ (values @ across[first:last])).reshape(len(pixels), -1))
            sums = xp.concatenate(pools, 1)
            found.append(backend.numpy(xp.sign(sums) * xp.sqrt(abs(sums))))
        return replace(inputs, real=np.concatenate(found))
