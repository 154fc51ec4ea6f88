"""The sampled Hessian and steps by it, beside exact products, dense matrices and coordinate descent."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core import NumericError
from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import Inputs
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import ObjectiveTerm, engine, partition
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, Run, bordered, proximal, sampled_model
from kcrf_core.objective.solvers.bordered import BorderedInverse
from kcrf_core.objective.solvers.sampled_model import SampledModel, sampled_matrix
from kcrf_core.system import Workers, factorise
from problems import on_threads


def categories(rng, workers, Y=3, sequences=40, dtype=np.float64, threshold=0.5, cut=False):
    """A linear chain with two columns of categories and an L1 penalty."""
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 9, sequences))]).astype(np.int64)
    N = int(offsets[-1])
    labels = rng.integers(0, Y, N).astype(np.int32)
    codes = np.stack([labels + 3 * rng.integers(0, 2, N), rng.integers(0, 6, N)], axis=1).astype(np.int32)
    inputs = Inputs(codes, np.array([6, 6]), np.zeros((N, 0)), None, np.zeros(N))
    cuts = rng.random((sequences, 2)) < 0.5 if cut else None
    problem = Problem(labels, offsets, rng.random(sequences) + 0.5, Y, cuts)
    terms = [
        ObjectiveTerm(NODE, 5.0, ExplicitMap.of(inputs, dtype), threshold=threshold),
        ObjectiveTerm(EDGE, 2.0, threshold=threshold),
    ]
    return on_threads(problem, terms, workers, dtype)


@pytest.mark.parametrize("Y, cut", [(3, False), (3, True), (2, False)])
def test_the_sampled_hessian_is_that_of_products(rng, workers, monkeypatch, Y, cut):
    for module in (engine, partition):
        monkeypatch.setattr(module, "COLUMNS_TOGETHER", 8)  # several blocks
    whole = categories(rng, workers, Y, cut=cut)
    part, _ = whole.with_parameters(np.flatnonzero(rng.random(whole.size) < 0.7))
    theta = rng.normal(size=part.size)
    columns = np.sort(rng.choice(part.size, part.size * 2 // 3, replace=False))
    exact = np.array([part.hessian_product(theta, unit) for unit in np.eye(part.size)[columns]])[:, columns]
    few, many = (part.sampled_hessian(theta, columns, samples) for samples in (400, 160_000))
    errors = [np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in (few, many)]
    assert errors[1] < 0.02 and errors[1] < errors[0] / 10
    np.testing.assert_array_equal(many, many.T)
    assert np.linalg.eigvalsh(few.astype(np.float64)).min() > 0  # the prior is in it


def test_what_cannot_be_sampled_is_not(rng, workers):
    whole = categories(rng, workers)
    assert whole.sampled_hessian(np.zeros(whole.size), np.arange(3), 10) is None  # not of kept places
    assert sampled_matrix(whole.with_parameters(np.arange(3))[0], np.zeros(3), np.arange(0)) is None


@pytest.fixture
def near(rng, workers):
    """An objective of few parameters, a point, and a model there."""
    whole = categories(rng, workers)
    part, _ = whole.with_parameters(np.arange(whole.size))
    theta = np.where(rng.random(part.size) < 0.5, rng.normal(size=part.size), 0.0)
    return part, theta, SampledModel(part, np.arange(part.size), sampled_matrix(part, theta, np.arange(part.size)))


def minimum(B, slope, thresholds, theta):
    point = theta.copy()
    for _ in range(5000):
        for i in range(len(point)):
            aim = B[i, i] * point[i] - slope[i] - B[i] @ (point - theta)
            point[i] = np.sign(aim) * max(abs(aim) - thresholds[i], 0.0) / B[i, i]
    return point


def test_steps_go_to_the_minimum_of_the_model(near):
    part, theta, model = near
    now, B = part.evaluate(theta), model.matrix.astype(np.float64)
    start, step, change = model.step(theta, now)
    own = model.columns  # those that are zero and far from their thresholds have left
    expected = minimum(B, now.gradient, part.thresholds, theta)
    np.testing.assert_array_equal(start, theta[own])
    np.testing.assert_allclose(start + step, expected[own], atol=2e-4)
    gain = np.abs(expected[own]) @ part.thresholds[own] - np.abs(start) @ part.thresholds[own]
    np.testing.assert_allclose(change, now.gradient[own] @ step + gain, rtol=1e-3)


def test_models_learn_from_steps(near):
    part, theta, model = near
    now = part.evaluate(theta)
    _, step, _ = model.step(theta, now)
    whole = np.zeros(part.size)
    whole[model.columns] = step
    new = part.evaluate(theta + whole)
    model.remember(step, new)
    changes = (new.gradient - now.gradient)[model.columns]
    np.testing.assert_allclose(model.matrix @ step, changes, atol=1e-4 * np.abs(changes).max())
    np.testing.assert_allclose(model.matrix, model.matrix.T, atol=1e-5)


def test_a_model_goes_on_with_another(near, rng):
    """The mean of both where they have the same parameters; of others what a regression says."""
    part, _, first = near
    d = part.size
    again = SampledModel(part, np.arange(d), 3 * first.matrix)
    again.go_on(first, np.arange(d), np.arange(d))
    np.testing.assert_allclose(again.matrix, 2 * first.matrix, rtol=1e-5)

    common = np.sort(rng.choice(d, d // 2, replace=False))
    fewer = SampledModel(part, common, 3 * first.matrix[np.ix_(common, common)])
    more = SampledModel(part, np.arange(d), first.matrix.copy())
    more.go_on(fewer, np.arange(len(common)), common)
    weight = len(common) / (len(common) + d)
    inner = first.matrix[np.ix_(common, common)]
    np.testing.assert_allclose(more.matrix[np.ix_(common, common)], (1 + 2 * weight) * inner, rtol=1e-4)
    others = np.setdiff1d(np.arange(d), common)
    before, after = (
        np.linalg.solve(each[np.ix_(common, common)], each[np.ix_(common, others)])
        for each in (first.matrix.astype(np.float64), more.matrix.astype(np.float64))
    )
    np.testing.assert_allclose(after, before, atol=1e-3)
    schur = [
        each[np.ix_(others, others)] - each[np.ix_(others, common)] @ slopes
        for each, slopes in ((first.matrix, before), (more.matrix, after))
    ]
    np.testing.assert_allclose(schur[1], schur[0], atol=1e-3 * np.abs(schur[0]).max())


def test_equations_of_other_rows_and_a_corrected_matrix(rng, monkeypatch):
    """Parameters join, leave and come back, and the matrix is corrected in between, until too much has changed."""
    monkeypatch.setattr(bordered, "WIDEST", 60)
    d = 40
    root = rng.normal(size=(d, d))
    first = (root @ root.T / d + np.eye(d)).astype(np.float32)
    sets = [rng.random(d) < 0.6]
    sets += [sets[0] ^ (rng.random(d) < share) for share in (0.0, 0.1, 0.3, 0.1, 1.0)]
    rights, corrections = rng.normal(size=(len(sets), d)), rng.normal(size=(len(sets), 2, d)).astype(np.float32)
    answers = []
    for threads in (1, 3):
        matrix = first.copy()
        with Workers(threads) as workers:
            inverse = BorderedInverse(matrix, sets[0], workers)
            for free, right, vectors in zip(sets, rights, corrections, strict=True):
                for _ in range(2):  # nothing is new the second time
                    found = inverse.times(free, right)
                    own = np.flatnonzero(free)
                    expected = np.zeros(d)
                    expected[own] = np.linalg.solve(matrix[np.ix_(own, own)].astype(np.float64), right[own])
                    np.testing.assert_allclose(found, expected, atol=1e-4)
                    answers.append(found)
                factors = np.array([0.5, -0.01], dtype=np.float32)
                matrix += (vectors.T * factors) @ vectors
                inverse.correct(vectors, factors)
            for free in (sets[1], ~sets[1]):  # the first ones, and all others
                narrow = BorderedInverse(matrix, sets[0], workers)
                narrow.correct(vectors, factors)
                with monkeypatch.context() as patch:
                    patch.setattr(bordered, "WIDEST", 10)
                    assert (narrow.times(free, right) is None) == (free is not sets[1])
    for one, three in zip(answers[: len(answers) // 2], answers[len(answers) // 2 :], strict=True):
        np.testing.assert_array_equal(one, three)


def by_samples_at_once(monkeypatch):
    """Steps by a sampled Hessian from the second one on, whatever they cost."""
    monkeypatch.setattr(proximal, "FIRST_RENEWAL", 2)
    monkeypatch.setattr(proximal, "SMALL", 1.0)
    monkeypatch.setattr(proximal, "affordable", lambda *_: True)


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_steps_by_samples_lead_to_the_same_optimum(rng, workers, monkeypatch, dtype, tolerance):
    objective = categories(rng, workers, dtype=dtype)
    expected = SOLVERS["proximal"](objective, np.zeros(objective.size), Run(tolerance, 5000))
    by_samples_at_once(monkeypatch)
    drawn, matrix = [], proximal.sampled_matrix
    monkeypatch.setattr(proximal, "sampled_matrix", lambda *given: drawn.append(given) or matrix(*given))
    found = SOLVERS["proximal"](objective, np.zeros(objective.size), Run(tolerance, 5000))
    assert found.reason == expected.reason == CERTIFIED and drawn
    np.testing.assert_allclose(found.value, expected.value, rtol=tolerance)
    assert found.steps < expected.steps


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_matrix_that_rounding_has_spoilt_ends_no_training(rng, workers, monkeypatch, after):
    objective = categories(rng, workers)
    by_samples_at_once(monkeypatch)
    calls, step = [], SampledModel.step

    def fails(*given):
        calls.append(given)
        if len(calls) > after and len(calls) < after + 5:
            raise NumericError("a sampled Hessian is not positive")
        return step(*given)

    monkeypatch.setattr(SampledModel, "step", fails)
    found = SOLVERS["proximal"](objective, np.zeros(objective.size), Run(1e-6, 5000))
    assert found.reason == CERTIFIED and len(calls) > after


def test_rare_parameters_have_a_curvature(rng, workers):
    """Of an event that no labelling had the sampled variance is zero; its threshold is taken for it."""
    part, _ = categories(rng, workers).with_parameters(np.arange(12))
    theta = np.zeros(part.size)
    theta[0] = 60.0  # a label that is certain
    matrix = sampled_matrix(part, theta, np.arange(part.size))
    assert (np.diag(matrix) >= part.thresholds / 2).all() and factorise(matrix, part.engine.workers)


def test_models_cost_no_more_than_the_passes_so_far(rng, workers):
    objective = categories(rng, workers)
    assert sampled_model.affordable(objective, 10, 5, 10_000)
    assert not sampled_model.affordable(objective, 10_000, 5000, 10)
    assert not sampled_model.affordable(objective, 0, 0, 10)
