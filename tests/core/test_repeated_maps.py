"""Inputs that come again: the same P, gradient and model, computed once for each distinct input (Lemma 6)."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels.plain import RBFKernel
from kcrf_core.maps import ExplicitMap, ReducedMap, RepeatedMap
from kcrf_core.objective import ObjectiveTerm
from problems import on_threads, random_inputs


def both_maps(rng, workers, kind, bag=3):
    """A map on rows that come four times in any order, and the same with distinct rows shared."""
    few = random_inputs(rng, 30, 2, 2, bag)
    inputs = few.take(rng.permutation(np.arange(120) % 30))

    def make(rows):
        if kind == "explicit":
            return ExplicitMap.of(rows, np.float64)
        return ReducedMap.of(rows, RBFKernel(0.3), few.take(np.arange(12)), curve, workers, np.float64)

    curve = np.linspace(1, 0.4, 13)
    rows, group = inputs.distinct()
    return make(inputs), RepeatedMap(make(inputs.take(rows)), group, workers)


@pytest.mark.parametrize("bag", [0, 3])
def test_distinct_rows_are_found(rng, bag):
    few = random_inputs(rng, 30, 2, 2, bag)
    order = rng.permutation(np.arange(120) % 30)
    rows, group = few.take(order).distinct()
    assert len(rows) == 30
    np.testing.assert_array_equal(order[rows][group], order)
    assert (np.diff(rows) > 0).all()


@pytest.mark.parametrize("kind", ["explicit", "reduced"])
def test_the_same_operator(rng, workers, kind):
    whole, shared = both_maps(rng, workers, kind)
    offsets = np.concatenate([[0], np.cumsum(np.full(24, 5))])
    problem = Problem(rng.integers(0, 3, 120).astype(np.int32), offsets, rng.random(24), 3)
    theta = v = None
    found = []
    for feature_map in (whole, shared):
        objective = on_threads(problem, [ObjectiveTerm(NODE, 2.0, feature_map), ObjectiveTerm(EDGE, 1.0)], workers)
        if theta is None:
            theta, v = rng.normal(size=(2, objective.size))
        here = objective.evaluate(theta)
        found.append((here.value, here.gradient, objective.hessian_product(theta, v), objective.initial_curvature()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(shared.mean_diagonal(), whole.mean_diagonal(), rtol=1e-12)
    assert shared.nested == whole.nested == (kind == "reduced")
    if kind == "reduced":
        np.testing.assert_allclose(shared.residual(workers), whole.residual(workers), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(shared.features(workers), whole.features(workers), rtol=1e-12, atol=1e-15)
    rows = np.array([3, 50, 3, 7])
    W = rng.normal(size=(whole.size, 2))
    for m in (whole.subset(rows), shared.subset(rows)):
        out = np.zeros((4, 2))
        m.add_scores(m.prepare(W, np.dtype(np.float64)), slice(0, 4), out)
        expected = np.zeros((120, 2))
        whole.add_scores(whole.prepare(W, np.dtype(np.float64)), slice(0, 120), expected)
        np.testing.assert_allclose(out, expected[rows], rtol=1e-10, atol=1e-12)
