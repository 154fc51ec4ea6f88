"""Solvers know an engine by its seam alone: they run on one whose vectors are no arrays, and find what they should."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import Engine, Objective, ObjectiveTerm, Vectors
from kcrf_core.objective.engine import EngineBlocks
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, Run, nested
from kcrf_core.objective.solvers.initial_inverse import InitialInverse, Preconditioner
from kcrf_core.objective.vectors import Pairs
from problems import on_threads
from toy_engine import ToyBlocks, ToyEngine, ToyPairs, ToyVector, ToyVectors, numbers

SIGMA2 = [2.0, 0.7, 3.0]


def both(rng, workers, widths=(4, 3), real=False):
    """The same P on the toy engine and on threads."""
    Y, offsets = 3, np.array([0, 4, 5, 7, 10])
    N = int(offsets[-1])
    problem = Problem(rng.integers(0, Y, N).astype(np.int32), offsets, rng.random(4) + 0.5, Y)
    features = [rng.normal(size=(N, width)) for width in widths]
    empty = scipy.sparse.csr_array((N, 0))
    terms = [
        ObjectiveTerm(NODE, sigma2, ExplicitMap(empty, Phi, np.float64))
        for sigma2, Phi in zip(SIGMA2, features, strict=False)
    ]
    threads = on_threads(problem, [*terms, ObjectiveTerm(EDGE, SIGMA2[-1])], workers)
    return Objective(ToyEngine(problem, features, real), [*SIGMA2[: len(widths)], SIGMA2[-1]]), threads


def test_nothing_but_its_vectors_looks_inside_a_toy_vector():
    vector = ToyVector([1.0, 2.0])
    for attempt in (
        lambda: np.zeros(2) + vector,
        lambda: vector * 2,
        lambda: vector[0],
        lambda: np.asarray(vector),
        lambda: float(np.sqrt(vector)),
        lambda: len(vector),
    ):
        with pytest.raises(TypeError):
            attempt()


@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_solver_runs_on_a_toy_engine(rng, workers, name):
    toy, threads = both(rng, workers)
    found = SOLVERS[name](toy, toy.vectors.zeros(), Run(1e-7, 2000))
    expected = SOLVERS["lbfgs"](threads, np.zeros(threads.size), Run(1e-9, 2000))
    assert isinstance(found.theta, ToyVector) and found.reason == CERTIFIED
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)
    np.testing.assert_allclose(numbers(found.theta), expected.theta, atol=2e-3)
    assert found.lower <= expected.value


@pytest.mark.parametrize("name", ["auto", "lbfgs"])
def test_columns_that_are_nested_are_used_on_a_toy_engine(rng, workers, monkeypatch, name):
    """It begins on a part of the columns, and its first guess turns to their eigenvectors."""
    monkeypatch.setattr(nested, "FEWEST_COLUMNS", 1)
    monkeypatch.setattr("kcrf_core.objective.solvers.initial_inverse.FEWEST_COLUMNS", 2)
    monkeypatch.setattr("kcrf_core.objective.solvers.initial_inverse.MATRIX_OPERATIONS", 1)
    toy, threads = both(rng, workers, widths=(10,))
    assert isinstance(InitialInverse(toy, Run(1e-3, 10)).at(toy.vectors.zeros()), Preconditioner)
    assert nested.narrowed(toy).size < toy.size
    found = SOLVERS[name](toy, toy.vectors.zeros(), Run(1e-7, 2000))
    expected = SOLVERS["lbfgs"](threads, np.zeros(threads.size), Run(1e-9, 2000))
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)


@pytest.mark.parametrize("name", ["auto", "lbfgs"])
def test_real_columns_are_turned_on_a_toy_engine(rng, workers, monkeypatch, name):
    """Guesses at several points on the way."""
    monkeypatch.setattr("kcrf_core.objective.solvers.initial_inverse.OPERATIONS_PER_CUBE", 1)
    monkeypatch.setattr("kcrf_core.objective.solvers.initial_inverse.FEWEST_REAL", 2)
    monkeypatch.setattr("kcrf_core.objective.solvers.lbfgs.FIRST_RENEWAL", 2)
    toy, threads = both(rng, workers, real=True)
    asked = []
    grams = toy.engine.real_grams
    monkeypatch.setattr(toy.engine, "real_grams", lambda at, most: asked.append(numbers(at)) or grams(at, most))
    found = SOLVERS[name](toy, toy.vectors.zeros(), Run(1e-7, 2000))
    expected = SOLVERS["lbfgs"](threads, np.zeros(threads.size), Run(1e-9, 2000))
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-6)
    assert len(asked) >= 3 and not asked[0].any() and asked[1].any() and (asked[1] != asked[2]).any()


def test_both_engines_agree(rng, workers):
    toy, threads = both(rng, workers, real=True)
    theta, vector = rng.normal(size=(2, threads.size))
    own = toy.vectors.from_array(theta), toy.vectors.from_array(vector)
    here, there = toy.evaluate(own[0]), threads.evaluate(theta)
    np.testing.assert_allclose([here.value, here.lower], [there.value, there.lower], rtol=1e-10)
    np.testing.assert_allclose(numbers(here.gradient), there.gradient, rtol=1e-8, atol=1e-10)
    product = threads.hessian_product(theta, vector)
    np.testing.assert_allclose(numbers(toy.hessian_product(*own)), product, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(toy.initial_curvature(), threads.initial_curvature(), rtol=1e-12)
    ours, theirs = toy.engine.real_grams(own[0], {0: 10, 1: 10}), threads.engine.real_grams(theta, {0: 10, 1: 10})
    for j in (0, 1):
        np.testing.assert_allclose(ours[0][j], theirs[0][j], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9)
    for diagonals in (False, True):
        ours, theirs = toy.hessian_blocks(own[0], diagonals), threads.hessian_blocks(theta, diagonals)
        np.testing.assert_allclose(ours.variance_share, theirs.variance_share, rtol=1e-9)
        np.testing.assert_allclose(ours.small(2), theirs.small(2), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ours.diagonal(), theirs.diagonal(), rtol=1e-8, atol=1e-10)
        for j in (0, 1):
            found = numbers(ours.product(j, toy.vectors.take(own[1], j)))
            np.testing.assert_allclose(found, theirs.product(j, vector[threads.blocks[j]]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "protocol, engine", [(Engine, ToyEngine), (Vectors, ToyVectors), (Pairs, ToyPairs), (EngineBlocks, ToyBlocks)]
)
def test_the_toy_has_what_solvers_ask_for(protocol, engine):
    """Of engines, what solvers use; of vectors and blocks, everything."""
    asked = {name: value for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"}
    asked = {name: value for name, value in asked.items() if protocol is not Vectors or name not in ("empty", "cast")}
    if protocol is Engine:
        asked = {name: value for name, value in asked.items() if hasattr(engine, name)}
    assert len(asked) >= 3
    for name, value in asked.items():
        there = inspect.signature(getattr(engine, name))
        assert list(there.parameters) == list(inspect.signature(value).parameters), name
