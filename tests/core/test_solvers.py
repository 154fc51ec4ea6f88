"""Bounds from several points, nested columns, the metric, and what solvers do with them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from kcrf_core.chains import EDGE, NODE, Problem
from kcrf_core.kernels import PolynomialKernel
from kcrf_core.kernels.plain import RBFKernel
from kcrf_core.maps import ExplicitMap, KeptPlaces, ReducedMap, pivot_choice as basis
from kcrf_core.objective import Objective, ObjectiveTerm
from kcrf_core.objective.solvers import (
    CERTIFIED,
    INTERRUPTED,
    NATS_PER_1000,
    PASSES,
    PRUNED,
    SOLVERS,
    Run,
    Tolerance,
    moved,
    nested,
)
from kcrf_core.objective.solvers.bundle import POINTS, Bundle, best_combination
from kcrf_core.objective.solvers.certificate import FitCertificate, Proof
from kcrf_core.objective.solvers.initial_inverse import (
    EDGES_BESIDE_MATRIX,
    LEAST_SHARE,
    MATRIX_POWER,
    POSITIONS_PER_COLUMN,
    POWER,
    Diagonal,
    InitialInverse,
    Preconditioner,
)
from kcrf_core.objective.solvers.metric import BlockMetric, leading_columns
from kcrf_core.objective.solvers.run import Stop
from problems import on_threads, random_inputs, random_offsets


def random_objective(rng, workers, Y, sequences, kernel=None, size=None, dtype=np.float64, longest=4):
    """Node scores by a reduced map for a kernel, by an explicit one without; and transitions."""
    offsets = random_offsets(rng, sequences, longest)
    problem = Problem(rng.integers(0, Y, offsets[-1]).astype(np.int32), offsets, rng.random(sequences) + 0.5, Y)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    feature_map = ExplicitMap.of(inputs, dtype)
    if kernel is not None:
        chosen = (
            basis.full_basis(inputs, kernel)
            if size is None
            else basis.choose_pivots("random", inputs, kernel, size, rng, workers, np.float64)
        )
        pivots = inputs.take(chosen.rows)
        feature_map = ReducedMap.of(inputs, kernel, pivots, chosen.curve / chosen.trace, workers, dtype)
    variances = rng.choice([0.1, 1.0, 10.0], 2)
    terms = [ObjectiveTerm(NODE, variances[0], feature_map), ObjectiveTerm(EDGE, variances[1])]
    return on_threads(problem, terms, workers, dtype)


@pytest.mark.parametrize("cases", [25, pytest.param(100, marks=pytest.mark.slow)])
def test_bundles_never_bound_above_the_optimum(rng, workers, cases):
    """Many convex cases: points anywhere, and points on the way to the optimum."""
    for _ in range(cases):
        objective = random_objective(rng, workers, int(rng.integers(2, 4)), 4)
        best = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-10, 5000))
        bundle = Bundle()
        for scale in (1.0, 0.3, 0.1, 0.1, 0.03, 0.01, 0.01):
            theta = best.theta + scale * rng.normal(size=objective.size)
            found = objective.evaluate(theta)
            bound = bundle.add(objective, theta, found)
            if bound is None:
                assert found.lower < 0.5 * found.value
                continue
            assert bound.value >= found.lower - 1e-9 * abs(found.value)  # a combination, so no worse than one alone
            assert bound.proven(objective) < bound.value <= best.value * (1 + 1e-12)
            assert len(bound.parts) <= POINTS


def test_best_combination_against_a_grid(rng):
    grid = np.array([(a, b, 1 - a - b) for a in np.linspace(0, 1, 41) for b in np.linspace(0, 1 - a, 41)])
    for _ in range(50):
        root = rng.normal(size=(3, 4))
        constants, gram = rng.normal(size=3), root @ root.T
        shares, value = best_combination(constants, gram)
        assert (shares >= 0).all() and np.isclose(shares.sum(), 1, rtol=1e-12)
        on_grid = grid @ constants - np.einsum("ni,ij,nj->n", grid, gram, grid) / 2
        assert value >= on_grid.max() - 1e-8


def test_leading_columns_are_the_map_of_the_first_pivots(rng, workers):
    inputs = random_inputs(rng, 40, 2, 3)
    kernel = PolynomialKernel(2, 0.2, 1.0, 1.0)
    chosen = basis.choose_pivots("greedy", inputs, kernel, 9, rng, workers, np.float64)

    def of(count):
        pivots = inputs.take(chosen.rows[:count])
        return ReducedMap.of(inputs, kernel, pivots, chosen.curve[: count + 1] / chosen.trace, workers, np.float64)

    whole, few, leading = of(9), of(4), of(9).leading(4)
    phi = whole.features(workers)
    np.testing.assert_allclose(leading.features(workers), phi[:, :4], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(few.features(workers), phi[:, :4], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(leading.column_squares(), whole.column_squares()[:4], rtol=1e-12)
    W, out = rng.normal(size=(9, 2)), np.zeros((40, 2))
    whole.add_scores(whole.prepare(W, np.dtype(np.float64)), slice(0, 40), out)
    np.testing.assert_allclose(out, phi @ W, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("Y", [2, 3])
def test_beginning_on_a_part_ends_at_the_same_optimum(rng, workers, Y, dtype, monkeypatch):
    monkeypatch.setattr(nested, "FEWEST_COLUMNS", 2)
    objective = random_objective(rng, workers, Y, 60, RBFKernel(0.3), 30, dtype)
    part = nested.narrowed(objective)
    assert part.terms[0].rows == 6
    sizes = []
    found = SOLVERS["auto"](
        objective, np.zeros(objective.size), Run(1e-6, 2000, observe=lambda progress: sizes.append(progress.work))
    )
    assert sizes[0] == pytest.approx(6 / 30, rel=1e-12)  # a pass over a fifth of the columns counts as that
    reference = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-6, 2000))
    assert found.reason == reference.reason == CERTIFIED
    np.testing.assert_allclose(found.value, reference.value, rtol=2e-6)


def test_part_and_whole_agree_on_the_objective(rng, workers, monkeypatch):
    """Zeros for the other columns leave P as it is: interrupted there, a point of the whole comes back."""
    monkeypatch.setattr(nested, "FEWEST_COLUMNS", 2)
    objective = random_objective(rng, workers, 3, 40, RBFKernel(0.3), 30)
    seen = []
    run = Run(1e-9, 100, observe=lambda progress: seen.append(progress.value), interrupted=lambda: len(seen) >= 6)
    found = SOLVERS["auto"](objective, np.zeros(objective.size), run)
    assert found.reason == INTERRUPTED and np.isfinite(found.lower)
    np.testing.assert_allclose(found.value, min(seen), rtol=1e-12)
    np.testing.assert_allclose(objective.evaluate(found.theta).value, found.value, rtol=1e-12)


@pytest.mark.parametrize("Y", [2, 4])
def test_metric_is_the_inverse_of_the_mean_block(rng, workers, Y, monkeypatch):
    """(v Phi^T Phi + I / sigma^2)^-1 on leading columns, v the variance of labels; a diagonal beside it."""
    monkeypatch.setattr("kcrf_core.objective.solvers.metric.POSITIONS_PER_COLUMN", 1000)  # all positions
    monkeypatch.setattr("kcrf_core.objective.solvers.metric.MOST_COLUMNS", 5)
    objective = random_objective(rng, workers, Y, 12, RBFKernel(0.3), 9)
    blocks, run = objective.hessian_blocks(rng.normal(size=objective.size)), Run(1e-3, 10)
    metric = BlockMetric(blocks, leading_columns(objective, run))
    (node, edge), (m, C) = objective.blocks, (5, objective.terms[0].columns)
    phi, weights = objective.terms[0].map.features(workers)[:, :m], objective.problem.position_weights()
    variance, precision = blocks.variance_share * (1 - 1 / Y) / Y, 1 / objective.sigma2[0]
    curvature = variance * (phi * weights[:, None]).T @ phi + np.eye(m) * precision
    diagonal = blocks.variance_share * (objective.initial_curvature()[node] - precision) + precision
    vector = rng.normal(size=objective.size)
    found, rows = metric(vector), vector[: m * C].reshape(m, C)
    np.testing.assert_allclose(curvature @ found[: m * C].reshape(m, C), rows, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((diagonal * found[node])[m * C :], vector[node][m * C :], rtol=1e-8)
    np.testing.assert_allclose(blocks.small(1) @ found[edge], vector[edge], rtol=1e-8, atol=1e-10)
    assert run.work > 0


@pytest.mark.parametrize("Y", [2, 4])
def test_metric_is_symmetric_and_positive(rng, workers, Y):
    objective = random_objective(rng, workers, Y, 30, RBFKernel(0.3), 12)
    run = Run(1e-3, 10)
    metric = BlockMetric(objective.hessian_blocks(np.zeros(objective.size)), leading_columns(objective, run))
    dense = np.array([metric(unit) for unit in np.eye(objective.size)])
    np.testing.assert_allclose(dense, dense.T, rtol=1e-8, atol=1e-10)
    assert np.linalg.eigvalsh((dense + dense.T) / 2).min() > 0


@pytest.mark.parametrize("name", list(SOLVERS))
def test_books_are_kept(rng, workers, name):
    """Without pivots work is passes and products, and blocks on top of them; every step takes at least a pass."""
    objective = random_objective(rng, workers, 3, 20)
    found = SOLVERS[name](objective, np.zeros(objective.size), Run(1e-5, 500))
    assert found.reason == CERTIFIED
    assert 1 <= found.steps < found.passes
    assert found.passes + found.products <= found.work
    if name == "lbfgs":
        assert found.work == found.passes
    few = SOLVERS[name](objective, np.zeros(objective.size), Run(1e-12, 6))
    assert few.reason == PASSES


def test_primal_and_dual_agree_at_degree_one(rng, workers):
    """The linear kernel as features with L-BFGS, and as a full kernel map with the paper's blocks."""
    offsets = random_offsets(rng, 40, 5)
    problem = Problem(rng.integers(0, 3, offsets[-1]).astype(np.int32), offsets, np.ones(40), 3)
    inputs = random_inputs(rng, problem.positions, 2, 2)
    # Linear, and a constant: the polynomial kernel of degree one.
    kernel = PolynomialKernel(1, 1.0, 1.0, 1.0)
    chosen = basis.full_basis(inputs, kernel)
    full = ReducedMap.of(
        inputs, kernel, inputs.take(chosen.rows), chosen.curve / chosen.trace, workers, np.dtype(np.float64)
    )
    with_one = replace(inputs, real=np.hstack([inputs.real, np.ones((len(inputs), 1))]))
    found = []
    for feature_map, solver in ((ExplicitMap.of(with_one, np.float64), "lbfgs"), (full, "block-jacobi")):
        objective = on_threads(problem, [ObjectiveTerm(NODE, 2.0, feature_map), ObjectiveTerm(EDGE, 3.0)], workers)
        result = SOLVERS[solver](objective, np.zeros(objective.size), Run(1e-7, 2000))
        found.append((result.value, objective.errors(result.theta)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-3)


def test_a_run_that_goes_on_counts_all_of_it_and_forgets_what_was_proven(rng, workers):
    """A larger problem has a lower optimum: bounds of the smaller one do not hold for it."""
    whole = random_objective(rng, workers, 3, 40, RBFKernel(0.5), 60)
    part = Objective(whole.engine.narrowed({0: 20}), whole.sigma2)
    run = Run(1e-4, 500)
    small = SOLVERS["lbfgs"](part, np.zeros(part.size), run)
    share = part.pass_size / whole.pass_size
    run.go_on(share)
    large = SOLVERS["lbfgs"](whole, whole.vectors.widened(small.theta, part.vectors), run)
    assert large.lower <= large.value < small.lower and large.reason == CERTIFIED
    assert large.passes > small.passes and large.steps > small.steps
    assert large.work >= small.work * share + large.passes - small.passes


def test_the_first_guess_turns_to_the_eigenvectors_of_the_columns(rng, workers):
    """A power of v Phi^T Phi + I / sigma^2 on the pivots, of the diagonal elsewhere."""
    objective = random_objective(rng, workers, 9, 26, RBFKernel(0.5), 20)
    term, N = objective.terms[0], objective.problem.positions
    m, C, Y = term.rows, 9, 9
    assert POSITIONS_PER_COLUMN * m >= N  # so that no position is left out
    run = Run(1e-4, 500)
    found = InitialInverse(objective, run).at(np.zeros(objective.size))
    assert isinstance(found, Preconditioner) and run.work > 0
    phi, weights = objective.terms[0].map.features(workers), objective.problem.position_weights()
    curvature = (phi * weights[:, None]).T @ phi * (1 - 1 / Y) / Y + np.eye(m) / objective.sigma2[0]
    values, vectors = np.linalg.eigh(curvature)
    vector = rng.normal(size=objective.size)
    out = found(vector)
    # A power has the eigenvectors of the matrix, and nearly the power's eigenvalues.
    before, after = (vectors.T @ each[: m * C].reshape(m, C) for each in (vector, out))
    np.testing.assert_allclose(after, values[:, None] ** -MATRIX_POWER * before, rtol=0.04)
    counts = objective.problem.clique_counts(1).ravel() + 0.5
    share, pairs = counts / counts.sum(), counts.sum() - 0.5 * Y * Y
    edges = objective.initial_curvature()[m * C :]
    edges[: Y * Y] = pairs * share * (1 - share) + 1 / objective.sigma2[1]
    edges = EDGES_BESIDE_MATRIX * edges**MATRIX_POWER
    np.testing.assert_allclose(out[m * C :], vector[m * C :] / edges, rtol=1e-12)


def test_few_positions_are_not_worth_eigenvectors(rng, workers):
    objective = random_objective(rng, workers, 2, 12, RBFKernel(0.5), 30)
    assert objective.engine.handles[0].terms[0].map.size > 20  # or they would not be in question
    found = InitialInverse(objective, Run(1e-4, 500)).at(np.zeros(objective.size))
    assert isinstance(found, Diagonal)
    np.testing.assert_allclose(1 / found.inverse, objective.initial_curvature() ** POWER, rtol=1e-12)


@pytest.mark.parametrize("solver", ["lbfgs", "auto"])
def test_turned_guesses_lead_to_the_same_optimum(rng, workers, monkeypatch, solver):
    objective = random_objective(rng, workers, 5, 60, RBFKernel(0.5), 20)
    assert isinstance(InitialInverse(objective, Run(1e-4, 500)).at(np.zeros(objective.size)), Preconditioner)
    turned = SOLVERS[solver](objective, np.zeros(objective.size), Run(1e-8, 2000))
    monkeypatch.setattr("kcrf_core.objective.solvers.initial_inverse.FEWEST_COLUMNS", objective.size)
    straight = SOLVERS[solver](objective, np.zeros(objective.size), Run(1e-8, 2000))
    assert turned.reason == straight.reason == CERTIFIED
    np.testing.assert_allclose(turned.value, straight.value, rtol=2e-8)


def smooth_series(rng, workers, sigma2, sequences=7, frames=1400, columns=32, Y=5, sparse=0):
    """P of signals that are seen through a window, and what is seen there, [N, 5 columns].

    Columns have low frequencies; labels depend on them and on noise.
    """
    t = np.arange(frames)[:, None] / frames
    series = []
    for _ in range(sequences):
        waves = [f(2 * np.pi * k * t) @ rng.normal(size=(1, columns)) for k in range(1, 41) for f in (np.cos, np.sin)]
        series.append(sum(wave / np.sqrt(1 + i // 2) for i, wave in enumerate(waves)))
    whole = np.concatenate(series) / np.concatenate(series).std(axis=0)
    labels = (whole @ rng.normal(size=(columns, Y)) + 1.5 * rng.gumbel(size=(len(whole), Y))).argmax(axis=1)
    padded = [np.pad(one / one.std(axis=0), ((2, 2), (0, 0))) for one in np.split(whole, sequences)]
    seen = np.concatenate([np.hstack([one[k : k + frames] for k in range(5)]) for one in padded])
    words = scipy.sparse.csr_array(np.eye(max(sparse, 1))[rng.integers(0, max(sparse, 1), len(whole))][:, :sparse])
    problem = Problem(labels.astype(np.int32), np.arange(sequences + 1) * frames, np.ones(sequences), Y)
    own = ExplicitMap(words, seen, np.float32)
    terms = [ObjectiveTerm(NODE, sigma2, own), ObjectiveTerm(EDGE, sigma2)]
    return on_threads(problem, terms, workers, np.float32), seen


@pytest.mark.parametrize("sigma2", [0.5, 5.0, 50.0])
def test_smooth_columns_are_certified_within_200_passes(rng, workers, sigma2):
    objective, _ = smooth_series(rng, workers, sigma2)
    result = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-3, 200))
    assert result.reason == CERTIFIED and result.passes < 100


def test_real_columns_beside_words_and_with_some_weights_alone(rng, workers):
    """Their rows come last in a block; where not all of their places have weights, nothing is turned."""
    objective, phi = smooth_series(rng, workers, 1.0, sequences=3, frames=100, columns=4, Y=3, sparse=7)
    (term, _), D = objective.terms, 7 + 5 * 4
    assert term.real == 20 and term.rows == D
    theta, vector = rng.normal(size=(2, objective.size))
    found = InitialInverse(objective, Run(1e-4, 500)).at(theta)(vector)
    p = objective.errors(theta) + np.eye(3)[objective.problem.labels]
    values, vectors = np.linalg.eigh((phi * (p * (1 - p)).mean(axis=1)[:, None]).T @ phi + np.eye(20))
    real = slice(7 * 3, D * 3)
    before, after = (vectors.T @ each[real].reshape(20, 3) for each in (vector, found))
    np.testing.assert_allclose(after, values[:, None] ** -MATRIX_POWER * before, rtol=0.04)
    best = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-6, 2000))
    newton = SOLVERS["newton"](objective, np.zeros(objective.size), Run(1e-6, 2000))
    np.testing.assert_allclose(best.value, newton.value, rtol=2e-6)

    own = objective.engine.handles[0].terms[0]
    some = np.flatnonzero(np.arange(D * 3) % 11)  # not every place of W
    terms = [replace(own, places=KeptPlaces(some, D, 3)), objective.engine.handles[0].terms[1]]
    part = on_threads(objective.problem, terms, workers, np.float32)
    assert part.terms[0].real == 0
    assert isinstance(InitialInverse(part, Run(1e-4, 500)).at(np.zeros(part.size)), Diagonal)
    kept = replace(own, places=KeptPlaces(np.arange(4, D * 3), D, 3))  # all places of real columns
    part = on_threads(objective.problem, [kept, terms[1]], workers, np.float32)
    assert part.terms[0].real == 20
    result = SOLVERS["auto"](part, np.zeros(part.size), Run(1e-4, 500))
    assert result.reason == CERTIFIED and result.value >= best.lower


def test_what_a_run_in_single_precision_learned_is_proven_in_double(rng, workers):
    """The bundle is not thrown away: its points are evaluated once more, and prove more than the best one alone."""
    objective = random_objective(rng, workers, 5, 80, PolynomialKernel(2, 0.5, 1.0, 1.0), 30, np.float32)
    best = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-5, 5000))
    gained = []
    for tolerance in (3e-2, 1e-2, 3e-3):
        result = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(tolerance, 500))
        assert result.reason == CERTIFIED and result.lower <= best.value
        gained.append(result.lower - objective.proven(result.theta).lower)
        stopped = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(tolerance / 10, result.steps + 1))
        assert stopped.reason == PASSES and stopped.gap < 2 * tolerance
    assert min(gained) >= 0 and sum(gain > 0 for gain in gained) >= 2


def test_runs_that_prove_nothing_take_no_pass_in_double_precision(rng, workers, monkeypatch):
    objective = random_objective(rng, workers, 5, 80, PolynomialKernel(2, 0.5, 1.0, 1.0), 30, np.float32)
    monkeypatch.setattr(Objective, "in_double", None)
    result = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-2, 500, proves=False))
    assert result.reason == CERTIFIED and result.lower == -np.inf


def test_the_diagonal_is_taken_anew_where_labels_have_become_certain(rng, workers):
    """That of the Hessian at a point for explicit maps, label by label, and never less than a share of that at zero."""
    Y, offsets = 3, random_offsets(rng, 60, 12)
    problem = Problem(rng.integers(0, Y, offsets[-1]).astype(np.int32), offsets, np.ones(60), Y)
    features = ExplicitMap.of(random_inputs(rng, problem.positions, 6, 0), np.float64)
    terms = [ObjectiveTerm(NODE, 100.0, features), ObjectiveTerm(EDGE, 100.0)]
    objective = on_threads(problem, terms, workers, np.float64)
    theta, vector = 2 * rng.normal(size=(2, objective.size))
    first, later = (InitialInverse(objective, Run(1e-4, 500)).at(at) for at in (np.zeros(objective.size), theta))
    guess = objective.initial_curvature()
    np.testing.assert_allclose(first(vector), vector * guess**-POWER, rtol=1e-6)
    p, node = objective.errors(theta) + np.eye(Y)[problem.labels], objective.blocks[0]
    squares = [features.column_squares(p[:, y] * (1 - p[:, y])) for y in range(Y)]
    expected = np.maximum(np.stack(squares, axis=1).ravel() + 1 / 100, LEAST_SHARE * guess[node])
    assert (expected < guess[node] / 2).any()
    np.testing.assert_allclose(later(vector)[node], vector[node] * expected**-POWER, rtol=1e-6)
    assert (later(vector) * vector > 0).all()
    result = SOLVERS["auto"](objective, np.zeros(objective.size), Run(1e-9, 500))
    assert result.reason == CERTIFIED and result.work > result.passes  # the diagonal was taken on the way


def test_a_gap_in_nats_is_enough_where_it_is_more_than_a_share(rng, workers):
    objective = random_objective(rng, workers, 3, 10)
    start = np.zeros(objective.size)
    tight, nats = SOLVERS["lbfgs"](objective, start, Run(1e-6, 500)), 0.05 * objective.evaluate(start).value
    loose = SOLVERS["lbfgs"](objective, start, Run(Tolerance(1e-6, nats), 500))
    assert tight.reason == loose.reason == CERTIFIED and loose.passes < tight.passes
    assert loose.gap > 1e-6 and loose.value - loose.lower <= nats
    both = SOLVERS["lbfgs"](objective, start, Run(Tolerance(1e-6, 1e-9), 500))
    assert (both.value, both.passes) == (tight.value, tight.passes)
    assert Tolerance.of(1e-3, objective.problem) == Tolerance(1e-3)
    positions = objective.problem.position_weights().sum()
    np.testing.assert_allclose(Tolerance.of(None, objective.problem).nats, NATS_PER_1000 * positions / 1000, rtol=1e-12)
    away = loose.theta + 0.1 * rng.normal(size=objective.size)
    assert moved(loose, objective, away, Tolerance(1e-6, 1e6), PRUNED).reason == CERTIFIED
    assert moved(loose, objective, away, Tolerance(1e-6), PRUNED).reason == PRUNED


def test_a_proof_that_nearly_fails_is_tried_again_soon(rng, workers, monkeypatch):
    """Passes say 0.0009 and double precision 0.0013: with what was missing, and a little more, it should do."""
    problem = Problem(rng.integers(0, 2, 10).astype(np.int32), np.array([0, 10]), np.ones(1), 2)
    feature_map = ExplicitMap.of(random_inputs(rng, 10, 1, 1), np.float32)
    objective = on_threads(problem, [ObjectiveTerm(NODE, 1.0, feature_map)], workers, np.float32)
    run, gaps, proofs = Run(1e-3, 100), [], []
    monkeypatch.setattr(FitCertificate, "gap", lambda self: gaps[-1])

    def prove(*_):
        proofs.append(gaps[-1])
        return Proof(SimpleNamespace(value=1000 * (1 + gaps[-1] + 0.0004)), 1000.0, 0.0)

    monkeypatch.setattr(FitCertificate, "prove", prove)
    with pytest.raises(Stop):
        for gap in (0.0011, 0.0009, 0.0007, 0.00055, 0.00045):
            gaps.append(gap)
            run.evaluate(objective, objective.vectors.zeros())
    assert proofs == [0.0009, 0.00045]
