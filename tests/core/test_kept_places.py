"""Products with weights of which only some places have parameters, and matrices whose columns have one value each."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.maps import CompressedRows, ExplicitMap, KeptPlaces, KeptWeights, RepeatedMap
from kcrf_core.objective import ObjectiveTerm
from problems import on_threads

N, D = 60, 40


def matrix(rng, values):
    """Sparse rows [N, D] with a column and a row that are empty; entries of their own, one for each column, or ones."""
    A = (rng.random((N, D)) < 0.2).astype(np.float64)
    A[:, 7] = A[11] = 0
    if values == "own":
        A *= rng.normal(size=A.shape)
    elif values == "common":
        A *= rng.uniform(0.5, 3, D)
    return A


def places(rng, rows, width):
    """Rows with no place, some, most and all of them."""
    part = rng.choice([0, 0.1, 0.3, 0.9, 1], rows)
    return np.flatnonzero((rng.random((rows, width)) < part[:, None]).ravel())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", ["ones", "common", "own"])
@pytest.mark.parametrize("width", [1, 2, 3, 9, 22, 33, 64, 131])
@pytest.mark.parametrize("real", [0, 3])
def test_products_are_those_with_the_whole_matrix(rng, workers, dtype, values, width, real):
    A, dense = matrix(rng, values), rng.normal(size=(N, real))
    own = ExplicitMap(scipy.sparse.csr_array(A), dense, dtype)
    kept = places(rng, D + real, width)
    block, whole = rng.normal(size=len(kept)), np.zeros((D + real) * width)
    whole[kept] = block
    W, Phi = whole.reshape(D + real, width), np.hstack([A, dense])
    weights = KeptWeights(KeptPlaces(kept, D + real, width), block)
    ready, out = own.prepare(weights, np.dtype(dtype), workers), np.ones((30, width), dtype)
    own.add_scores(ready, slice(20, 50), out)
    near = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(out, 1 + (Phi @ W)[20:50], **near)
    R = rng.normal(size=(N, width)).astype(dtype)
    found = np.full(len(kept), np.nan)
    own.adjoint(own.adjoint_rows(R, slice(0, N)), R, workers, KeptWeights(weights.places, found), None)
    np.testing.assert_allclose(found, (Phi.T @ R.astype(np.float64)).ravel()[kept], **near)


@pytest.mark.parametrize("values", ["ones", "common", "own"])
def test_a_compressed_matrix_is_the_one_it_was_made_of(rng, values):
    A = matrix(rng, values)
    own = CompressedRows.of(scipy.sparse.csr_array(A))
    assert len(own.values) == (np.count_nonzero(A) if values == "own" else 0)
    assert len(own.scale) == (D if values == "common" else 0)
    rows, columns, counts = np.array([50, 3, 3, 11, 0]), np.array([0, 6, 7, 30]), rng.random(N)
    np.testing.assert_allclose(_dense(own), A)
    np.testing.assert_allclose(_dense(own.take(rows)), A[rows])
    np.testing.assert_allclose(_dense(own.narrow(columns)), A[:, columns])
    np.testing.assert_allclose(own.row_squares(), np.square(A).sum(axis=1))
    factors = np.square(own.scale) if len(own.scale) else 1.0
    squares = ExplicitMap(own, np.empty((N, 0)), np.float64).raw_squares(counts)
    np.testing.assert_allclose(squares * factors, counts @ np.square(A))
    turned = own.by_columns()
    ones = np.ones(len(turned.indices)) if not len(turned.values) else turned.values
    back = scipy.sparse.csr_array((ones, turned.indices, turned.indptr), shape=(D, N)).toarray()
    np.testing.assert_allclose(back * (turned.scale[:, None] if len(turned.scale) else 1), A.T)


def _dense(own):
    ones = own.values if len(own.values) else np.ones(len(own.indices))
    found = scipy.sparse.csr_array((ones, own.indices, own.indptr), shape=own.shape).toarray()
    return found * own.scale if len(own.scale) else found


@pytest.mark.parametrize("values", ["ones", "common", "own"])
def test_places_seen_are_those_of_pairs(rng, workers, values):
    A = matrix(rng, values)
    if values == "common":
        A[:, 5] = 0
    stored = scipy.sparse.csr_array(np.where(matrix(np.random.default_rng(3), "ones") > 0, 1.0, A))
    stored.data[::7] = 0  # attributes that rows have with the value zero
    features = np.split(stored.indices, stored.indptr[1:-1])  # of each row
    rows, columns = rng.integers(0, N, 90), rng.integers(0, 5, 90)
    expected = sorted({d * 5 + c for t, c in zip(rows, columns, strict=True) for d in features[t]})
    own = ExplicitMap(stored, np.zeros((N, 0)), np.float64)
    np.testing.assert_array_equal(own.seen_with(rows, columns, 5), expected)
    group = rng.integers(0, N, 2 * N)
    repeated = RepeatedMap(own, group, workers)
    expected = sorted({d * 5 + t % 5 for t in range(2 * N) for d in features[group[t]]})
    np.testing.assert_array_equal(repeated.seen_with(np.arange(2 * N), np.arange(2 * N) % 5, 5), expected)


def test_a_pass_never_lays_out_all_weights(rng, workers, monkeypatch):
    features, Y, positions = 20_000, 30, 400
    indices = rng.integers(0, features, (positions, 4)).astype(np.int32)
    A = scipy.sparse.csr_array(
        (np.ones(4 * positions), indices.ravel(), np.arange(0, 4 * positions + 1, 4)), shape=(positions, features)
    )
    A.sum_duplicates()
    labels = rng.integers(0, Y, positions).astype(np.int32)
    problem = Problem(labels, np.arange(0, positions + 1, 20), np.ones(positions // 20), Y)
    own = ExplicitMap(A, np.zeros((positions, 0)), np.float32)
    kept = own.seen_with(np.arange(positions), labels, Y)
    terms = [ObjectiveTerm(NODE, 2.0, own, KeptPlaces(kept, own.size, NODE.columns(Y))), ObjectiveTerm(EDGE, 2.0)]
    objective = on_threads(problem, terms, workers, np.float32)
    theta = objective.vectors.from_array(rng.normal(size=objective.size))
    expected = objective.in_double().evaluate(theta).value

    def refused(self, block):
        if self.places is not None:
            raise AssertionError("W is laid out")
        return block.reshape(self.rows, self.columns)

    monkeypatch.setattr(ObjectiveTerm, "weights", refused)
    objective.initial_curvature()
    tracemalloc.start()
    found = objective.evaluate(theta)
    proven = objective.proven(theta)
    objective.stored_weights(theta, 0)
    objective.initial_curvature()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.value == pytest.approx(expected, rel=1e-5) and proven.lower <= expected
    assert peak < 4 * features * Y  # in single precision


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


def test_training_on_features_leaves_linear_algebra_alone(tmp_path):
    code = f"""
import sys
from kcrf_core import Workers, fit_encoding, parse_config, read_corpus, train
config = parse_config({{"training": {{"sigma2": 1.0, "observed_features": True}}}})
with Workers(2) as workers:
    corpus = read_corpus("sample_data/pitch_accent.conll").subset(range(20))
    model, report = train(*fit_encoding(config, corpus), config, workers=workers)
model.save({str(tmp_path / "model.npz")!r})
print(report.result.reason, "scipy.linalg" in sys.modules)
"""
    assert run(code) == ["certified", "False"]


def test_a_blas_that_comes_late_is_held_to_one_thread():
    code = """
from threadpoolctl import threadpool_info
from kcrf_core.system import Workers, linear_algebra
with Workers(2):
    linear_algebra.cholesky
    print({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})
"""
    assert run(code) == ["{1}"]
