"""Pivot selection: the greedy order, the residual, and the law of the random method."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from kcrf_core.errors import ConfigError, NumericError
from kcrf_core.kernels import InnerProductKernel, PolynomialKernel, gram
from kcrf_core.kernels.composite import CosineKernel
from kcrf_core.kernels.plain import LinearKernel, RBFKernel
from kcrf_core.maps import pivot_choice as basis
from kcrf_core.system import Workers
from problems import random_inputs

KERNEL = RBFKernel(0.2)


def choose(method, inputs, kernel, size, workers, seed=0, dtype=np.float64):
    return basis.choose_pivots(method, inputs, kernel, size, np.random.default_rng(seed), workers, dtype)


def true_residual(kernel, inputs, rows):
    K = gram(kernel, inputs, inputs)
    B = K[np.ix_(rows, rows)]
    return np.diagonal(K) - np.einsum("nm,nm->n", K[:, rows], np.linalg.solve(B, K[:, rows].T).T)


def test_greedy_takes_the_largest_residual(rng, workers):
    inputs = random_inputs(rng, 200, 3, 3)
    kernel = PolynomialKernel(3, 0.2, 1.0, 1.0)  # no two positions have the same k(x, x)
    found = choose("greedy", inputs, kernel, 90, workers)
    pivots, residual = oracle.incomplete_cholesky(gram(kernel, inputs, inputs), 90)
    assert found.rows.tolist() == pivots
    np.testing.assert_allclose(found.residual, residual, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("method", list(basis.METHODS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_residual_is_what_the_pivots_leave(rng, workers, method, dtype):
    inputs = random_inputs(rng, 150, 3, 3)
    found = choose(method, inputs, KERNEL, 40, workers, dtype=dtype)
    assert len(set(found.rows.tolist())) == 40
    expected = true_residual(KERNEL, inputs, found.rows)
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found.residual, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.curve[-1], found.residual.sum(), rtol=1e-4)
    np.testing.assert_allclose(found.curve[0], found.trace, rtol=1e-12)
    assert (np.diff(found.curve) <= 0).all()


@pytest.mark.parametrize("method", list(basis.METHODS))
def test_stops_at_the_rank(rng, workers, method):
    """A linear kernel on three columns has rank three, however many pivots are asked for."""
    inputs = random_inputs(rng, 60, 0, 3)
    found = choose(method, inputs, LinearKernel(), 20, workers)
    assert len(found.rows) == 3
    np.testing.assert_allclose(found.residual, 0, atol=1e-8)


@pytest.mark.parametrize("method", list(basis.METHODS))
def test_repeated_rows_are_chosen_once(rng, workers, method):
    inputs = random_inputs(rng, 12, 2, 2).take(np.arange(60) % 12)
    found = choose(method, inputs, KERNEL, 60, workers)
    assert len(set((found.rows % 12).tolist())) == len(found.rows) <= 12


@pytest.mark.parametrize("method", list(basis.METHODS))
def test_threads_do_not_change_the_choice(rng, method):
    inputs = random_inputs(rng, 5000, 3, 2)
    found = []
    for threads in (1, 2):
        with Workers(threads) as workers:
            found.append(choose(method, inputs, KERNEL, 50, workers, dtype=np.float32))
    np.testing.assert_array_equal(found[0].rows, found[1].rows)
    np.testing.assert_array_equal(found[0].residual, found[1].residual)


@pytest.mark.parametrize("draws", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_random_draws_by_the_residual(workers, draws):
    """The first pivot is distributed as the diagonal, and the pair as drawn one after the other."""
    rng = np.random.default_rng(1)
    inputs = random_inputs(rng, 6, 0, 4)
    kernel = PolynomialKernel(2, 0.5, 1.0, 1.0)
    K = gram(kernel, inputs, inputs)
    expected = np.zeros((6, 6))
    for i in range(6):
        d = np.maximum(np.diagonal(K) - K[:, i] ** 2 / K[i, i], 0)
        d[i] = 0
        expected[i] = K[i, i] / np.trace(K) * d / d.sum()
    counts = np.zeros((6, 6))
    for seed in range(draws):
        i, j = choose("random", inputs, kernel, 2, workers, seed).rows
        counts[i, j] += 1
    assert counts.diagonal().sum() == 0
    deviation = np.sqrt(draws * expected * (1 - expected)) + 1e-9
    assert (np.abs(counts - draws * expected) < 5 * deviation + 1).all()


def test_full_basis_spans_everything(rng):
    inputs = random_inputs(rng, 15, 2, 2).take(np.arange(30) % 15)
    found = basis.full_basis(inputs, KERNEL)
    assert len(found.rows) <= 15
    np.testing.assert_allclose(true_residual(KERNEL, inputs, found.rows), 0, atol=1e-9)


def test_full_basis_of_a_rank_deficient_kernel(rng):
    found = basis.full_basis(random_inputs(rng, 40, 0, 3), LinearKernel())
    assert len(found.rows) == 3


def test_a_kernel_of_zeros_is_an_error(rng, workers):
    inputs = random_inputs(rng, 5, 0, 2)
    inputs.real[:] = 0
    with pytest.raises(NumericError, match="zero"):
        choose("random", inputs, LinearKernel(), 2, workers)
    with pytest.raises(NumericError, match="zero"):
        basis.full_basis(inputs, LinearKernel())


class SignlessKernel(InnerProductKernel):
    """No kernel: 0.5 - |x - x'|^2, whose matrix has one positive eigenvalue at most."""

    type = "signless"

    def coefficients(self):
        return 2.0, -1.0, 0.5

    def function(self, block, xp):
        pass

    def diagonal(self, inputs):
        return np.full(len(inputs), 0.5)


class NegativeKernel(LinearKernel):
    def coefficients(self):
        return -1.0, 0.0, 0.0

    def diagonal(self, inputs):
        return -super().diagonal(inputs)


@pytest.mark.parametrize("method", list(basis.METHODS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_negative_diagonal_is_found(rng, workers, method, dtype):
    inputs = random_inputs(rng, 60, 0, 3)
    found = choose(method, inputs, SignlessKernel(), 20, workers, dtype=dtype)
    K = gram(SignlessKernel(), inputs, inputs)
    left = np.diagonal(K) - np.einsum(
        "nm,nm->n",
        K[:, found.rows],
        np.linalg.solve(K[np.ix_(found.rows, found.rows)], K[:, found.rows].T).T,
    )
    assert found.negative == np.count_nonzero(left < -1e-3) > 30
    with pytest.raises(NumericError, match="not positive semidefinite"):
        choose(method, inputs, NegativeKernel(), 20, workers, dtype=dtype)


def test_a_full_map_finds_a_negative_diagonal(rng):
    assert basis.full_basis(random_inputs(rng, 60, 0, 3), SignlessKernel()).negative > 30
    with pytest.raises(NumericError, match="not positive semidefinite"):
        basis.full_basis(random_inputs(rng, 60, 0, 3), NegativeKernel())


@pytest.mark.parametrize("method", list(basis.METHODS))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_is_no_negative_diagonal(rng, workers, method, dtype):
    inputs = random_inputs(rng, 400, 2, 3)
    inputs.real[:, 0] *= 100
    kernels = (
        LinearKernel(),
        CosineKernel(LinearKernel()),
        RBFKernel(1e-4),
        PolynomialKernel(8, 0.2, 0.0, 1.0),
    )
    for kernel in kernels:
        assert choose(method, inputs, kernel, 300, workers, dtype=dtype).negative == 0


def test_unknown_method(rng, workers):
    with pytest.raises(ConfigError, match="greedy"):
        choose("best", random_inputs(rng, 5), KERNEL, 2, workers)


def test_dependent_pivots_go_and_the_curve_stays_true(rng, workers):
    """Nearly equal rows: what is kept is independent, in the order chosen, and its curve is what it explains."""
    inputs = random_inputs(rng, 60, 0, 2)
    twins = type(inputs)(
        np.vstack([inputs.codes] * 2),
        inputs.sizes,
        np.vstack([inputs.real, inputs.real + 1e-5]),
        None,
        np.zeros(120),
    )
    for method in ("greedy", "random"):
        found = choose(method, twins, KERNEL, 120, workers, dtype=np.float32)
        np.linalg.cholesky(gram(KERNEL, twins.take(found.rows), twins.take(found.rows)))
        np.testing.assert_allclose(found.curve[-1], found.residual.sum(), atol=1e-2)
        for m in (1, 3, 8):
            left = true_residual(KERNEL, twins, found.rows[:m]).sum()
            np.testing.assert_allclose(found.curve[m], left, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("method", list(basis.METHODS))
def test_stops_when_enough_is_explained(rng, workers, method):
    """As few pivots as leave no more than the part asked for."""
    inputs = random_inputs(rng, 300, 3, 3)
    make = np.random.default_rng(0)
    found = basis.choose_pivots(method, inputs, KERNEL, 250, make, workers, np.float64, residual=0.3)
    left = found.curve / found.trace
    assert left[-1] <= 0.3 < left[-2]
    np.testing.assert_allclose(left[-1], true_residual(KERNEL, inputs, found.rows).sum() / found.trace, rtol=1e-6)


def test_looking_at_what_is_left_pays(rng, workers):
    """At equal size, drawing by the residual leaves less than drawing blindly, where some inputs are rare."""
    inputs = random_inputs(rng, 1000, 3, 2)
    inputs.real[:900] *= 0.05  # most positions are nearly alike
    chosen = [choose("random", inputs, KERNEL, 60, workers, seed).residual.sum() for seed in range(3)]
    blind = [
        true_residual(KERNEL, inputs, np.random.default_rng(seed).permutation(1000)[:60]).sum() for seed in range(3)
    ]
    assert np.mean(chosen) < 0.9 * np.mean(blind)


@pytest.mark.parametrize(
    ("positions", "size"), [(0, 0), (300, 300), (4_539, 2_000), (250_000, 2_000), (1_000_000, 1_000), (10**8, 500)]
)
def test_automatic_size_follows_the_number_of_positions(positions, size):
    assert basis.automatic_size(positions) == size
