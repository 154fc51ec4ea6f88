"""Products and sums of rows have the same bits at every place and in any company."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.system import SLAB, row_products, row_squares


def equal(*found):
    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 26, 130])
@pytest.mark.parametrize("length", [1, 5, 64, 301])
def test_products_of_rows_are_the_same_at_every_place(rng, dtype, columns, length, workers):
    rows, factor = rng.normal(size=(3 * SLAB, length)).astype(dtype), rng.normal(size=(length, columns)).astype(dtype)
    whole = row_products(rows, factor)
    np.testing.assert_allclose(whole, rows @ factor, rtol=1e-3, atol=1e-4)
    for first in (1, 2, 3, 5, 11, SLAB - 1, SLAB):
        equal(whole[first:], row_products(rows[first:], factor), row_products(np.asfortranarray(rows[first:]), factor))
    equal(whole[:1], row_products(rows[:1], factor))


@pytest.mark.parametrize("length", [0, 1, 3, 100, 8192, 8193, 20_001])
def test_sums_of_squares_are_the_same_in_any_company(rng, length):
    rows = rng.normal(size=(40, length))
    whole = row_squares(rows)
    np.testing.assert_allclose(whole, (rows**2).sum(axis=1), rtol=1e-12)
    equal(whole, row_squares(np.asfortranarray(rows)), np.concatenate([row_squares(row[None]) for row in rows]))
