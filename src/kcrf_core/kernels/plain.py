"""Kernels that are functions of the inner product of two rows, or of their distance.

    linear    <x, x'>
    poly      scale (gamma <x, x'> + coef0)^degree
    rbf       exp(-gamma |x - x'|^2)

<x, x'> counts equal categorical values and adds the inner products of real columns and of attributes. Scales that no
configuration sets are taken from the training inputs (Remark 7), so that sigma2 is the prior variance of a score:

    poly      gamma = 1 / mean |x|^2, values divided by their mean diagonal
    rbf       gamma = 1 / median of |x - x'|^2 over pairs of different rows of a sample
    linear    never rescaled: sigma2 is that of weights in the units of the columns
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from .._lazy import deferred
from ..errors import ConfigError, NumericError
from ..system import DeclaredSetting, Number, Whole
from .kernel import VALUE_ERROR, Fitting, Kernel, KernelConfig, fitted, setting

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from ..system import Array, Backend
    from .inputs import Inputs
    from .kernel import Prepared
else:
    np = deferred("numpy")

# Rows that are enough to tell a scale by.
MEDIAN_SAMPLE = 1000
# Rows that are gone through at a time.
ROWS_AT_ONCE = 4096

# Rows that are compared with all others where a sample of pairs says that a kernel tells nothing about them.
DOUBTED_ROWS, DOUBTED_AT_ONCE = 100, 10_000

# Kernel values e^-s are zero beyond the first s, in single precision; below the second they are one, even in double.
ZERO_BEYOND, ONE_BELOW = 87.0, 2.0**-53

LARGEST_SETTING = 1e100  # products with the squares of what columns hold stay finite

GAMMA = DeclaredSetting(
    Number(0, LARGEST_SETTING, above=True, automatic=True),
    help="Scale of poly, rbf and image. Default: auto, 1/mean |x|^2 for poly, else 1/median |x-x'|^2.",
)


class InnerProductKernel(Kernel):
    """A kernel that is a function of inner products and norms: of v = a <x, x'> + b (|x|^2 + |x'|^2) + c.

    It defines `diagonal`, `coefficients` and `function`, and devices compute its values, too; or `apply` instead of the
    last two, for the CPU alone.
    """

    # True for a function of distances, which are differences of large numbers where columns are far from zero:
    # real columns are taken from the middle of the pivots then, and double precision where there are attributes, which
    # cannot be moved.
    of_distances: ClassVar[bool] = False

    def seen_by(self, inputs: Inputs) -> Inputs:
        """Return the rows that inner products are taken of."""
        return inputs

    def seen_on(self, inputs: Inputs, backend: Backend) -> Inputs:
        """Return the rows of `seen_by`, computed with a backend."""
        return self.seen_by(inputs)

    def coefficients(self) -> tuple[float, float, float]:
        """Return a, b and c of v."""
        return 1.0, 0.0, 0.0

    def function(self, block: Array, xp: ModuleType) -> None:
        """Turn v [n, M] into kernel values, in place, by operators and by functions that numpy and torch share."""
        raise NotImplementedError(f"{type(self).__name__} has `apply` alone, for threads: see has_array_form")

    @classmethod
    def has_array_form(cls) -> bool:
        return cls.function is not InnerProductKernel.function

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        """Turn inner products [n, M] into kernel values, in place; the norms, [n] and [M], are squared."""
        a, b, c = self.coefficients()
        if a != 1:
            block *= a
        if b:
            block += (b * row_norms).astype(block.dtype)[:, None]
            block += (b * pivot_norms).astype(block.dtype)
        if c:
            block += c
        self.function(block, np)

    def prepared(self, pivots: Inputs, dtype: np.dtype) -> Prepared:
        from .gram_blocks import PreparedPivots

        return PreparedPivots(pivots, self, dtype).against


@dataclass(frozen=True)
class LinearKernel(InnerProductKernel):
    type: ClassVar[str] = "linear"
    explicit: ClassVar[bool] = True

    @property
    def linear(self) -> bool:
        return True

    def function(self, block: Array, xp: ModuleType) -> None:
        """Leave inner products, which are kernel values already."""

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()

    def relative_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        # Errors of an inner product are a part of sum_i |x_i x'_i|, which is no more than |x| |x'|.
        return np.full(len(inputs), VALUE_ERROR)


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
        kernel = replace(kernel, scale=1.0 / mean_diagonal(kernel, inputs))
        largest = gamma * float(inputs.squared_norms().max(initial=0.0))
        if largest < ONE_BELOW * config.coef0 and len(pair_distances(inputs, fitting.seed)):
            raise ConfigError(
                f"term '{fitting.term}': kernel '{cls.type}': with a 'gamma' of {gamma:g} and a 'coef0' of "
                f"{config.coef0:g} every k(x, x') is one; a 'gamma' of auto and a 'coef0' of 1 suit most data"
            )
        return kernel

    def coefficients(self) -> tuple[float, float, float]:
        # The scale goes inside the power: by itself it may be too small for single precision.
        root = self.scale ** (1 / self.degree)
        return root * self.gamma, 0.0, root * self.coef0

    def function(self, block: Array, xp: ModuleType) -> None:
        base = block * 1
        for _ in range(self.degree - 1):
            block *= base

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        from . import _kernels

        # The same bits in one loop: 0.4 ns a value and not 1.2, where all of a block of 30 codes takes 4.4.
        a, _, c = self.coefficients()
        _kernels.polynomial(block, a, c, self.degree)

    def relative_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        # gamma |x| |x'| + c is at most the root of (gamma |x|^2 + c) (gamma |x'|^2 + c).
        return np.full(len(inputs), self.degree * VALUE_ERROR)

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
        if config.gamma is None:
            return cls(suitable_gamma(inputs, fitting))
        kernel = cls(config.gamma)
        check_width(kernel, inputs, fitting)
        return kernel

    def coefficients(self) -> tuple[float, float, float]:
        return 2 * self.gamma, -self.gamma, 0.0  # v = -gamma |x - x'|^2

    def function(self, block: Array, xp: ModuleType) -> None:
        xp.clip(block, None, 0, out=block)  # rounding must not make a squared distance negative
        xp.exp(block, out=block)

    def value_errors(self, inputs: Inputs, pivots: Inputs) -> np.ndarray:
        # A distance is a difference of squared lengths, taken from the middle of the pivots, and comes rounded.
        middle, lengths = pivots.real.mean(axis=0) if len(pivots) else 0.0, np.empty(len(inputs))
        for first in range(0, len(inputs), ROWS_AT_ONCE):
            rows = inputs.take(slice(first, first + ROWS_AT_ONCE))
            rows = self.seen_by(replace(rows, real=rows.real - middle))
            lengths[first : first + ROWS_AT_ONCE] = rows.squared_norms()
        return VALUE_ERROR * (1 + self.gamma * lengths)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.ones(len(inputs))


def mean_diagonal(kernel: Kernel, inputs: Inputs) -> float:
    """Return the mean of k(x, x), which must be a number that values can be divided by."""
    with np.errstate(over="ignore"):
        mean = float(kernel.diagonal(inputs).mean())
    if not np.isfinite(mean) or mean <= np.finfo(float).tiny:  # nor must its inverse be infinite
        name = kernel.title or kernel.type
        raise NumericError(
            f"the {name} kernel has a mean diagonal of {mean:g}: scale the columns, or set another gamma (auto suits "
            "most data)"
        )
    return mean


def sample_rows(inputs: Inputs, seed: int) -> Inputs:
    """Return a sample of the rows that is large enough to estimate a scale."""
    if len(inputs) <= MEDIAN_SAMPLE:
        return inputs
    rng = np.random.default_rng(seed)
    return inputs.take(np.sort(rng.choice(np.arange(len(inputs)), MEDIAN_SAMPLE, replace=False)))


def median_distance(inputs: Inputs, seed: int) -> float:
    """Return the median of |x - x'|^2 over pairs of a sample, equal rows left out."""
    distances = pair_distances(inputs, seed)
    return float(np.median(distances)) if len(distances) else 1.0


def pair_distances(inputs: Inputs, seed: int) -> np.ndarray:
    """Return |x - x'|^2 over pairs of a sample, equal rows left out."""
    sample = sample_rows(inputs, seed)
    return _of_unequal(_distances(sample, sample)[np.triu_indices(len(sample), 1)])


def _of_unequal(distances: np.ndarray) -> np.ndarray:
    """Leave out distances of equal rows, which say nothing about a scale."""
    return distances[distances > 1e-12 * distances.max(initial=0.0)]


def _distances(rows: Inputs, others: Inputs) -> np.ndarray:
    """Return |x - x'|^2 of rows x and others x', [n, m]."""
    from .gram_blocks import gram

    middle = others.real.mean(axis=0)  # distances do not change, rounding does
    rows, others = (replace(each, real=each.real - middle) for each in (rows, others))
    return rows.squared_norms()[:, None] + others.squared_norms()[None] - 2 * gram(LinearKernel(), rows, others)


def suitable_gamma(inputs: Inputs, fitting: Fitting) -> float:
    """Return 1 / median |x - x'|^2, which must be a number that distances can be multiplied by."""
    gamma = 1.0 / median_distance(inputs, fitting.seed)
    if gamma > LARGEST_SETTING:
        raise NumericError(
            f"term '{fitting.term}': inputs are too similar to each other for any gamma: scale the columns"
        )
    return gamma


def check_width(kernel: RBFKernel, inputs: Inputs, fitting: Fitting) -> None:
    """Raise an error if all values of different inputs are zero, or all are one, in the kernel's precision.

    A sample of pairs is enough unless its values are all so: then some rows are compared with all others.
    """
    distances = pair_distances(kernel.seen_by(sample_rows(inputs, fitting.seed)), fitting.seed)
    if not len(distances):  # one input, again and again
        return
    gamma, suitable = kernel.gamma, 1.0 / float(np.median(distances))
    nearest, farthest = float(distances.min()), float(distances.max())
    if _tells(gamma, nearest, farthest):
        return
    if len(inputs) > MEDIAN_SAMPLE:
        few = kernel.seen_by(sample_rows(inputs, fitting.seed).take(slice(0, DOUBTED_ROWS)))
        for first in range(0, len(inputs), DOUBTED_AT_ONCE):
            rows = kernel.seen_by(inputs.take(slice(first, first + DOUBTED_AT_ONCE)))
            found = _of_unequal(_distances(rows, few))
            nearest, farthest = min(nearest, found.min(initial=nearest)), max(farthest, found.max(initial=farthest))
            if _tells(gamma, nearest, farthest):
                return
    value = "zero" if gamma * nearest > ZERO_BEYOND else "one"
    raise ConfigError(
        f"term '{fitting.term}': kernel '{kernel.type}': with a 'gamma' of {gamma:g} every k(x, x') of different "
        f"inputs is {value}; {suitable:.3g} suits this data (auto)"
    )


def _tells(gamma: float, nearest: float, farthest: float) -> bool:
    return gamma * nearest <= ZERO_BEYOND and gamma * farthest >= ONE_BELOW
