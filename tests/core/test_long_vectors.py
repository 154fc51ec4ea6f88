"""Vectors of millions of parameters: vectors, memory that is used again, and L-BFGS on inner products."""

from __future__ import annotations

import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.maps import ExplicitMap
from kcrf_core.objective import HostVectors, vectors as vectors_module
from kcrf_core.objective.solvers import lbfgs
from kcrf_core.objective.solvers.initial_inverse import Diagonal
from kcrf_core.objective.solvers.lbfgs import FEWEST_PAIRS, Memory
from kcrf_core.objective.vectors import LEAST_BYTES, LONGEST_SLICE, SHORTEST_SLICE, SLICES, Buffers
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
    vectors = HostVectors([slice(0, size // 3), slice(size // 3, size)], workers)
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
    vectors = HostVectors([slice(0, 5)], workers)
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
            vectors = HostVectors([slice(0, 10), slice(10, LONG)], workers)
            memory = Memory(vectors, np.float32)
            memory.add(a, b, a, 2 * b - a)
            direction, slope = memory.direction(2 * b - a, Diagonal(np.ones(LONG), vectors))
            found.append((vectors.dot(a, b), vectors.stepped(a, 0.3, b).tobytes(), direction.tobytes(), slope))
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0][0], a @ b, rtol=1e-10)


# Sizes about the borders of vectors, tiles and slices; blocks are of unequal length, one is empty.
SIZES = [1, 2, 7, 63, 511, 513, 1_024, 5_003, 70_001, LONG]


def blocks_of(size):
    return [slice(0, size // 3), slice(size // 3, size // 3), slice(size // 3, size)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("types", ["dd", "df", "fd", "ff"])
def test_operations_on_vectors_are_those_of_numpy(rng, size, types):
    a, b = (values.astype(kind) for values, kind in zip(rng.normal(size=(2, size)), types, strict=True))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    variances = np.array([0.3, 7.0, 2.5])
    each = np.repeat(variances, [block.stop - block.start for block in blocks_of(size)])
    with Workers(2) as workers:
        vectors = HostVectors(blocks_of(size), workers)
        np.testing.assert_allclose(vectors.dot(a, b), wide_a @ wide_b, rtol=1e-12, atol=1e-12 * size)
        by_block = [wide_a[block] @ wide_b[block] for block in vectors.blocks]
        np.testing.assert_allclose(vectors.block_dots(a, b), by_block, rtol=1e-12, atol=1e-12 * size)
        np.testing.assert_allclose(vectors.stepped(a, 0.3, b), wide_a + 0.3 * wide_b, rtol=1e-13, atol=1e-13)
        narrow = vectors.cast(a, np.dtype(np.float32))
        assert narrow.dtype == np.float32
        np.testing.assert_array_equal(narrow, a.astype(np.float32))
        copy = vectors.copy(a)
        assert not np.shares_memory(copy, a)
        np.testing.assert_array_equal(copy, a)
        for found, expected in ((vectors.product(a, b), a * b), (vectors.quotient(a, b), a / b)):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
        rtol = 1e-6 if types[0] == "f" else 1e-12
        target = a.copy()
        vectors.add_scaled(target, -1.7, b)
        np.testing.assert_allclose(target, wide_a - 1.7 * wide_b, rtol=rtol, atol=rtol)
        target = a.copy()
        vectors.add_curvature(target, b, variances)
        np.testing.assert_allclose(target, wide_a + wide_b / each, rtol=rtol, atol=rtol)
        gradient = wide_a.copy()
        prior, squares = vectors.add_prior(gradient, b, variances)
        expected = wide_a + wide_b / each
        np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(prior, (wide_b**2 / (2 * each)).sum(), rtol=1e-12)
        np.testing.assert_allclose(squares, (each / 2 * expected**2).sum(), rtol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "halved"), [(np.float64, False), (np.float32, False), (np.float32, True)])
def test_linearisations_are_those_of_numpy(rng, size, dtype, halved, monkeypatch):
    monkeypatch.setattr(vectors_module, "LONGEST_WHOLE", 0 if halved else 10**9)
    theta, gradient = rng.normal(size=(2, size))
    others = [rng.normal(size=size), rng.normal(size=size).astype(np.float32), rng.normal(size=size).astype(dtype)]
    variances = np.array([0.3, 7.0, 2.5])
    each = np.repeat(variances, [block.stop - block.start for block in blocks_of(size)])
    with Workers(2) as workers:
        vectors = HostVectors(blocks_of(size), workers)
        if halved:
            others.append(vectors.linearised(gradient, theta, variances, dtype, [])[0])
        found = vectors.linearised(theta, gradient, variances, dtype, others)
    scaled, constant, products = found
    loss = gradient - theta / each
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    if halved:
        assert {scaled.dtype, others[-1].dtype} == {np.dtype(np.uint16)}
        scaled, others[-1] = ((each.astype(np.uint32) << 16).view(np.float32) for each in (scaled, others[-1]))
    assert scaled.dtype == dtype
    np.testing.assert_allclose(scaled, np.sqrt(each) * loss, rtol=2.0**-8 if halved else rtol, atol=rtol)
    np.testing.assert_allclose(constant, loss @ theta, rtol=1e-12, atol=1e-12 * size)
    expected = [scaled.astype(np.float64) @ other for other in (*others, scaled)]
    np.testing.assert_allclose(products, expected, rtol=rtol, atol=rtol * np.sqrt(size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "halved"), [(np.float64, False), (np.float32, False), (np.float32, True)])
@pytest.mark.parametrize("rows", [1, 3, 4, 6])
def test_products_with_pairs_are_those_of_numpy(rng, size, dtype, halved, rows, monkeypatch):
    monkeypatch.setattr(vectors_module, "LONGEST_WHOLE", 0 if halved else 10**9)
    points, gradients = rng.normal(size=(2, rows + 1, size))
    scale = rng.uniform(0.5, 2, size).astype(dtype)
    shares = rng.normal(size=rows)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    close = {"rtol": rtol, "atol": rtol * 10 * np.sqrt(size)}
    with Workers(2) as workers:
        pairs = HostVectors(blocks_of(size), workers).pairs(rows + 2, dtype)
        for slot in range(rows):
            found = pairs.put(slot, *points[slot : slot + 2], *gradients[slot : slot + 2], slot + 1)
        S, Y = np.diff(points, axis=0), np.diff(gradients, axis=0)
        kept = {"rtol": 2.0**-8, "atol": 0} if halved else {"rtol": rtol, "atol": rtol}
        np.testing.assert_allclose(pairs.step(0), S[0], **kept)
        np.testing.assert_allclose(pairs.change(rows - 1), Y[-1], **kept)
        if halved:
            assert not np.any(pairs.step(0).astype(np.float32).view(np.uint32) & 0xFFFF)
            S, Y = (np.stack([of(slot) for slot in range(rows)]).astype(float) for of in (pairs.step, pairs.change))
        g = gradients[-1]
        np.testing.assert_allclose(found, np.stack([S @ Y[-1], S @ g], axis=1), **close)
        np.testing.assert_allclose(pairs.along(g, rows), S @ g, **close)
        np.testing.assert_allclose(pairs.changes_along(g, rows), Y @ g, **close)
        reduced = -(g + shares @ Y)
        np.testing.assert_allclose(pairs.reduced(g, shares), reduced, rtol=rtol, atol=20 * rtol)
        turned, along, curvature = pairs.reduced_and_scaled(g, shares, scale, rows - 1)
        np.testing.assert_allclose(turned, reduced * scale, rtol=rtol, atol=20 * rtol)
        np.testing.assert_allclose(along, Y @ (reduced * scale), **close)
        np.testing.assert_allclose(curvature, Y[-1] @ (scale * Y[-1]), **close)
        expected = 0.7 * turned.astype(np.float64) + shares @ S
        slope = pairs.finish(turned, 0.7, shares, g)
        np.testing.assert_allclose(turned, expected, rtol=rtol, atol=20 * rtol)
        np.testing.assert_allclose(slope, turned.astype(np.float64) @ g, rtol=1e-12, atol=1e-12 * size)
        alone, nothing, curvature = pairs.reduced_and_scaled(g, np.zeros(0), scale, None)
        np.testing.assert_allclose(alone, -g * scale, rtol=rtol)
        assert (len(nothing), curvature) == (0, 0.0)


@pytest.mark.parametrize("size", [SHORTEST_SLICE * SLICES + 5, LONG])
@pytest.mark.parametrize(("dtype", "halved"), [(np.float64, False), (np.float32, False), (np.float32, True)])
def test_every_operation_gives_the_same_bytes_on_any_number_of_threads(rng, size, dtype, halved, monkeypatch):
    monkeypatch.setattr(vectors_module, "LONGEST_WHOLE", 0 if halved else 10**9)
    points, gradients = rng.normal(size=(2, 6, size))
    scale, shares, variances = rng.uniform(0.5, 2, size).astype(dtype), rng.normal(size=5), np.array([0.3, 7.0, 2.5])

    def everything(threads):
        with Workers(threads) as workers:
            vectors = HostVectors(blocks_of(size), workers)
            pairs = vectors.pairs(5, dtype)
            found = [
                pairs.put(slot, *points[slot : slot + 2], *gradients[slot : slot + 2], slot + 1) for slot in range(5)
            ]
            turned, along, curvature = pairs.reduced_and_scaled(gradients[-1], shares, scale, 4)
            slope = pairs.finish(turned, 0.7, shares, gradients[-1])
            gradient = gradients[0].copy()
            prior = vectors.add_prior(gradient, points[0], variances)
            linear = vectors.linearised(points[0], gradient, variances, dtype, [scale, turned])
            numbers = [curvature, slope, *prior, linear[1], *linear[2], vectors.dot(points[0], scale)]
            return [
                np.asarray(each).tobytes()
                for each in (*found, turned, along, gradient, linear[0], numbers, vectors.stepped(scale, 0.3, turned))
            ]

    assert everything(1) == everything(2) == everything(5)


@pytest.mark.parametrize("size", [1, 1030, 100_003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_places_beyond_thresholds_are_found_slice_by_slice(rng, size, dtype):
    values = np.round(rng.normal(size=size), 1).astype(dtype)
    thresholds = np.round(rng.uniform(size=size), 1).astype(dtype).astype(np.float64)  # many are met and not passed
    blocks = [slice(0, size // 3), slice(size // 3, size)]
    for threads in (1, 3):
        with Workers(threads) as workers:
            vectors = HostVectors(blocks, workers)
            found = vectors.beyond(values, thresholds)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, np.flatnonzero(np.abs(values.astype(np.float64)) > thresholds))
            assert not len(vectors.beyond(values, np.full(size, 1e3)))
            assert len(vectors.beyond(values, np.full(size, -1.0))) == size


def test_points_of_long_vectors_are_in_single_precision(workers, monkeypatch):
    """Passes are, too: a pass needs no copy of such a point, nor do linearisations that are remembered."""
    vectors = HostVectors([slice(0, 5)], workers)
    start, single = np.ones(5), np.full(5, 0.5, dtype=np.float32)
    assert vectors.stepped(start, 1.0, single).dtype == np.float64
    monkeypatch.setattr(vectors_module, "LONGEST_WHOLE", 0)
    found = vectors.stepped(start, 2.0, single)
    assert found.dtype == np.float32 and (found == 2).all()
    assert vectors.stepped(start, 1.0, start).dtype == np.float64


def test_a_vector_of_another_length_or_type_is_refused(workers):
    vectors = HostVectors([slice(0, 5)], workers)
    for wrong in (np.ones(4), np.ones(6), np.ones(5, dtype=np.int64)):
        with pytest.raises(ValueError, match="a vector of 5 floating-point numbers"):
            vectors.dot(np.ones(5), wrong)
    with pytest.raises((ValueError, BufferError)):
        vectors.add_scaled(np.ones(10)[::2], 1.0, np.ones(5))


def test_vectors_without_parameters(workers):
    vectors = HostVectors([slice(0, 0)], workers)
    nothing = np.zeros(0)
    assert vectors.dot(nothing, nothing) == 0.0
    assert vectors.block_dots(nothing, nothing) == [0.0]
    assert vectors.add_prior(nothing, nothing, np.ones(1)) == (0.0, 0.0)
    assert vectors.linearised(nothing, nothing, np.ones(1), np.float64, [])[1:] == (0.0, [0.0])


def test_shared_tasks_are_all_done_and_errors_come_back():
    with Workers(4) as workers:
        seen = []
        workers.run(seen.append, range(100))
        assert sorted(seen) == list(range(100))

        def fail(number):
            seen.append(number)
            if number == 7:
                raise RuntimeError("seven")

        seen.clear()
        with pytest.raises(RuntimeError, match="seven"):
            workers.run(fail, range(20))
        before = sorted(seen)
        assert set(range(8)) <= set(before)
        time.sleep(0.02)
        assert sorted(seen) == before  # nobody is left at work on what the caller may change now
        # Tasks that share tasks: threads that wait for each other would wait for ever.
        workers.run(lambda _: workers.run(seen.append, range(5)), range(8))
        assert len(seen) == len(before) + 40


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


def test_an_array_that_outlives_its_store_keeps_nothing_else():
    tracemalloc.start()
    try:
        buffers, size = Buffers(), LEAST_BYTES // 8
        first, second, third = (buffers.empty(size) for _ in range(3))
        first[:] = 1
        del second, third
        assert tracemalloc.get_traced_memory()[0] > 3 * LEAST_BYTES
        del buffers
        assert tracemalloc.get_traced_memory()[0] < 2 * LEAST_BYTES
        assert first.sum() == size
        del first
        assert tracemalloc.get_traced_memory()[0] < LEAST_BYTES
    finally:
        tracemalloc.stop()


def test_vectors_of_a_million_parameters_have_few_pairs():
    for dtype in (np.float32, np.float64):
        for size in (1, 50_000, 100_000, 200_000, 1 << 18, 1 << 24):
            count = lbfgs.most_pairs(size, dtype)
            assert FEWEST_PAIRS <= count <= lbfgs.MOST_PAIRS
            least = FEWEST_PAIRS * size * np.dtype(dtype).itemsize
            assert 2 * count * size * np.dtype(dtype).itemsize <= max(lbfgs.PAIR_BYTES, 2 * least)


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
        found = own.adjoint(None, R, workers, before, None)
    assert found is before
    np.testing.assert_allclose(found, A.T @ R, rtol=rtol, atol=rtol)


def test_threads_never_share_a_buffer():
    """Threads wait at each call inside of `Buffers`, so that others look for an array at that moment."""
    buffers, size = Buffers(), LEAST_BYTES // 8

    def wait(frame, event, argument) -> None:
        if frame.f_globals.get("__name__") == Buffers.__module__:
            time.sleep(1e-4)

    def work(number: int) -> bool:
        good = True
        for _ in range(30):
            mine = buffers.empty((2, size // 2))[:, ::4096]  # a view alone is in use
            mine[:] = number
            time.sleep(2e-4)
            good &= bool((mine == number).all())
        return good

    threading.setprofile(wait)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(4)))
    finally:
        threading.setprofile(None)
