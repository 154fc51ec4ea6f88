"""Kernels that are functions of the inner product of two rows, or of their distance.

    linear    <x, x'>
    poly      scale (gamma <x, x'> + coef0)^degree
    rbf       exp(-gamma |x - x'|^2)

<x, x'> counts equal categorical values and adds the inner products of real columns and of attributes. Scales that no
configuration sets are taken from the training inputs (Remark 7), so that sigma2 is the prior variance of a score:

    poly      gamma = 1 / mean |x|^2, values divided by their mean diagonal
    rbf       gamma = 1 / median of |x - x'|^2 over pairs of a sample
    linear    never rescaled: sigma2 is that of weights in the units of the columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from .._lazy import deferred
from ..errors import NumericError
from ..system import DeclaredSetting, Number, Whole
from .kernel import Fitting, Kernel, KernelConfig, PreparedKernel, fitted, setting

if TYPE_CHECKING:
    from .inputs import Inputs

np = deferred("numpy")

# Rows that are enough to tell a scale by.
MEDIAN_SAMPLE = 1000

LARGEST_SETTING = 1e100  # products with the squares of what columns hold stay finite

GAMMA = DeclaredSetting(
    Number(0, LARGEST_SETTING, above=True, automatic=True),
    help="Scale of poly, rbf and image. Default: auto, 1/mean |x|^2 for poly, else 1/median |x-x'|^2.",
)


class InnerProductKernel(Kernel):
    """A kernel that is a function of inner products and norms. It defines `apply` and `diagonal`."""

    # Whether it is a function of distances, which are differences of large numbers where columns are far from zero:
    # real columns are taken from the middle of the pivots then, and double precision where there are attributes, which
    # cannot be moved.
    of_distances: ClassVar[bool] = False

    def seen_by(self, inputs: Inputs) -> Inputs:
        """The rows that inner products are taken of."""
        return inputs

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        """Turn inner products [n, M] into kernel values, in place; the norms, [n] and [M], are squared."""
        raise NotImplementedError

    def prepared(self, pivots: Inputs, dtype: np.dtype) -> PreparedKernel:
        from .gram_blocks import PreparedPivots

        return PreparedPivots(pivots, self, dtype)


@dataclass(frozen=True)
class LinearKernel(InnerProductKernel):
    type: ClassVar[str] = "linear"
    explicit: ClassVar[bool] = True

    @property
    def linear(self) -> bool:
        return True

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        """Inner products are kernel values already."""

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()


@dataclass(frozen=True)
class PolynomialKernel(InnerProductKernel):
    degree: int = setting(Whole(1, 10), 2, "Degree of poly. Default: 2.", "D")
    gamma: float = setting(GAMMA)
    coef0: float = setting(Number(0, LARGEST_SETTING), 1.0, "Constant of poly. Default: 1.", "C")
    scale: float = fitted(Number(0))

    type: ClassVar[str] = "poly"
    title: ClassVar[str] = "polynomial"
    explicit: ClassVar[bool] = True

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        gamma = config.gamma
        if gamma is None:
            mean = float(inputs.squared_norms().mean())
            gamma = 1.0 / mean if mean > 0 else 1.0
        kernel = cls(config.degree, gamma, config.coef0, 1.0)
        return replace(kernel, scale=1.0 / mean_diagonal(kernel, inputs))

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        from . import _kernels

        # The scale goes inside the power: by itself it may be too small for single precision.
        root = self.scale ** (1 / self.degree)
        _kernels.polynomial(block, root * self.gamma, root * self.coef0, self.degree)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.scale * (self.gamma * inputs.squared_norms() + self.coef0) ** self.degree


@dataclass(frozen=True)
class RBFKernel(InnerProductKernel):
    gamma: float = setting(GAMMA)

    type: ClassVar[str] = "rbf"
    normalised: ClassVar[bool] = True
    of_distances: ClassVar[bool] = True

    @classmethod
    def fit(cls, config: KernelConfig, inputs: Inputs, fitting: Fitting) -> Kernel:
        return cls(config.gamma if config.gamma is not None else 1.0 / median_distance(inputs, fitting.seed))

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        # -gamma (|x|^2 + |x'|^2 - 2 <x, x'>); rounding must not make a squared distance negative.
        block *= 2 * self.gamma
        block -= (self.gamma * row_norms).astype(block.dtype)[:, None]
        block -= (self.gamma * pivot_norms).astype(block.dtype)
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.ones(len(inputs))


def mean_diagonal(kernel: Kernel, inputs: Inputs) -> float:
    """The mean of k(x, x), which must be a number that values can be divided by."""
    with np.errstate(over="ignore"):
        mean = float(kernel.diagonal(inputs).mean())
    if not np.isfinite(mean) or mean <= 0:
        name = kernel.title or kernel.type
        raise NumericError(f"the {name} kernel has a mean diagonal of {mean:g}: scale the columns, or set gamma")
    return mean


def sample_rows(inputs: Inputs, seed: int) -> Inputs:
    """Some of the rows, enough to tell a scale by."""
    if len(inputs) <= MEDIAN_SAMPLE:
        return inputs
    rng = np.random.default_rng(seed)
    return inputs.take(np.sort(rng.choice(np.arange(len(inputs)), MEDIAN_SAMPLE, replace=False)))


def median_distance(inputs: Inputs, seed: int) -> float:
    """The median of |x - x'|^2 over pairs of a sample, equal rows left out."""
    from .gram_blocks import gram

    sample = sample_rows(inputs, seed)
    sample = replace(sample, real=sample.real - sample.real.mean(axis=0))  # distances do not change, rounding does
    norms = sample.squared_norms()
    distances = norms[:, None] + norms[None] - 2 * gram(LinearKernel(), sample, sample)
    above = distances[np.triu_indices(len(sample), 1)]
    above = above[above > 1e-12 * above.max(initial=0.0)]  # equal rows say nothing about a scale
    return float(np.median(above)) if len(above) else 1.0
