"""P and its gradient against enumeration and finite differences; maps against each other; Lemma 9."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import oracle
from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import PolynomialKernel, gram
from kcrf_core.kernels.plain import LinearKernel, RBFKernel
from kcrf_core.maps import ExplicitMap, ReducedMap, pivot_choice as basis
from kcrf_core.objective import ObjectiveTerm, certificates
from kcrf_core.objective.solvers import CERTIFIED, PASSES, SOLVERS, Run
from kcrf_core.system import Workers
from problems import on_threads, random_inputs, random_offsets


def random_problem(rng, Y, sequences=8, weighted=False, longest=4):
    offsets = random_offsets(rng, sequences, longest)
    labels = rng.integers(0, Y, offsets[-1]).astype(np.int32)
    weights = rng.random(sequences) * 2 if weighted else np.ones(sequences)
    return Problem(labels, offsets, weights, Y)


def first_order(problem, maps, sigma2, edge_sigma2, workers, dtype=np.float64):
    """P of node terms with these maps, and an edge term unless its sigma2 is None."""
    terms = [ObjectiveTerm(NODE, *each) for each in zip(sigma2, maps, strict=True)]
    terms += [] if edge_sigma2 is None else [ObjectiveTerm(EDGE, edge_sigma2)]
    return on_threads(problem, terms, workers, dtype)


def explicit(problem, inputs, workers, sigma2=2.0, edge_sigma2=3.0, dtype=np.float64):
    return first_order(problem, [ExplicitMap.of(inputs, dtype)], [sigma2], edge_sigma2, workers, dtype)


def reduced_map(inputs, kernel, workers, chosen=None, dtype=np.float64):
    chosen = chosen or basis.full_basis(inputs, kernel)
    pivots = inputs.take(chosen.rows)
    return ReducedMap.of(inputs, kernel, pivots, chosen.curve / chosen.trace, workers, dtype)


def solve(objective, tolerance=1e-10):
    return SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(tolerance, 5000))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("Y", [2, 3, 4])
def test_value_against_enumeration(rng, workers, Y, weighted):
    problem = random_problem(rng, Y, weighted=weighted)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    objective = explicit(problem, inputs, workers)
    theta = rng.normal(size=objective.size)
    W = objective.weights_of(theta, 0)
    if Y == 2:
        W = W @ np.array([[1.0, -1.0]]) / np.sqrt(2)
    edges = objective.engine.potentials(theta)
    expected = oracle.objective(
        oracle.one_hot(inputs),
        W,
        (edges.transitions, edges.start, edges.end),
        problem.labels,
        problem.offsets,
        2.0,
        3.0,
        problem.weights,
    )
    np.testing.assert_allclose(objective.evaluate(theta).value, expected, rtol=1e-11)


@pytest.mark.parametrize("kind", ["explicit", "reduced", "both"])
@pytest.mark.parametrize("Y", [2, 3])
def test_gradient_against_finite_differences(rng, workers, Y, kind):
    problem = random_problem(rng, Y, weighted=True)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    maps = []
    if kind in ("explicit", "both"):
        maps.append(ExplicitMap.of(inputs, np.float64))
    if kind in ("reduced", "both"):
        maps.append(reduced_map(inputs, RBFKernel(0.3), workers))
    objective = first_order(problem, maps, [0.7, 1.9][: len(maps)], 3.0, workers)
    theta = 0.5 * rng.normal(size=objective.size)
    gradient = objective.evaluate(theta).gradient
    for _ in range(12):
        direction = rng.normal(size=objective.size)
        step = 1e-5
        slope = (
            objective.evaluate(theta + step * direction).value - objective.evaluate(theta - step * direction).value
        ) / (2 * step)
        np.testing.assert_allclose(gradient @ direction, slope, rtol=1e-7, atol=1e-7)
    for i in rng.choice(objective.size, 15, replace=False):
        unit = np.zeros(objective.size)
        unit[i] = 1e-5
        slope = (objective.evaluate(theta + unit).value - objective.evaluate(theta - unit).value) / 2e-5
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-6, atol=1e-7)


def test_linear_kernel_with_a_full_basis_is_the_explicit_map(rng, workers):
    """Same objective, same marginals: the map is only another basis of the same space."""
    problem = random_problem(rng, 3, 12)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    primal = explicit(problem, inputs, workers)
    dual = first_order(problem, [reduced_map(inputs, LinearKernel(), workers)], [2.0], 3.0, workers)
    by_primal, by_dual = solve(primal), solve(dual)
    assert by_primal.reason == by_dual.reason == CERTIFIED
    np.testing.assert_allclose(by_dual.value, by_primal.value, rtol=1e-9)
    np.testing.assert_allclose(dual.errors(by_dual.theta), primal.errors(by_primal.theta), rtol=1e-3, atol=1e-4)


def test_one_score_column_equals_two(rng, workers):
    """Two labels: the objective with one column v has the optimum of the one with two (Lemma 13)."""
    problem = random_problem(rng, 2, 20)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    one = solve(explicit(problem, inputs, workers), 1e-12)
    features = oracle.one_hot(inputs)
    D = features.shape[1]

    def two_columns(flat):
        edges = flat[2 * D : 2 * D + 4].reshape(2, 2), flat[2 * D + 4 : 2 * D + 6], flat[2 * D + 6 :]
        W = flat[: 2 * D].reshape(D, 2)
        return oracle.objective(features, W, edges, problem.labels, problem.offsets, 2.0, 3.0)

    # From our optimum, mapped to two columns, the two-column objective is the same and cannot be improved on.
    objective = explicit(problem, inputs, workers)
    W = objective.weights_of(one.theta, 0) @ np.array([[1.0, -1.0]]) / np.sqrt(2)
    start = np.concatenate([W.ravel(), one.theta[objective.blocks[-1]]])
    np.testing.assert_allclose(two_columns(start), one.value, rtol=1e-9)
    gradient = np.array([(two_columns(start + h) - two_columns(start - h)) / 2e-5 for h in 1e-5 * np.eye(len(start))])
    np.testing.assert_allclose(gradient, 0, atol=2e-5)


def test_rows_of_weights_sum_to_zero_at_every_iterate(rng, workers):
    """Lemma 13: from zero, all iterates keep the labels' weights centred by themselves."""
    problem = random_problem(rng, 4, 12)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    objective = explicit(problem, inputs, workers)
    for passes in (2, 5, 10):
        theta = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-12, passes)).theta
        np.testing.assert_allclose(objective.weights_of(theta, 0).sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("Y", [2, 4])
def test_length_one_is_kernel_logistic_regression(rng, workers, Y):
    """Remark 7: without neighbours the model is kernel logistic regression, here in its dual form."""
    N, sigma2 = 25, 1.7
    problem = Problem(rng.integers(0, Y, N).astype(np.int32), np.arange(N + 1), np.ones(N), Y)
    inputs = random_inputs(rng, N, 2, 3)
    kernel = RBFKernel(0.2)
    found = solve(first_order(problem, [reduced_map(inputs, kernel, workers)], [sigma2], None, workers), 1e-12)
    K = gram(kernel, inputs, inputs)
    eye = np.eye(Y)[problem.labels]

    def dual_objective(flat):  # f = K alpha, |f|^2 = tr(alpha^T K alpha)
        alpha = flat.reshape(N, Y)
        F = K @ alpha
        top = F.max(axis=1, keepdims=True)
        log_z = top[:, 0] + np.log(np.exp(F - top).sum(axis=1))
        value = (alpha * F).sum() / (2 * sigma2) - (F[np.arange(N), problem.labels] - log_z).sum()
        return value, (K @ (alpha / sigma2 + np.exp(F - log_z[:, None]) - eye)).ravel()

    reference = minimize(
        dual_objective, np.zeros(N * Y), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}
    )
    np.testing.assert_allclose(found.value, reference.fun, rtol=1e-8)


@pytest.mark.parametrize("kernel", [RBFKernel(0.3), PolynomialKernel(2, 0.3, 1.0, 0.5)])
def test_lower_bounds_are_never_above_the_optimum(rng, workers, kernel):
    """Lemma 9 at random points of random problems."""
    for _ in range(15):
        problem = random_problem(rng, int(rng.integers(2, 4)), 6)
        inputs = random_inputs(rng, problem.positions, 2, 2)
        maps = [reduced_map(inputs, kernel, workers), ExplicitMap.of(inputs, np.float64)]
        objective = first_order(problem, maps, rng.choice([0.1, 1.0, 10.0], 2), 5.0, workers)
        best = solve(objective)
        assert best.lower <= best.value
        for scale in (0.0, 0.1, 1.0):
            point = objective.evaluate(best.theta + scale * rng.normal(size=objective.size))
            assert point.lower <= best.value * (1 + 1e-12)
            assert point.value >= best.lower


def test_threads_and_chunks_give_the_same_bytes(rng):
    problem = random_problem(rng, 3, 3000)
    inputs = random_inputs(rng, problem.positions, 3, 2, 4)
    found = []
    for threads in (1, 2, 3, 16):
        with Workers(threads) as workers:
            maps = [ExplicitMap.of(inputs, np.float32), None]
            chosen = basis.choose_pivots("random", inputs, RBFKernel(0.3), 20, np.random.default_rng(0), workers)
            maps[1] = reduced_map(inputs, RBFKernel(0.3), workers, chosen, np.float32)
            objective = first_order(problem, maps, [1.0, 1.0], 1.0, workers, np.float32)
            assert len(objective.engine.handles[0].chunks) > 1
            found.append(objective.evaluate(np.full(objective.size, 0.01)))
    assert len({point.value for point in found}) == 1
    assert len({point.gradient.tobytes() for point in found}) == 1


def test_single_precision_is_close_and_the_last_word_is_double(rng, workers):
    problem = random_problem(rng, 3, 200)
    inputs = random_inputs(rng, problem.positions, 3, 2)
    single = explicit(problem, inputs, workers, dtype=np.float32)
    double = explicit(problem, inputs, workers, dtype=np.float64)
    theta = rng.normal(size=single.size)
    a, b = single.evaluate(theta), double.evaluate(theta)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-5)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-3, atol=1e-3)
    found = SOLVERS["lbfgs"](single, np.zeros(single.size), Run(1e-6, 500))
    assert found.reason == CERTIFIED and found.gap <= 1e-6
    best = solve(double, 1e-11).value
    assert found.lower <= best <= found.value * (1 + 1e-12)


def test_maps_agree_with_their_matrices(rng, workers):
    """scores and adjoint of both maps against the dense matrix they stand for; subset against rows of it."""
    inputs = random_inputs(rng, 30, 2, 2, 3)
    kernel = PolynomialKernel(2, 0.2, 1.0, 1.0)
    chosen = basis.choose_pivots("greedy", inputs, kernel, 6, rng, workers, np.float64)
    L = np.linalg.cholesky(gram(kernel, inputs.take(chosen.rows), inputs.take(chosen.rows)))
    phi = np.linalg.solve(L, gram(kernel, inputs, inputs.take(chosen.rows)).T).T
    reduced = reduced_map(inputs, kernel, workers, chosen)
    for feature_map, matrix in ((ExplicitMap.of(inputs, np.float64), oracle.one_hot(inputs)), (reduced, phi)):
        assert feature_map.size == matrix.shape[1]
        W, R = rng.normal(size=(matrix.shape[1], 3)), rng.normal(size=(30, 3))
        out = np.zeros((20, 3))
        feature_map.add_scores(feature_map.prepare(W, np.dtype(np.float64)), slice(5, 25), out)
        np.testing.assert_allclose(out, matrix[5:25] @ W, rtol=1e-9, atol=1e-11)
        partial = feature_map.adjoint_rows(R, slice(0, 30))
        summed = feature_map.adjoint(partial, R, workers, None, None)
        np.testing.assert_allclose(summed, matrix.T @ R, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(feature_map.column_squares(), (matrix**2).sum(axis=0), rtol=1e-6)
        part = feature_map.subset(np.array([3, 7, 7]))
        out = np.zeros((3, 3))
        part.add_scores(part.prepare(W, np.dtype(np.float64)), slice(0, 3), out)
        np.testing.assert_allclose(out, matrix[[3, 7, 7]] @ W, rtol=1e-9, atol=1e-11)
        used = part.used_columns()
        few = part.narrow(used)
        out = np.zeros((3, 3))
        few.add_scores(few.prepare(W[used], np.dtype(np.float64)), slice(0, 3), out)
        np.testing.assert_allclose(out, matrix[[3, 7, 7]] @ W, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(reduced.residual(workers), kernel.diagonal(inputs) - (phi**2).sum(axis=1), atol=1e-9)


def test_outside_estimate_against_its_formula(rng, workers):
    problem = random_problem(rng, 3, 10)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    kernel = RBFKernel(0.3)
    chosen = basis.choose_pivots("greedy", inputs, kernel, 4, rng, workers, np.float64)
    feature_map = reduced_map(inputs, kernel, workers, chosen)
    objective = first_order(problem, [feature_map], [2.0], 1.0, workers)
    errors = objective.errors(rng.normal(size=objective.size))
    expected = 2.0 / 2 * (chosen.residual @ (errors**2).sum(axis=1))
    np.testing.assert_allclose(certificates.estimate(errors, feature_map, 2.0, workers), expected, rtol=1e-6)
    assert certificates.estimate(errors, ExplicitMap.of(inputs, np.float64), 2.0, workers) == 0


@pytest.mark.parametrize("Y", [2, 3])
def test_outside_bound_covers_what_more_pivots_bring(rng, workers, Y, monkeypatch):
    """Corollary 10: the bound equals its definition, and with the gap in the span it is never below the real gain."""
    monkeypatch.setattr(certificates, "BLOCK", 7)
    kernel = RBFKernel(0.3)
    for _ in range(8):
        problem = random_problem(rng, Y, 10, weighted=True)
        inputs = random_inputs(rng, problem.positions, 2, 2)
        chosen = basis.choose_pivots("random", inputs, kernel, 5, rng, workers, np.float64)
        feature_map = reduced_map(inputs, kernel, workers, chosen)
        few = first_order(problem, [feature_map], [2.0], 1.0, workers)
        all_pivots = first_order(problem, [reduced_map(inputs, kernel, workers)], [2.0], 1.0, workers)
        found, best = solve(few, 1e-4), solve(all_pivots)
        errors = few.errors(found.theta)
        K, B = gram(kernel, inputs, inputs), gram(kernel, inputs, inputs.take(chosen.rows))
        outside = K - B @ np.linalg.solve(B[chosen.rows], B.T)
        bound = certificates.bound(errors, feature_map, inputs, kernel, 2.0, workers)
        np.testing.assert_allclose(bound, np.sum(errors * (outside @ errors)), rtol=1e-6)
        gain = found.value - best.value
        assert gain <= bound + (found.value - found.lower)


def test_passes_are_a_limit(rng, workers):
    problem = random_problem(rng, 3, 30)
    objective = explicit(problem, random_inputs(rng, problem.positions, 3, 2), workers)
    found = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-12, 4))
    assert found.reason == PASSES and found.passes == 4
    assert found.gap > 1e-12


def test_interruption_keeps_the_best_so_far(rng, workers):
    problem = random_problem(rng, 3, 30)
    objective = explicit(problem, random_inputs(rng, problem.positions, 3, 2), workers)
    seen = []
    run = Run(1e-12, 100, observe=lambda progress: seen.append(progress.value), interrupted=lambda: len(seen) >= 5)
    found = SOLVERS["lbfgs"](objective, np.zeros(objective.size), run)
    assert found.reason == "interrupted"
    assert found.value == min(seen)


def test_empty_sequences_change_nothing(rng, workers):
    problem = random_problem(rng, 3, 6)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    offsets = np.sort(np.concatenate([[0, problem.positions], problem.offsets, problem.offsets[2:3]]))
    padded = Problem(problem.labels, offsets, np.ones(len(offsets) - 1), 3)
    a, b = (explicit(p, inputs, workers) for p in (problem, padded))
    theta = rng.normal(size=a.size)
    np.testing.assert_allclose(b.evaluate(theta).gradient, a.evaluate(theta).gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b.evaluate(theta).value, a.evaluate(theta).value, rtol=1e-12)


@pytest.mark.parametrize("Y", [2, 3])
def test_hessian_products(rng, workers, Y):
    """Against differences of the gradient, symmetric, and positive: the prior alone gives 1/sigma2."""
    problem = random_problem(rng, Y, 10, weighted=True)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    maps = [ExplicitMap.of(inputs, np.float64), reduced_map(inputs, RBFKernel(0.3), workers)]
    objective = first_order(problem, maps, [0.7, 1.9], 3.0, workers)
    theta = 0.5 * rng.normal(size=objective.size)
    for _ in range(5):
        a, b = rng.normal(size=(2, objective.size))
        Ha, Hb = objective.hessian_product(theta, a), objective.hessian_product(theta, b)
        step = 1e-5
        above, below = objective.evaluate(theta + step * a), objective.evaluate(theta - step * a)
        np.testing.assert_allclose(Ha, (above.gradient - below.gradient) / (2 * step), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(a @ Hb, b @ Ha, rtol=1e-10)
        assert a @ Ha >= (a @ a) / 3.0


@pytest.mark.each_choice
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Y", [2, 4])
def test_all_solvers_reach_the_same_optimum(rng, workers, Y, dtype):
    """P is strictly convex: there is one optimum, and every solver certifies it."""
    problem = random_problem(rng, Y, 60, weighted=True)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    maps = [ExplicitMap.of(inputs, dtype), reduced_map(inputs, RBFKernel(0.3), workers, dtype=dtype)]
    objective = first_order(problem, maps, [5.0, 2.0], 10.0, workers, dtype)
    found = {name: solver(objective, np.zeros(objective.size), Run(1e-6, 3000)) for name, solver in SOLVERS.items()}
    for result in found.values():
        assert result.reason == CERTIFIED and result.gap <= 1e-6
        assert all(result.lower <= other.value * (1 + 1e-12) for other in found.values())
    values = [result.value for result in found.values()]
    np.testing.assert_allclose(values, values[0], rtol=2e-6)


@pytest.mark.parametrize("name", list(SOLVERS))
def test_every_solver_keeps_to_its_budget(rng, workers, name):
    problem = random_problem(rng, 3, 30)
    objective = explicit(problem, random_inputs(rng, problem.positions, 3, 2), workers)
    found = SOLVERS[name](objective, np.zeros(objective.size), Run(1e-14, 7))
    assert found.reason == PASSES
    assert 7 <= found.passes + found.products <= 8  # a product is followed by the pass that makes use of it


@pytest.mark.parametrize("Y", [2, 3])
def test_blocks_against_the_dense_hessian(rng, workers, Y):
    """Sequences of length one have independent positions: there the blocks are those of the exact Hessian."""
    N = 12
    labels = rng.integers(0, Y, N).astype(np.int32)
    problem = Problem(labels, np.arange(N + 1), rng.random(N) + 0.5, Y)
    inputs = random_inputs(rng, N, 2, 2)
    objective = explicit(problem, inputs, workers)
    theta = rng.normal(size=objective.size)
    dense = np.array([objective.hessian_product(theta, unit) for unit in np.eye(objective.size)])
    blocks = objective.hessian_blocks(theta)
    node, edge = objective.blocks
    for _ in range(3):
        v = rng.normal(size=node.stop)
        np.testing.assert_allclose(blocks.product(0, v), dense[node, node] @ v, rtol=1e-9, atol=1e-11)
    # First and last label are cliques of their own in (30), though here they are the same position.
    exact = dense[edge, edge]
    exact[Y * Y : Y * Y + Y, Y * Y + Y :] = exact[Y * Y + Y :, Y * Y : Y * Y + Y] = 0
    np.testing.assert_allclose(blocks.small(1), exact, rtol=1e-9, atol=1e-11)


def test_edge_block_against_enumeration(rng, workers):
    """(30): the covariance of each pair of labels by itself, summed over positions."""
    problem = random_problem(rng, 3, 5, weighted=True)
    objective = explicit(problem, random_inputs(rng, problem.positions, 2, 2), workers)
    theta = rng.normal(size=objective.size)
    edges = objective.engine.potentials(theta)
    prepared = objective.engine.handles[0].terms[0].map.prepare(objective.weights_of(theta, 0), np.dtype(np.float64))
    scores = np.zeros((problem.positions, 3))
    objective.engine.handles[0].terms[0].map.add_scores(prepared, slice(0, problem.positions), scores)
    expected = np.eye(9) / 3.0
    for s in range(5):
        rows = slice(problem.offsets[s], problem.offsets[s + 1])
        _, _, pairs, _ = oracle.enumerate_chain(scores[rows], edges.transitions, edges.start, edges.end)
        for pair in pairs[1:].reshape(-1, 9):
            expected += problem.weights[s] * (np.diag(pair) - np.outer(pair, pair))
    np.testing.assert_allclose(objective.hessian_blocks(theta).small(1)[:9, :9], expected, rtol=1e-9, atol=1e-12)
