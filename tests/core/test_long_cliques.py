"""P with edge-x and edge2 terms and forbidden transitions: enumeration, differences, solvers at one optimum."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE, Edges, Problem
from kcrf_core.chains.cliques import SEEN_TRANSITIONS
from kcrf_core.kernels.plain import RBFKernel
from kcrf_core.maps import ExplicitMap, ReducedMap, pivot_choice as basis
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, Run
from problems import on_threads, random_inputs, random_offsets

KINDS = {
    "edge-x": (NODE, EDGE_X, EDGE),
    "edge2": (NODE, EDGE, EDGE2),
    "edge2 alone": (NODE, EDGE2),
    "all": (NODE, EDGE_X, EDGE, EDGE2),
}
SIGMA2 = {NODE: 2.0, EDGE_X: 0.7, EDGE: 3.0, EDGE2: 1.5}


def forbidden_edges(Y):
    """Label 1 must not follow label 0, nor begin a sequence."""
    edges = Edges.zeros(Y)
    edges.transitions[0, 1] = edges.start[1] = -np.inf
    return edges


def random_objective(rng, workers, kinds, Y, sequences=8, longest=4, forbid=False):
    offsets = random_offsets(rng, sequences, longest)
    labels = rng.integers(0, Y, offsets[-1]).astype(np.int32)
    if forbid:
        labels[labels == 1] = 0
    problem = Problem(labels, offsets, rng.random(sequences) * 2, Y)
    inputs = random_inputs(rng, problem.positions, 2, 2, 3)
    chosen = basis.full_basis(inputs, RBFKernel(0.3))
    pivots, curve = inputs.take(chosen.rows), chosen.curve / chosen.trace
    maps = {
        NODE: ExplicitMap.of(inputs, np.float64),
        EDGE_X: ReducedMap.of(inputs, RBFKernel(0.3), pivots, curve, workers, np.float64),
    }
    terms = [ObjectiveTerm(kind, SIGMA2[kind], maps.get(kind)) for kind in kinds]
    return on_threads(problem, terms, workers, np.float64, forbidden_edges(Y) if forbid else None)


def dense_map(feature_map, N):
    """Phi [N, D]."""
    phi = np.zeros((N, feature_map.size))
    feature_map.add_scores(feature_map.prepare(np.eye(feature_map.size), np.dtype(np.float64)), slice(0, N), phi)
    return phi


def enumerated(objective, theta):
    """P by enumeration, from the definition."""
    problem, Y, N = objective.problem, objective.problem.label_count, objective.problem.positions
    total = sum((theta[b] ** 2).sum() / (2 * s) for b, s in zip(objective.blocks, objective.sigma2, strict=True))
    scores, pairs = np.zeros((N, Y)), np.zeros((N, Y, Y))
    for j in objective.mapped:
        found = dense_map(objective.engine.handles[0].terms[j].map, N) @ objective.weights_of(theta, j)
        if objective.terms[j].clique is EDGE_X:
            pairs += found.reshape(N, Y, Y)
        else:
            scores += found @ np.array([[1.0, -1.0]]) / np.sqrt(2) if Y == 2 else found
    edges = objective.engine.potentials(theta)
    triples = np.zeros((Y, Y, Y)) if edges.triples is None else edges.triples
    for s in range(len(problem.offsets) - 1):
        rows = slice(problem.offsets[s], problem.offsets[s + 1])
        own = edges.transitions + pairs[rows], edges.start, edges.end
        log_z, *_ = oracle.enumerate_chain(scores[rows], *own, triples)
        total -= problem.weights[s] * (oracle.path_score(scores[rows], *own, problem.labels[rows], triples) - log_z)
    return total


@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("Y", [2, 3])
def test_value_gradient_and_hessian(rng, workers, Y, kinds, forbid):
    objective = random_objective(rng, workers, KINDS[kinds], Y, forbid=forbid)
    theta = 0.5 * rng.normal(size=objective.size)
    found = objective.evaluate(theta)
    np.testing.assert_allclose(found.value, enumerated(objective, theta), rtol=1e-11)
    step = 1e-5
    for _ in range(5):
        a, b = rng.normal(size=(2, objective.size))
        above, below = objective.evaluate(theta + step * a), objective.evaluate(theta - step * a)
        np.testing.assert_allclose(found.gradient @ a, (above.value - below.value) / (2 * step), rtol=1e-6, atol=1e-6)
        Ha, Hb = objective.hessian_product(theta, a), objective.hessian_product(theta, b)
        np.testing.assert_allclose(Ha, (above.gradient - below.gradient) / (2 * step), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(a @ Hb, b @ Ha, rtol=1e-10)
    np.testing.assert_allclose(objective.log_likelihood(theta), found.log_likelihood, rtol=1e-12)


@pytest.mark.each_choice
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("Y", [2, 3])
def test_all_solvers_reach_the_same_optimum(rng, workers, Y, kinds):
    objective = random_objective(rng, workers, KINDS[kinds], Y, sequences=30, forbid=kinds == "all")
    found = [solver(objective, np.zeros(objective.size), Run(1e-6, 3000)) for solver in SOLVERS.values()]
    for result in found:
        assert result.reason == CERTIFIED
        assert all(result.lower <= other.value * (1 + 1e-12) for other in found)
    np.testing.assert_allclose([result.value for result in found], found[0].value, rtol=2e-6)


def test_forbidden_transitions_stay_where_they_are(rng, workers):
    """They have probability zero, so nothing pulls at them but the prior."""
    objective = random_objective(rng, workers, (NODE, EDGE, EDGE2), 3, sequences=20, forbid=True)
    found = SOLVERS["lbfgs"](objective, np.zeros(objective.size), Run(1e-8, 3000))
    edges = objective.engine.handles[0].edges(found.theta)
    assert edges.transitions[0, 1] == 0 and edges.start[1] == 0
    assert (edges.triples[0, 1] == 0).all() and (edges.triples[:, 0, 1] == 0).all()
    assert np.isneginf(objective.engine.potentials(found.theta).transitions[0, 1])


@pytest.mark.parametrize("c", [0.0, 0.2])
def test_weights_of_pairs_that_the_data_lacks_stay_zero(rng, workers, c):
    """Every solver finds the optimum over the others."""
    labels = np.array([0, 1, 1, 0, 1, 2, 2, 0, 1, 2], dtype=np.int32)
    problem = Problem(labels, np.array([0, 3, 7, 10]), np.ones(3), 3)
    feature_map = ExplicitMap.of(random_inputs(rng, 10, 2, 2), np.float64)
    seen = problem.clique_counts(1).ravel() > 0
    terms = [ObjectiveTerm(NODE, 2.0, feature_map, threshold=c), ObjectiveTerm(SEEN_TRANSITIONS, 3.0, threshold=c)]
    objective = on_threads(problem, terms, workers)
    found = [SOLVERS[name] for name in SOLVERS if not c or name in ("auto", "proximal")]
    found = [solver(objective, np.zeros(objective.size), Run(1e-7, 3000)) for solver in found]
    for result in found:
        assert result.reason == CERTIFIED
        assert ((result.theta[objective.blocks[1]] != 0) <= seen).all()
    np.testing.assert_allclose([result.value for result in found], found[0].value, rtol=2e-7)
    # Each parameter that may move is at its optimum: P without an L1 penalty has no slope there.
    at, slope = found[0].theta, objective.evaluate(found[0].theta).gradient
    rest = np.where(at != 0, slope + c * np.sign(at), np.maximum(abs(slope) - c, 0))
    assert abs(rest).max() < 0.01 and (0 < seen.sum() < 9)
    assert (objective.vector({1: np.ones(9)})[objective.blocks[1]] == seen).all()  # of a model to start from, too


def test_blocks_of_edges_that_look_at_the_input(rng, workers):
    """Sequences of two positions have one pair each: there the block is that of the exact Hessian."""
    Y, S = 3, 6
    problem = Problem(rng.integers(0, Y, 2 * S).astype(np.int32), np.arange(0, 2 * S + 1, 2), rng.random(S) + 0.5, Y)
    inputs = random_inputs(rng, 2 * S, 2, 2)
    terms = [ObjectiveTerm(EDGE_X, 2.0, ExplicitMap.of(inputs, np.float64)), ObjectiveTerm(EDGE, 3.0)]
    objective = on_threads(problem, terms, workers)
    theta = rng.normal(size=objective.size)
    dense = np.array([objective.hessian_product(theta, unit) for unit in np.eye(objective.size)])
    blocks = objective.hessian_blocks(theta)
    own, pairs = objective.blocks[0], slice(objective.blocks[1].start, objective.blocks[1].start + Y * Y)
    v = rng.normal(size=own.stop)
    np.testing.assert_allclose(blocks.product(0, v), dense[own, own] @ v, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(blocks.diagonal()[own], dense.diagonal()[own], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(blocks.small(1)[: Y * Y, : Y * Y], dense[pairs, pairs], rtol=1e-9, atol=1e-11)


def test_block_of_triples_is_never_below_the_exact_one(rng, workers):
    """Sequences of three positions have one triple each: diag p is above diag p - p p^T."""
    Y, S = 2, 6
    problem = Problem(rng.integers(0, Y, 3 * S).astype(np.int32), np.arange(0, 3 * S + 1, 3), rng.random(S) + 0.5, Y)
    inputs = random_inputs(rng, 3 * S, 2, 2)
    terms = [ObjectiveTerm(NODE, 2.0, ExplicitMap.of(inputs, np.float64)), ObjectiveTerm(EDGE2, 3.0)]
    objective = on_threads(problem, terms, workers)
    theta = rng.normal(size=objective.size)
    own = objective.blocks[1]
    dense = np.array([objective.hessian_product(theta, unit) for unit in np.eye(objective.size)])[own, own]
    difference = np.diag(objective.hessian_blocks(theta).small(1)) - dense
    assert np.linalg.eigvalsh(difference).min() > -1e-12


def test_a_large_edge_block_is_a_diagonal_above_the_matrix(rng, workers, monkeypatch):
    objective = random_objective(rng, workers, (NODE, EDGE), 3)
    theta = rng.normal(size=objective.size)
    matrix = objective.hessian_blocks(theta).small(1)
    monkeypatch.setattr("kcrf_core.chains.cliques.LARGEST_EDGE_BLOCK", 1)
    diagonal = objective.hessian_blocks(theta).small(1)
    assert diagonal.shape == (len(matrix),)
    assert np.linalg.eigvalsh(np.diag(diagonal) - matrix).min() > -1e-12


def test_settled_positions_are_left_out_of_blocks(rng, workers):
    """What they would add is below what they have left, and fewer rows are gone through."""
    objective = random_objective(rng, workers, (NODE, EDGE), 3, sequences=30)
    theta = 20 * rng.normal(size=objective.size)
    exact, rough = objective.hessian_blocks(theta), objective.hessian_blocks(theta, negligible=1e-3)
    assert exact.share(0) == 1 and rough.share(0) < 0.6
    v = rng.normal(size=objective.blocks[0].stop)
    reach = np.square(dense_map(objective.engine.handles[0].terms[0].map, objective.problem.positions)).sum()
    difference = np.abs(rough.product(0, v) - exact.product(0, v)).max()
    assert 0 < difference < 4e-3 * reach * np.abs(v).max()
    np.testing.assert_allclose(rough.small(1), exact.small(1), atol=4e-3 * objective.problem.positions)
