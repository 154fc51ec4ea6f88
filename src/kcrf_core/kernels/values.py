"""Kernels on inputs, as small frozen values.

    linear    <x, x'>
    poly      scale (gamma <x, x'> + coef0)^degree
    rbf       exp(-gamma |x - x'|^2)
    image     exp(-gamma |psi(x) - psi(x')|^2), psi the neighbourhoods of a picture (see `pictures`)
    sum       sum_i weight_i k_i(x_i, x'_i), x_i some of the columns of x
    product   scale prod_i k_i(x_i, x'_i)
    cosine    k(x, x') / sqrt(k(x, x) k(x', x')), zero where either is zero

<x, x'> counts equal categorical values and adds the inner products of real columns and of attributes. The first four
are functions of inner products and norms, which `apply` computes of a whole block; the others are made of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from . import _kernels
from .inputs import Group, Inputs
from .pictures import Neighbourhoods


@dataclass(frozen=True)
class LinearKernel:
    type: ClassVar[str] = "linear"

    def seen_by(self, inputs: Inputs) -> Inputs:
        """What inner products are taken of."""
        return inputs

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        """Turn inner products into kernel values, in place."""

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return inputs.squared_norms()


@dataclass(frozen=True)
class PolynomialKernel:
    degree: int
    gamma: float
    coef0: float
    scale: float

    type: ClassVar[str] = "poly"

    def seen_by(self, inputs: Inputs) -> Inputs:
        return inputs

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        # The scale goes inside the power: by itself it may be too small for single precision.
        root = self.scale ** (1 / self.degree)
        _kernels.polynomial(block, root * self.gamma, root * self.coef0, self.degree)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.scale * (self.gamma * inputs.squared_norms() + self.coef0) ** self.degree


@dataclass(frozen=True)
class RBFKernel:
    gamma: float

    type: ClassVar[str] = "rbf"

    def seen_by(self, inputs: Inputs) -> Inputs:
        return inputs

    def apply(self, block: np.ndarray, row_norms: np.ndarray, pivot_norms: np.ndarray) -> None:
        # -gamma (|x|^2 + |x'|^2 - 2 <x, x'>); rounding must not make a squared distance negative.
        block *= 2 * self.gamma
        block -= (self.gamma * row_norms).astype(block.dtype)[:, None]
        block -= (self.gamma * pivot_norms).astype(block.dtype)
        np.minimum(block, 0, out=block)
        np.exp(block, out=block)

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.ones(len(inputs))


@dataclass(frozen=True)
class ImageKernel(RBFKernel):
    """rbf on the neighbourhoods of a picture instead of its pixels."""

    picture: Neighbourhoods

    type: ClassVar[str] = "image"

    def seen_by(self, inputs: Inputs) -> Inputs:
        return replace(inputs, real=self.picture.of(inputs.real))


@dataclass(frozen=True)
class Part:
    """A kernel on some of the columns."""

    group: Group
    kernel: Kernel

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.kernel.diagonal(inputs.columns(self.group))


@dataclass(frozen=True)
class SumKernel:
    parts: tuple[Part, ...]
    weights: tuple[float, ...]

    type: ClassVar[str] = "sum"

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return sum(weight * part.diagonal(inputs) for weight, part in zip(self.weights, self.parts, strict=True))


@dataclass(frozen=True)
class ProductKernel:
    parts: tuple[Part, ...]
    scale: float

    type: ClassVar[str] = "product"

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return self.scale * np.prod([part.diagonal(inputs) for part in self.parts], axis=0)


@dataclass(frozen=True)
class CosineKernel:
    kernel: Kernel

    type: ClassVar[str] = "cosine"

    def inverse_roots(self, inputs: Inputs) -> np.ndarray:
        """1 / sqrt(k(x, x)) of each row, zero where that is zero, [N]."""
        return inverse_roots(self.kernel.diagonal(inputs))

    def diagonal(self, inputs: Inputs) -> np.ndarray:
        return np.where(self.kernel.diagonal(inputs) > 0, 1.0, 0.0)


PlainKernel = LinearKernel | PolynomialKernel | RBFKernel | ImageKernel
Kernel = PlainKernel | SumKernel | ProductKernel | CosineKernel


def inverse_roots(diagonal: np.ndarray) -> np.ndarray:
    """1 / sqrt(d) of each, and zero for zero."""
    above = diagonal > 0
    return np.where(above, 1.0 / np.sqrt(np.where(above, diagonal, 1.0)), 0.0)
