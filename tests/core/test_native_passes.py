"""Products, sums and passes without the interpreter: against NumPy, and against the way through it, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core import Workers
from kcrf_core.chains import NODE, Problem
from kcrf_core.kernels import Inputs, PolynomialKernel
from kcrf_core.maps import native
from kcrf_core.maps.explicit import ExplicitMap
from kcrf_core.maps.heads import PivotHead
from kcrf_core.maps.reduced import KernelRows, ReducedMap, pivot_triangle
from kcrf_core.maps.repeated_maps import RepeatedMap
from kcrf_core.objective import Engine, ObjectiveTerm, Partition
from kcrf_core.objective.inverse_powers import inverse_power
from kcrf_core.system import Team

TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (7, 3, 2), (300, 17, 5), (700, 333, 26), (513, 41, 9), (260, 50, 70), (9, 8, 130)]
)
def test_dense_products_are_those_of_numpy(rng, dtype, shape):
    n, M, C = shape
    values, weights = rng.normal(size=(n, M)).astype(dtype), rng.normal(size=(M, C)).astype(dtype)
    errors, before = rng.normal(size=(n, C)).astype(dtype), rng.normal(size=(n, C)).astype(dtype)
    exact, size = values.astype(np.float64) @ weights, np.abs(values) @ np.abs(weights) + 1
    own, found = native.dense(values, C, native.padded(weights, np.dtype(dtype))), []
    for threads in (1, 2, 5):
        team = Team(threads)
        out, added = np.full((n, C), np.nan, dtype=dtype), before.copy()
        native.all_scores(team, own, n, out, True)
        native.all_scores(team, own, n, added, False)
        sums = native.all_sums(team, own, errors)
        assert (np.abs(out - exact) <= TOLERANCE[dtype] * size).all()
        np.testing.assert_array_equal(added, before + out)
        np.testing.assert_allclose(
            sums[:, :C], values.T.astype(np.float64) @ errors, atol=TOLERANCE[dtype] * 40 * n**0.5
        )
        assert not sums[:, C:].any()
        # A row has the same bits in any company.
        alone = np.empty((1, C), dtype=dtype)
        last = native.dense(values[-1:], C, native.padded(weights, np.dtype(dtype)))
        native.all_scores(team, last, 1, alone, True)
        np.testing.assert_array_equal(alone, out[-1:])
        team.close()
        found.append((out.tobytes(), added.tobytes(), sums.tobytes()))
    assert len(set(found)) == 1


@pytest.mark.parametrize("filled", [0, native.LOWER, native.UPPER])
@pytest.mark.parametrize("size", [1, 5, 64, 65, 200])
def test_thin_products_with_matrices_of_any_layout(rng, filled, size):
    matrix, X, less = rng.normal(size=(size, size)), rng.normal(size=(size, 7)), rng.normal(size=(size, 7))
    matrix = {0: matrix, native.LOWER: np.tril(matrix), native.UPPER: np.triu(matrix)}[filled]
    team, out = Team(3), np.full((size, 7), np.nan)
    for layout in (matrix, np.asfortranarray(matrix), np.pad(matrix, 2)[2:-2, 2:-2]):
        native.product(team, layout, X, out, filled)
        np.testing.assert_allclose(out, matrix @ X, atol=1e-12)
        native.product(team, layout, X, out, filled, less)
        np.testing.assert_allclose(out, less - matrix @ X, atol=1e-12)
    team.close()
    with pytest.raises(ValueError, match="closely"):
        native.product(Team(1), np.zeros((8, 8))[::2, ::2], X[:4] if size >= 4 else np.zeros((4, 7)), np.empty((4, 7)))


def test_what_does_not_fit_is_refused(rng):
    own = native.dense(np.zeros((5, 3)), 4, native.padded(np.zeros((3, 4)), np.dtype(np.float64)))
    with pytest.raises(ValueError, match="fit"):
        native.dense(np.zeros((5, 3)), 4, np.zeros((3, 4 + 64)))
    with pytest.raises(ValueError, match="fit"):
        native.all_scores(Team(1), own, 5, np.zeros((4, 4)), True)
    with pytest.raises(ValueError, match="fit"):
        native.all_sums(Team(1), own, np.zeros((5, 3)))
    with pytest.raises(ValueError, match="fit"):
        native.all_sums(Team(1), own, np.zeros((5, 4), dtype=np.float32))


@pytest.mark.parametrize("shift", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("power", [0.5, 0.65])
@pytest.mark.parametrize("m", [1, 40])
def test_inverse_powers_are_those_by_eigenvectors(rng, m, power, shift):
    vectors, _ = np.linalg.qr(rng.normal(size=(m, m)))
    squares = np.concatenate([np.zeros(m // 2), np.logspace(-4, 5, m - m // 2)])  # half of them are zero
    matrix = (vectors * squares) @ vectors.T
    found = []
    for threads in (1, 3):
        with Workers(threads) as workers:
            found.append(inverse_power(matrix, shift, power, workers))
    np.testing.assert_array_equal(*found)
    ratios = np.diagonal(vectors.T @ found[0] @ vectors) * (squares + shift) ** power
    assert (np.abs(ratios - 1) < 0.04).all()


def problem(rng, Y, sequences=700):
    lengths = rng.integers(0, 7, sequences)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    labels = rng.integers(0, Y, offsets[-1]).astype(np.int32)
    return Problem(labels, offsets, rng.random(sequences) + 0.5, Y)


def maps(rng, N, workers, dtype):
    """A map of kernel values, one with sparse and real columns, and one whose inputs recur."""
    codes, real = rng.integers(0, 9, (N, 2)).astype(np.int32), rng.normal(size=(N, 3))
    inputs, memory = Inputs(codes, np.array([9, 9]), real, None, np.zeros(N)), workers.memory
    kernel, pivots = PolynomialKernel(2, 1.0, 1.0, 1.0), inputs.take(slice(20))
    head = PivotHead(pivot_triangle(kernel, pivots, workers), np.linspace(1, 0, 21), memory)
    rows = KernelRows.of(inputs, kernel, pivots, memory, dtype)
    reduced = ReducedMap(rows, head, kernel.diagonal(inputs))
    few = inputs.take(slice(N // 3))
    group = np.concatenate([np.arange(len(few)), rng.integers(0, len(few), N - len(few))])
    repeated = ReducedMap(KernelRows.of(few, kernel, pivots, memory, dtype), head, kernel.diagonal(few))
    return [reduced, ExplicitMap.of(inputs, dtype), RepeatedMap(repeated, group, workers)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Y", [2, 3, 26])
def test_a_pass_gives_the_same_bits_with_and_without_the_interpreter(Y, dtype):
    """For any number of threads and any memory: where values do not fit, the interpreter is needed."""
    found = []
    for threads, memory in ((1, None), (1, 0), (3, None), (16, None), (2, 100_000)):
        rng = np.random.default_rng(5)
        with Workers(threads, memory) as workers:
            own = problem(rng, Y)
            terms = [ObjectiveTerm(NODE, 1.0, each) for each in maps(rng, own.positions, workers, dtype)]
            engine = Engine.of(Partition(own, terms, workers, dtype))
            theta = rng.normal(size=engine.vectors.size) / 10
            engine.evaluate(theta)  # kernel values are there from now on
            likelihood, gradient = engine.evaluate(theta)
            found.append((likelihood, gradient.tobytes()))
            native = [each.dense_rows(np.dtype(dtype)) is not None for each in (term.map for term in terms)]
            assert native[0] == (memory is None)
    assert len(set(found)) == 1


def test_members_of_a_team_do_every_item_once_and_can_be_called_from_many_threads(rng):
    """Sums of what threads that come at the same time have asked for are right."""
    values = rng.normal(size=(4000, 30))
    with Workers(4) as workers:
        expected, out = values @ np.ones((30, 3)), np.empty((40, 4000, 3))
        workers.run(lambda i: native.product(workers.team, values, np.ones((30, 3)), out[i]), range(40))
    np.testing.assert_allclose(out, np.broadcast_to(expected, out.shape), atol=1e-11)
    assert Workers(4).team.threads == 1  # outside of a block nobody waits for work
