"""Explicit polynomial maps: kernel values, merged columns, unseen features, cut-off, models."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from tests.models import find_conjunctions

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import PolynomialKernel, gram
from kcrf_core.maps import (
    ExplicitMap,
    conjunction_count,
    conjunction_table,
    squared_weights,
    why_not,
)
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import SOLVERS, Run
from kcrf_core.system import Workers
from problems import on_threads, random_inputs, random_offsets

KERNELS = [
    PolynomialKernel(degree, gamma, coef0, scale)
    for degree in (1, 2, 3)
    for gamma, coef0, scale in ((0.3, 1.0, 0.2), (1.0, 0.0, 1.0), (0.7, 2.5, 0.01))
]


def binary_inputs(rng, N, bag=False):
    inputs = random_inputs(rng, N, 3, 0)
    if bag:
        inputs = replace(inputs, bag=scipy.sparse.csr_array((rng.random((N, 6)) < 0.4).astype(float)))
    return inputs


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_threads_find_the_same_conjunctions_in_the_same_order(rng, monkeypatch, threads):
    monkeypatch.setattr(conjunction_table, "FEWEST_TO_SHARE", 1)
    monkeypatch.setattr(conjunction_table, "ENTRIES_PER_TASK", 37)
    for N in (0, 1, 5, 60):
        inputs = binary_inputs(rng, N, bag=True)
        alone, phi = find_conjunctions(inputs, KERNELS[3], cut_off=2)
        with Workers(threads) as workers:
            shared, same = find_conjunctions(inputs, KERNELS[3], cut_off=2, workers=workers)
        for name in ("keys", "columns", "norms"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(shared, name))
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(phi, name), getattr(same, name))


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_inner_products_are_kernel_values(rng, kernel, merge, bag):
    """On training rows, and between them and rows with features and conjunctions never seen."""
    inputs, others = binary_inputs(rng, 40, bag), binary_inputs(rng, 15, bag)
    found, phi = find_conjunctions(inputs, kernel, merge=merge)
    np.testing.assert_allclose((phi @ phi.T).toarray(), gram(kernel, inputs, inputs), rtol=1e-12, atol=1e-14)
    # Phi(x) of new rows against functions in the span of training rows: Phi(x) Phi^T A = k(x, X) A.
    A = rng.normal(size=(40, 3))
    out = np.zeros((15, 3))
    found.add_scores(others, (phi.T @ A) / found.norms[:, None], out)
    np.testing.assert_allclose(out, gram(kernel, others, inputs) @ A, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.rows(inputs).toarray(), phi.toarray(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose((found.rows(others) @ phi.T).toarray(), gram(kernel, others, inputs), atol=1e-12)
    assert phi.nnz <= conjunction_count(inputs, kernel.degree)


def test_weights_by_expanding_the_power():
    """(gamma <x, x'> + coef0)^d of two equal rows of n features, counted by conjunctions."""
    for kernel in KERNELS:
        squares = squared_weights(kernel)
        for n in range(6):
            by_conjunctions = sum(
                squares[j] * len(list(itertools.combinations(range(n), j))) for j in range(kernel.degree + 1)
            )
            value = kernel.scale * (kernel.gamma * n + kernel.coef0) ** kernel.degree
            np.testing.assert_allclose(by_conjunctions, value, rtol=1e-12, atol=1e-15)


def test_columns_with_the_same_rows_are_merged(rng):
    inputs = binary_inputs(rng, 30)
    kernel = KERNELS[4]
    found, phi = find_conjunctions(inputs, kernel)
    whole, each = find_conjunctions(inputs, kernel, merge=False)
    supports = {tuple(np.flatnonzero(column)) for column in each.toarray().T}
    assert phi.shape[1] == len(supports) < each.shape[1]
    assert len({tuple(np.flatnonzero(column)) for column in phi.toarray().T}) == phi.shape[1]
    np.testing.assert_array_equal(np.sort(found.keys), np.sort(whole.keys))


def test_the_merged_optimum_is_the_unmerged_one(rng, workers):
    offsets = random_offsets(rng, 30)
    problem = Problem(rng.integers(0, 3, offsets[-1]).astype(np.int32), offsets, np.ones(30), 3)
    inputs = binary_inputs(rng, problem.positions)
    results = []
    for merge in (True, False):
        found, phi = find_conjunctions(inputs, KERNELS[3], merge=merge)
        explicit = ExplicitMap(phi, np.zeros((len(inputs), 0)), np.float64)
        objective = on_threads(problem, [ObjectiveTerm(NODE, 3.0, explicit), ObjectiveTerm(EDGE, 2.0)], workers)
        result = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-10, 2000))
        scores = np.zeros((len(inputs), 3))
        found.add_scores(inputs, objective.weights_of(result.theta, 0) / found.norms[:, None], scores)
        results.append((result.value, scores))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-3, atol=1e-4)


def test_cut_off_leaves_out_rare_conjunctions(rng):
    inputs = binary_inputs(rng, 60)
    kernel = KERNELS[6]
    found, phi = find_conjunctions(inputs, kernel, cut_off=3)
    _, each = find_conjunctions(inputs, kernel, merge=False)
    counts = (each.toarray() != 0).sum(axis=0)
    assert len(found.keys) == (counts >= 3).sum() < len(counts)
    kept = each.toarray()[:, counts >= 3]
    np.testing.assert_allclose((phi @ phi.T).toarray(), kept @ kept.T, rtol=1e-12, atol=1e-14)


def test_tables_grow(rng):
    """More conjunctions than a table has slots at first: none is lost on the way to a larger one."""
    inputs, kernel = random_inputs(rng, 300, 30, 0, values=60), KERNELS[3]
    found, phi = find_conjunctions(inputs, kernel, merge=False)
    # The empty one, single features and pairs, each once, whatever row it is seen in.
    features = np.where(inputs.codes >= 0, inputs.codes + 60 * np.arange(30), -1)
    seen = [row[row >= 0] for row in features]
    pairs = {pair for row in seen for pair in itertools.combinations(row.tolist(), 2)}
    assert phi.shape[1] == len(found.keys) == 1 + len(np.unique(np.concatenate(seen))) + len(pairs) > 1 << 16
    np.testing.assert_allclose((phi @ phi.T).toarray(), gram(kernel, inputs, inputs), rtol=1e-12, atol=1e-14)


def test_what_cannot_be_enumerated(rng):
    assert why_not(binary_inputs(rng, 5), 2) is None
    assert "degree 3" in why_not(binary_inputs(rng, 5), 4)
    assert "real columns" in why_not(random_inputs(rng, 5, 2, 1), 2)
    assert "weights other than 1" in why_not(random_inputs(rng, 5, 2, 0, 3), 2)
    many = replace(binary_inputs(rng, 5), sizes=np.full(3, 2**21))
    assert why_not(many, 2) is None and "too many" in why_not(many, 3)


def test_no_rows_and_no_features(rng):
    inputs = binary_inputs(rng, 10)
    empty = replace(inputs, codes=np.full_like(inputs.codes, -1))
    found, phi = find_conjunctions(empty, KERNELS[3])
    assert phi.shape == (10, 1) and list(found.keys) == [0]  # the empty conjunction is in every row
    found, phi = find_conjunctions(inputs.take(np.arange(0)), KERNELS[3])
    assert phi.shape == (0, 0)
    out = np.zeros((10, 2))
    found.add_scores(inputs, np.zeros((0, 2)), out)
    assert (out == 0).all() and found.rows(inputs).shape == (10, 0)
