"""Gram blocks against naive kernels, automatic scales, and the explicit map of the linear kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import oracle
from kcrf_core.kernels import KernelConfig, PolynomialKernel, fit_kernel, gram, kernel_from_dict
from kcrf_core.kernels.plain import LinearKernel, RBFKernel
from problems import random_inputs

KERNELS = [
    LinearKernel(),
    PolynomialKernel(1, 0.5, 1.0, 0.7),
    PolynomialKernel(2, 0.5, 1.0, 0.7),
    PolynomialKernel(3, 0.2, 0.5, 0.1),
    PolynomialKernel(5, 0.2, 1.0, 1.0),
    RBFKernel(0.3),
]
MIXTURES = [(3, 0, 0), (0, 4, 0), (0, 0, 6), (3, 2, 0), (2, 2, 5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.type}{getattr(kernel, 'degree', '')}")
@pytest.mark.parametrize("mixture", MIXTURES)
def test_gram_agrees_with_naive_kernels(rng, kernel, mixture):
    rows, pivots = random_inputs(rng, 23, *mixture), random_inputs(rng, 7, *mixture)
    np.testing.assert_allclose(gram(kernel, rows, pivots), oracle.gram(kernel, rows, pivots), rtol=1e-12)
    single = gram(kernel, rows, pivots, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, oracle.gram(kernel, rows, pivots), rtol=2e-5, atol=2e-6)


def test_values_that_many_pivots_have(rng):
    """Both ways of counting matches, by comparison and by list, are met and agree."""
    rows, pivots = random_inputs(rng, 40, 4, 0, values=30), random_inputs(rng, 300, 4, 0, values=30)
    pivots.codes[:200, 0] = 3
    rows.codes[:20, 0] = 3
    np.testing.assert_array_equal(gram(LinearKernel(), rows, pivots), oracle.gram(LinearKernel(), rows, pivots))


def test_more_values_than_sixteen_bits(rng):
    rows, pivots = random_inputs(rng, 30, 2, 0, values=200_000), random_inputs(rng, 9, 2, 0, values=200_000)
    rows.codes[:9] = pivots.codes
    np.testing.assert_array_equal(gram(LinearKernel(), rows, pivots), oracle.gram(LinearKernel(), rows, pivots))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.type}{getattr(kernel, 'degree', '')}")
def test_diagonal_is_the_gram_with_itself(rng, kernel):
    inputs = random_inputs(rng, 9, 3, 2, 4)
    np.testing.assert_allclose(kernel.diagonal(inputs), np.diagonal(gram(kernel, inputs, inputs)), rtol=1e-12)


def test_unseen_values_count_in_the_diagonal_alone(rng):
    inputs = random_inputs(rng, 5, 3, 1)
    new = type(inputs)(inputs.codes, inputs.sizes, inputs.real, None, np.full(5, 2.0))
    kernel = LinearKernel()
    np.testing.assert_allclose(kernel.diagonal(new), kernel.diagonal(inputs) + 2, rtol=1e-12)
    np.testing.assert_allclose(gram(kernel, new, inputs), gram(kernel, inputs, inputs), rtol=1e-12)
    assert (gram(RBFKernel(0.5), new, inputs) < gram(RBFKernel(0.5), inputs, inputs)).all()


def test_poly_scales(rng):
    """gamma is one over the mean squared norm, and the mean diagonal is one, for every degree."""
    inputs = random_inputs(rng, 50, 4, 3)
    for degree in (1, 2, 3):
        kernel = fit_kernel(KernelConfig("poly", {"degree": degree}), inputs, 0)
        np.testing.assert_allclose(kernel.gamma, 1 / inputs.squared_norms().mean(), rtol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(inputs).mean(), 1, rtol=1e-12)


def test_rbf_scale_is_the_median(rng):
    inputs = random_inputs(rng, 40, 0, 3)
    kernel = fit_kernel(KernelConfig("rbf"), inputs, 0)
    distances = ((inputs.real[:, None] - inputs.real[None]) ** 2).sum(axis=2)[np.triu_indices(40, 1)]
    np.testing.assert_allclose(kernel.gamma, 1 / np.median(distances), rtol=1e-12)


def test_given_scales_are_kept(rng):
    inputs = random_inputs(rng, 10)
    assert fit_kernel(KernelConfig("poly", {"degree": 3, "gamma": 0.25, "coef0": 2.0}), inputs, 0).gamma == 0.25
    assert fit_kernel(KernelConfig("rbf", {"gamma": 0.125}), inputs, 0) == RBFKernel(0.125)
    assert fit_kernel(KernelConfig("linear"), inputs, 0) == LinearKernel()


@pytest.mark.parametrize("kind", ["poly", "rbf"])
def test_constant_inputs_have_scales_too(rng, kind):
    inputs = random_inputs(rng, 6, 0, 2)
    inputs.real[:] = 0
    assert np.isfinite(gram(fit_kernel(KernelConfig(kind), inputs, 0), inputs, inputs)).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.type}{getattr(kernel, 'degree', '')}")
def test_kernels_survive_a_header(kernel):
    assert kernel_from_dict(kernel.to_dict(), random_inputs(np.random.default_rng(0), 1)) == kernel


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"type": "sigmoid"},
        {"type": "rbf"},
        {"type": "rbf", "gamma": float("nan")},
        {"type": "rbf", "gamma": "1"},
        {"type": "rbf", "gamma": 1.0, "more": 1},
        {"type": "poly", "degree": 99, "gamma": 1.0, "coef0": 1.0, "scale": 1.0},
        {"type": "poly", "degree": 2.5, "gamma": 1.0, "coef0": 1.0, "scale": 1.0},
    ],
)
def test_altered_kernels_are_refused(values):
    with pytest.raises(ValueError):
        kernel_from_dict(values, random_inputs(np.random.default_rng(0), 1))


@pytest.mark.parametrize("mixture", [(0, 4, 0), (2, 3, 0), (0, 0, 4)])
def test_rbf_far_from_zero(rng, mixture):
    """Distances between rows far from zero keep their digits, in single precision too."""
    inputs = random_inputs(rng, 40, *mixture)
    kernel = RBFKernel(0.2)
    expected = gram(kernel, inputs, inputs)
    if inputs.bag is None:
        moved = replace(inputs, real=inputs.real + 1e5)
    else:
        dense = inputs.bag.toarray()
        expected = gram(kernel, replace(inputs, bag=None, real=dense), replace(inputs, bag=None, real=dense))
        moved = replace(inputs, bag=scipy.sparse.csr_array(dense + 1e4))
    np.testing.assert_allclose(gram(kernel, moved, moved, np.float32), expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(
        fit_kernel(KernelConfig("rbf"), moved, 0).gamma, fit_kernel(KernelConfig("rbf"), inputs, 0).gamma, rtol=1e-4
    )


def test_poly_of_large_values_in_single_precision(rng):
    inputs = random_inputs(rng, 10, 0, 3)
    large = replace(inputs, real=1e5 * inputs.real)
    kernel = fit_kernel(KernelConfig("poly", {"degree": 4, "gamma": 1.0}), large, 0)
    np.testing.assert_allclose(np.diagonal(gram(kernel, large, large, np.float32)), kernel.diagonal(large), rtol=1e-4)
