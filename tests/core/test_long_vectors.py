"""Vectors of millions of parameters: vectors, memory that is used again, and L-BFGS on inner products."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import Vectors
from kcrf_core.objective.vectors import LEAST_BYTES, LONGEST_SLICE, Buffers
from kcrf_core.solvers.first_guess import Diagonal
from kcrf_core.solvers.lbfgs import FEWEST_PAIRS, Memory
from kcrf_core.system import Workers

LONG = 4 * LONGEST_SLICE + 77


def two_loops(pairs, gradient, apply, rescale):
    """The textbook's recursion."""
    direction, shares = -gradient, []
    for s, y in reversed(pairs):
        shares.append((s @ direction) / (s @ y))
        direction = direction - shares[-1] * y
    direction = apply(direction)
    if pairs and rescale:
        s, y = pairs[-1]
        direction = direction * ((s @ y) / (y @ apply(y)))
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        direction = direction + (share - (y @ direction) / (s @ y)) * s
    return direction


def steps_of_a_quadratic(rng, size, count):
    """Points and the gradients of a convex function there."""
    curvature = rng.uniform(0.1, 3, size)
    points = rng.normal(size=(count, size)).cumsum(axis=0)
    return points, points * curvature


@pytest.mark.parametrize("size", [50, LONG])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("blocks", [False, True])
def test_inner_products_give_the_direction_of_two_loops(rng, workers, size, dtype, blocks):
    vectors = Vectors([slice(0, size // 3), slice(size // 3, size)], workers)
    memory, scale = Memory(vectors, dtype), rng.uniform(0.5, 2, size)
    metric = (lambda vector: vector / scale) if blocks else Diagonal(scale, vectors)
    count = 70 if size == 50 else FEWEST_PAIRS + 3
    points, gradients = steps_of_a_quadratic(rng, size, count)
    pairs, most = [], 60 if size == 50 else max(FEWEST_PAIRS, (1 << 23) // size)
    tolerance = 1e-8 if dtype == np.float64 else 1e-4
    for k in range(count - 1):
        if size == 50 or k > 8:
            found, slope = memory.direction(gradients[k], metric)
            expected = two_loops(pairs, gradients[k], lambda vector: vector / scale, rescale=not blocks)
            np.testing.assert_allclose(found, expected, atol=tolerance * abs(expected).max(), rtol=0)
            np.testing.assert_allclose(slope, found @ gradients[k], rtol=1e-3)
        memory.add(points[k], points[k + 1], gradients[k], gradients[k + 1])
        pairs = [*pairs, (points[k + 1] - points[k], gradients[k + 1] - gradients[k])][-most:]
        assert len(memory) == len(pairs)


def test_a_pair_without_curvature_is_not_kept(rng, workers):
    vectors = Vectors([slice(0, 5)], workers)
    memory = Memory(vectors)
    zero, one = np.zeros(5), np.ones(5)
    memory.add(zero, one, zero, -one)
    memory.add(zero, one, zero, np.full(5, np.nan))
    assert len(memory) == 0
    memory.add(zero, one, zero, one)
    direction, slope = memory.direction(one, Diagonal(one, vectors))
    np.testing.assert_allclose(direction, -one, rtol=1e-12)
    assert slope == pytest.approx(-5)


def test_slices_give_the_same_bytes_on_any_number_of_threads(rng):
    a, b = rng.normal(size=(2, LONG))
    found = []
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            vectors = Vectors([slice(0, 10), slice(10, LONG)], workers)
            memory = Memory(vectors, np.float32)
            memory.add(a, b, a, 2 * b - a)
            direction, slope = memory.direction(2 * b - a, Diagonal(np.ones(LONG), vectors))
            found.append((vectors.dot(a, b), vectors.stepped(a, 0.3, b).tobytes(), direction.tobytes(), slope))
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0][0], a @ b, rtol=1e-10)


def test_buffers_are_used_again_only_when_nobody_looks():
    buffers, size = Buffers(), LEAST_BYTES // 8
    first = buffers.empty(size)
    first[:] = 1
    part = first[5:7]
    assert not np.shares_memory(buffers.empty((size // 2, 2)), first)
    address = first.__array_interface__["data"][0]
    del first
    held = buffers.empty(size)  # the second one; a slice of the first is still in use
    assert held.__array_interface__["data"][0] != address
    assert (part == 1).all()
    del part
    assert buffers.empty(size).__array_interface__["data"][0] == address
    assert buffers.empty(size, np.float32).dtype == np.float32


@pytest.mark.parametrize("columns", [1, 2, 3, 5, 8, 15, 16, 17, 22, 40, 64, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ones", [False, True])
def test_sparse_products_of_any_width(rng, workers, columns, dtype, ones):
    A = (rng.random((30, 20)) < 0.3) * (1.0 if ones else rng.normal(size=(30, 20)))
    A[4] = 0
    own = ExplicitMap(scipy.sparse.csr_array(A), np.zeros((30, 0)), dtype)
    W, R = (rng.normal(size=(rows, columns)).astype(dtype) for rows in (20, 30))
    out, before = np.full((10, columns), 0.5, dtype=dtype), np.full((20, columns), np.nan)
    own.add_scores(own.prepare(W, dtype), slice(3, 13), out)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(out, 0.5 + A[3:13] @ W, rtol=rtol, atol=rtol)
    with Workers(1) as workers:
        found = own.adjoint(None, R, workers, before)
    assert found is before
    np.testing.assert_allclose(found, A.T @ R, rtol=rtol, atol=rtol)
