"""Systems with a triangle: products with inverted blocks against substitution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from kcrf_core import Workers
from kcrf_core.maps import triangles
from kcrf_core.maps.triangles import Triangle
from kcrf_core.system import factorise, solve_factorised


def random_triangle(rng, M):
    K = rng.normal(size=(M, 2 * M + 1))
    return np.linalg.cholesky(K @ K.T)


@pytest.mark.parametrize("block", [1024, 40, 7])
@pytest.mark.parametrize("M", [1, 63, 200])
@pytest.mark.parametrize("transposed", [False, True])
def test_against_substitution(rng, workers, monkeypatch, block, M, transposed):
    monkeypatch.setattr(triangles, "BLOCK", block)
    L = random_triangle(rng, M)
    B = rng.normal(size=(M, 5))
    expected = solve_triangular(L, B, lower=True, trans="T" if transposed else "N")
    for values in (L, np.asfortranarray(L), L + np.triu(rng.normal(size=(M, M)), 1)):  # above the diagonal is no L
        out = np.full((M, 5), np.nan)
        triangle = Triangle(values, workers.memory)
        assert triangle.solve(B, workers, transposed, out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(triangle.solve(B, workers, transposed), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("transposed", [False, True])
def test_threads_give_the_same_bytes(rng, monkeypatch, transposed):
    monkeypatch.setattr(triangles, "BLOCK", 200)
    L, B = random_triangle(rng, 500), rng.normal(size=(500, 26))
    found = []
    for threads in (1, 2, 3, 16):
        with Workers(threads) as workers:
            found.append(Triangle(L, workers.memory).solve(B, workers, transposed).tobytes())
    assert len(set(found)) == 1


def test_as_near_as_substitution_where_pivots_are_nearly_alike(rng, workers):
    """A condition number of 1e7: errors are judged in extended precision."""
    M = 150
    x = np.sort(rng.random(M))
    K = np.exp(-((x[:, None] - x) ** 2)) + 1e-13 * np.eye(M) + 1e-4 * np.exp(-50 * np.abs(x[:, None] - x))
    L = np.linalg.cholesky(K)
    B = rng.normal(size=(M, 3))
    wide = L.astype(np.longdouble)
    exact = np.zeros((M, 3), dtype=np.longdouble)
    for i in range(M):
        exact[i] = (B[i] - wide[i, :i] @ exact[:i]) / wide[i, i]
    own = np.abs(Triangle(L, workers.memory).solve(B, workers) - exact).max()
    substituted = np.abs(solve_triangular(L, B, lower=True) - exact).max()
    assert own <= 10 * substituted


def test_lapack_in_place_refuses_rows_that_are_not_close(rng):
    from kcrf_core.system import in_place

    matrix = rng.normal(size=(6, 6))
    with pytest.raises(ValueError, match="closely"):
        in_place.substitute(np.eye(3), matrix[:3, ::2])
    with pytest.raises(ValueError, match="one after the other"):
        in_place.factorise(matrix[::-1])
    triangle, right = np.tril(matrix) + 6 * np.eye(6), rng.normal(size=(6, 4))
    rows = np.ascontiguousarray(right.T)
    expected = np.linalg.solve(triangle, right)
    in_place.substitute(triangle, right)
    in_place.substitute_rows(triangle, rows)
    np.testing.assert_allclose(right, expected, atol=1e-12)
    np.testing.assert_allclose(rows.T, expected, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factorised_on_threads(rng, dtype):
    d = 600
    root = rng.normal(size=(d, d))
    matrix = (root @ root.T / d + np.eye(d)).astype(dtype)
    expected, rows = np.linalg.cholesky(matrix.astype(np.float64)), rng.normal(size=(20, d))
    found = []
    for threads in (1, 3):
        with Workers(threads) as workers:
            triangle = matrix.copy()
            assert factorise(triangle, workers)
            found.append(triangle)
            solved = solve_factorised(triangle, rows, workers)
            assert solved.dtype == dtype
            np.testing.assert_allclose(solved @ matrix, rows, atol=1e-4 if dtype == np.float32 else 1e-11)
            found.append(solved)
            for wrong in (10, 300, 599):  # in the first block, in between, and in the last one
                spoilt = matrix.copy()
                spoilt[wrong, wrong] = -1
                assert not factorise(spoilt, workers)
            none = np.zeros((0, 0), dtype)
            assert factorise(none, workers) and solve_factorised(none, rows[:, :0], workers).shape == (20, 0)
    for one, three in zip(found[:2], found[2:], strict=True):
        np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(np.tril(found[0]), expected, atol=1e-5 if dtype == np.float32 else 1e-12)
