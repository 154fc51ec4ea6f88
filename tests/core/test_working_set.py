"""Pairs of a working set, and the minimum of its model, beside dense matrices and coordinate descent."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.objective.solvers import working_set as module
from kcrf_core.system import Workers

SIZE, SLOTS = 40, 4


class Reference:
    """The same pairs as whole vectors; the curvature of L-BFGS by its updates of a dense matrix."""

    def __init__(self, hessian):
        self.hessian, self.pairs = hessian, []

    def add(self, columns, step):
        whole = np.zeros(len(self.hessian))
        whole[columns] = step
        change = self.hessian @ whole
        self.pairs = [*self.pairs[-SLOTS + 1 :], (whole, np.where(np.isin(np.arange(SIZE), columns), change, 0.0))]
        return change[columns]

    def leave(self, columns):
        """Values of parameters that are no members any longer are forgotten."""
        member = np.isin(np.arange(SIZE), columns)
        self.pairs = [(step * member, change * member) for step, change in self.pairs]

    def curvature(self, columns, diagonal):
        """Return B [w, w], in parameters as they are, and the length l."""
        root = np.sqrt(diagonal)
        pairs = [(step[columns] * root, change[columns] / root) for step, change in self.pairs]
        pairs = [(s, y) for s, y in pairs if s @ y > 0]
        length = pairs[-1][1] @ pairs[-1][1] / (pairs[-1][0] @ pairs[-1][1])
        B = length * np.eye(len(columns))
        for s, y in pairs:
            B += np.outer(y, y) / (y @ s) - np.outer(B @ s, B @ s) / (s @ B @ s)
        return B * np.outer(root, root), length


def minimum(B, theta, slope, thresholds):
    """The minimiser of slope.d + d.B d / 2 + thresholds.|theta + d| by coordinate descent to the end."""
    point = theta.copy()
    for _ in range(20_000):
        before = point.copy()
        for i in range(len(point)):
            own = slope[i] + B[i] @ (point - theta) - B[i, i] * point[i]
            point[i] = -np.sign(own) * max(abs(own) - thresholds[i], 0.0) / B[i, i]
        if np.abs(point - before).max() <= 1e-13 * max(1.0, np.abs(point).max()):
            return point
    raise AssertionError("no convergence")


@pytest.fixture
def few_slots(monkeypatch):
    monkeypatch.setattr(module, "MANY_PAIRS", SLOTS)
    monkeypatch.setattr(module, "MOST_PAIRS", SLOTS)
    monkeypatch.setattr(module, "ENOUGH", 1e-15)
    monkeypatch.setattr(module, "SLICE", 7)  # several slices


def compare(working, reference, diagonal, rng, thresholds):
    """Compare the minimum, what is said of it, and the sums over the active set."""
    columns = working.columns
    B, length = reference.curvature(columns, diagonal[columns])
    np.testing.assert_allclose(working.length, length, rtol=1e-10)
    for _ in range(3):  # the active set changes from one to the next
        theta = np.where(rng.random(len(columns)) < 0.5, rng.normal(size=len(columns)), 0.0)
        slope = 3 * rng.normal(size=len(columns))
        least = thresholds[columns]
        point, change = working.minimise(theta, slope, least, working.length)
        expected = minimum(B, theta, slope, least)
        np.testing.assert_allclose(point, expected, rtol=0, atol=1e-8)
        added = least @ (np.abs(point) - np.abs(theta))
        np.testing.assert_allclose(change, slope @ (point - theta) + added, rtol=1e-8)
        rows = working.rows[working.active]
        k = rows.shape[1]
        np.testing.assert_allclose(working.active_gram[:k, :k], rows.T @ rows, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_that_of_a_dense_model(few_slots, seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(SIZE, SIZE))
    reference = Reference(factor @ factor.T / SIZE + np.diag(rng.random(SIZE)))
    diagonal, thresholds = rng.uniform(0.5, 2.0, SIZE), rng.uniform(0.2, 1.0, SIZE)
    with Workers(1) as workers:
        working = module.WorkingSet(SIZE, np.float64, workers)

        def step():
            taken = rng.normal(size=len(working))
            working.add(taken, reference.add(working.columns, taken))

        working.join(np.arange(0, SIZE, 2), diagonal[::2])
        for _ in range(3):
            step()
        compare(working, reference, diagonal, rng, thresholds)
        working.join(np.arange(SIZE), diagonal)  # members are not taken twice
        assert len(working) == SIZE and len(set(working.columns.tolist())) == SIZE
        for _ in range(SLOTS):  # the first ones go
            step()
        compare(working, reference, diagonal, rng, thresholds)
        diagonal = rng.uniform(0.5, 2.0, SIZE)
        working.rescale(diagonal[working.columns])
        compare(working, reference, diagonal, rng, thresholds)
        working.leave(np.arange(SIZE) < 3)  # too few to go
        assert len(working) == SIZE
        working.leave(np.arange(SIZE) % 3 == 0)
        assert len(working) < SIZE
        reference.leave(working.columns)
        compare(working, reference, diagonal, rng, thresholds)
        for _ in range(2):
            step()
        compare(working, reference, diagonal, rng, thresholds)


def test_without_pairs_the_model_is_a_diagonal(few_slots):
    rng = np.random.default_rng(0)
    diagonal, thresholds, slope, theta = rng.uniform(0.5, 2, (4, SIZE))
    with Workers(1) as workers:
        working = module.WorkingSet(SIZE, np.float64, workers)
        working.join(np.arange(SIZE), diagonal)
        point, _ = working.minimise(theta, slope, thresholds, 3.0)
    expected = minimum(np.diag(3.0 * diagonal), theta, slope, thresholds)
    np.testing.assert_allclose(point, expected, rtol=1e-12, atol=1e-12)


def test_a_step_along_which_p_does_not_curve_upwards_is_not_taken_up(few_slots):
    with Workers(1) as workers:
        working = module.WorkingSet(3, np.float64, workers)
        working.join(np.arange(3), np.ones(3))
        working.add(np.ones(3), -np.ones(3))
        assert working.pairs == 0 and working.length == 0


def test_any_number_of_threads_gives_the_same_bytes(few_slots):
    def minima(threads):
        rng, found = np.random.default_rng(1), []
        factor = rng.normal(size=(SIZE, SIZE))
        hessian = factor @ factor.T
        with Workers(threads) as workers:
            working = module.WorkingSet(SIZE, np.float32, workers)
            working.join(np.arange(SIZE), rng.uniform(1, 2, SIZE))
            for _ in range(SLOTS + 1):
                step = rng.normal(size=len(working))
                working.add(step, hessian[np.ix_(working.columns, working.columns)] @ step)
                theta, slope = rng.normal(size=(2, len(working)))
                found.append(working.minimise(theta, slope, np.full(len(working), 0.3), working.length)[0].tobytes())
                working.leave(np.arange(len(working)) % 4 == 1)
        return found

    assert minima(1) == minima(3)
