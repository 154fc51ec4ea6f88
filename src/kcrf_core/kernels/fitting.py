"""Kernels of a configuration with their scales fixed from training inputs (Remark 7).

    poly       gamma = 1 / mean |x|^2, values divided by their mean diagonal
    rbf        gamma = 1 / median of |x - x'|^2 over pairs of a sample
    image      the same of |psi(x) - psi(x')|^2
    sum        divided by its mean diagonal, unless all parts are linear
    product    divided by its mean diagonal
    linear     never rescaled

so that sigma2 is the prior variance of a score, except where it is that of weights in the units of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..config import KernelConfig, matching_features
from ..errors import ConfigError, NumericError
from .gram_blocks import gram
from .inputs import Group, Inputs
from .pictures import Neighbourhoods
from .values import (
    CosineKernel,
    ImageKernel,
    Kernel,
    LinearKernel,
    Part,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    SumKernel,
)

MEDIAN_SAMPLE = 1000


def fit_kernel(
    config: KernelConfig, inputs: Inputs, seed: int, groups: Mapping[str, Group] | None = None, term: str = ""
) -> Kernel:
    """The kernel of a term; `groups` says where its features stand, which parts are named by."""
    return _Fitter(seed, term).kernel(config, inputs, groups or {})


class _Fitter:
    def __init__(self, seed: int, term: str):
        self.seed, self.term = seed, term

    def kernel(self, config: KernelConfig, inputs: Inputs, groups: Mapping[str, Group]) -> Kernel:
        fit = {
            "linear": lambda: LinearKernel(),
            "poly": lambda: _polynomial(config, inputs),
            "rbf": lambda: RBFKernel(self._gamma(config, inputs)),
            "image": lambda: self._image(config, inputs),
            "sum": lambda: self._sum(config, inputs, groups),
            "product": lambda: self._product(config, inputs, groups),
        }
        if config.type not in fit:
            raise ConfigError(f"unknown kernel '{config.type}'")
        kernel = fit[config.type]()
        # What is 1 on its diagonal is its own cosine.
        return CosineKernel(kernel) if config.cosine and not isinstance(kernel, RBFKernel) else kernel

    def _gamma(self, config: KernelConfig, inputs: Inputs) -> float:
        return config.gamma if config.gamma is not None else 1.0 / _median_distance(inputs, self.seed)

    def _image(self, config: KernelConfig, inputs: Inputs) -> Kernel:
        picture = Neighbourhoods(config.shape, config.reach, config.blur)
        reason = picture.why_not(inputs)
        if reason is not None:
            raise ConfigError(f"term '{self.term}': kernel 'image': {reason}")
        sample = _sample(inputs, self.seed)
        return ImageKernel(self._gamma(config, replace(sample, real=picture.of(sample.real))), picture)

    def _parts(self, config: KernelConfig, inputs: Inputs, groups: Mapping[str, Group]) -> tuple[Part, ...]:
        return tuple(self._part(part, inputs, groups) for part in config.parts)

    def _part(self, config: KernelConfig, inputs: Inputs, groups: Mapping[str, Group]) -> Part:
        names = matching_features(config.features, list(groups), f"{self.term}', kernel '{config.type}")
        group = Group()
        within: dict[str, Group] = {}
        for name in names:
            at = groups[name]
            codes, real = len(group.codes), len(group.real)
            within[name] = Group(
                tuple(range(codes, codes + len(at.codes))), tuple(range(real, real + len(at.real))), at.bag
            )
            group |= at
        return Part(group, self.kernel(config, inputs.columns(group), within))

    def _sum(self, config: KernelConfig, inputs: Inputs, groups: Mapping[str, Group]) -> SumKernel:
        weights = tuple(part.weight for part in config.parts)
        kernel = SumKernel(self._parts(config, inputs, groups), weights)
        if _is_linear(kernel):
            return kernel
        mean = _mean_diagonal(kernel, inputs)
        return replace(kernel, weights=tuple(weight / mean for weight in weights))

    def _product(self, config: KernelConfig, inputs: Inputs, groups: Mapping[str, Group]) -> ProductKernel:
        kernel = ProductKernel(self._parts(config, inputs, groups), 1.0)
        return replace(kernel, scale=1.0 / _mean_diagonal(kernel, inputs))


def _is_linear(kernel: Kernel) -> bool:
    if isinstance(kernel, SumKernel):
        return all(_is_linear(part.kernel) for part in kernel.parts)
    return isinstance(kernel, LinearKernel)


def _mean_diagonal(kernel: Kernel, inputs: Inputs) -> float:
    with np.errstate(over="ignore"):
        mean = float(kernel.diagonal(inputs).mean())
    if not np.isfinite(mean) or mean <= 0:
        name = {"poly": "polynomial"}.get(kernel.type, kernel.type)
        raise NumericError(f"the {name} kernel has a mean diagonal of {mean:g}: scale the columns, or set gamma")
    return mean


def _polynomial(config: KernelConfig, inputs: Inputs) -> PolynomialKernel:
    gamma = config.gamma
    if gamma is None:
        mean = float(inputs.squared_norms().mean())
        gamma = 1.0 / mean if mean > 0 else 1.0
    kernel = PolynomialKernel(config.degree, gamma, config.coef0, 1.0)
    return replace(kernel, scale=1.0 / _mean_diagonal(kernel, inputs))


def _sample(inputs: Inputs, seed: int) -> Inputs:
    """Some of the rows, enough to tell a scale by."""
    if len(inputs) <= MEDIAN_SAMPLE:
        return inputs
    rng = np.random.default_rng(seed)
    return inputs.take(np.sort(rng.choice(np.arange(len(inputs)), MEDIAN_SAMPLE, replace=False)))


def _median_distance(inputs: Inputs, seed: int) -> float:
    sample = _sample(inputs, seed)
    sample = replace(sample, real=sample.real - sample.real.mean(axis=0))  # distances do not change, rounding does
    norms = sample.squared_norms()
    distances = norms[:, None] + norms[None] - 2 * gram(LinearKernel(), sample, sample)
    above = distances[np.triu_indices(len(sample), 1)]
    above = above[above > 1e-12 * above.max(initial=0.0)]  # equal rows say nothing about a scale
    return float(np.median(above)) if len(above) else 1.0
