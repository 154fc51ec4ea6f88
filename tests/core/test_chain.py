"""Forward-backward and Viterbi against enumeration, and where scaling alone would fail."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from kcrf_core.chains import chain
from kcrf_core.errors import NumericError


def random_chain(rng, T, Y, scale=1.0, per_position=False):
    shape = (T, Y, Y) if per_position else (Y, Y)
    edges = chain.Edges(scale * rng.normal(size=shape), scale * rng.normal(size=Y), scale * rng.normal(size=Y))
    return scale * rng.normal(size=(T, Y)), edges


def check_against_enumeration(scores, edges, rtol=1e-10):
    T = len(scores)
    found = chain.marginals(scores, edges, np.array([0, T]))
    log_z, node, edge, best = oracle.enumerate_chain(
        scores.astype(np.float64), edges.transitions, edges.start, edges.end
    )
    np.testing.assert_allclose(found.log_z[0], log_z, rtol=rtol)
    np.testing.assert_allclose(found.node, node, rtol=rtol, atol=rtol)
    expected = edge if edges.transitions.ndim == 3 else edge.sum(axis=0)
    np.testing.assert_allclose(found.edge, expected, rtol=rtol, atol=rtol)
    path, score = chain.viterbi(scores, edges, np.array([0, T]))
    assert tuple(path) == best
    np.testing.assert_allclose(
        score[0],
        oracle.path_score(scores.astype(np.float64), edges.transitions, edges.start, edges.end, best),
        rtol=rtol,
    )


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("Y", [1, 2, 3, 5])
@pytest.mark.parametrize("T", [1, 2, 3, 5])
def test_agrees_with_enumeration(rng, T, Y, per_position):
    for scale in (0.1, 1.0, 10.0):
        check_against_enumeration(*random_chain(rng, T, Y, scale, per_position))


def test_single_precision_scores(rng):
    scores, edges = random_chain(rng, 4, 3)
    check_against_enumeration(scores.astype(np.float32), edges, rtol=2e-6)


def test_sequences_do_not_see_each_other(rng):
    offsets = np.array([0, 3, 4, 9, 11])
    scores, edges = random_chain(rng, 11, 3)
    weights = rng.random(4)
    whole = chain.marginals(scores, edges, offsets, weights)
    total = np.zeros((3, 3))
    for s in range(4):
        part = slice(offsets[s], offsets[s + 1])
        alone = chain.marginals(scores[part], edges, np.array([0, offsets[s + 1] - offsets[s]]))
        np.testing.assert_array_equal(whole.node[part], alone.node)
        np.testing.assert_array_equal(whole.log_z[s], alone.log_z[0])
        total += weights[s] * alone.edge
    np.testing.assert_allclose(whole.edge, total, rtol=1e-13)


@pytest.mark.parametrize("per_position", [False, True])
def test_huge_potentials(rng, per_position):
    """Potentials of +-700 in any mixture: scaling underflows, the log-space fallback does not."""
    for _ in range(30):
        T, Y = 4, 3
        shape = (T, Y, Y) if per_position else (Y, Y)
        edges = chain.Edges(
            rng.choice([-700.0, 0.0, 700.0], shape),
            rng.choice([-700.0, 700.0], Y),
            rng.choice([-700.0, 700.0], Y),
        )
        scores = rng.choice([-700.0, 700.0], (T, Y)) + rng.normal(size=(T, Y))
        check_against_enumeration(scores, edges, rtol=1e-9)


def test_path_that_only_the_end_allows():
    """The forward pass has all but given a label up when the end demands it."""
    edges = chain.Edges(np.array([[0.0, -800.0], [-800.0, 0.0]]), np.zeros(2), np.array([-3000.0, 0.0]))
    scores = np.zeros((3, 2))
    scores[0] = [500.0, -900.0]
    check_against_enumeration(scores, edges, rtol=1e-9)


def test_forbidden_transitions(rng):
    """Minus infinity is a potential like any other, as long as a path is left."""
    scores, edges = random_chain(rng, 5, 3)
    edges.transitions[0, 1] = edges.transitions[2, 2] = -np.inf
    edges.start[2] = -np.inf
    check_against_enumeration(scores, edges)
    found = chain.marginals(scores, edges, np.array([0, 5]))
    assert found.edge[0, 1] == 0 and found.node[0, 2] == 0


def test_no_path_left_is_an_error():
    edges = chain.Edges(np.full((2, 2), -np.inf), np.zeros(2), np.zeros(2))
    with pytest.raises(NumericError, match="forbidden"):
        chain.marginals(np.zeros((2, 2)), edges, np.array([0, 2]))
    with pytest.raises(NumericError):
        chain.viterbi(np.zeros((2, 2)), edges, np.array([0, 2]))


def test_nan_scores_are_an_error():
    scores = np.zeros((3, 2))
    scores[1, 0] = np.nan
    with pytest.raises(NumericError, match="overflow"):
        chain.marginals(scores, chain.Edges.zeros(2), np.array([0, 3]))


def test_long_sequence(rng):
    """100,000 positions: log Z neither overflows nor drifts, marginals stay normalised."""
    T, Y = 100_000, 3
    scores, edges = random_chain(rng, T, Y, scale=5.0)
    found = chain.marginals(scores, edges, np.array([0, T]))
    np.testing.assert_allclose(found.node.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.edge.sum(), T - 1, rtol=1e-12)
    # d log Z / d scores = marginals: a shift of one label's scores by h changes log Z by h sum_t p.
    shifted = scores.copy()
    shifted[:, 1] += 1e-6
    moved = chain.marginals(shifted, edges, np.array([0, T])).log_z[0]
    np.testing.assert_allclose((moved - found.log_z[0]) / 1e-6, found.node[:, 1].sum(), rtol=1e-4)


def test_adding_to_all_labels_changes_no_marginal(rng):
    """Lemma 12: cliques over x alone are irrelevant."""
    scores, edges = random_chain(rng, 6, 4)
    moved = scores + rng.normal(scale=50, size=(6, 1))
    before = chain.marginals(scores, edges, np.array([0, 6]))
    after = chain.marginals(moved, edges, np.array([0, 6]))
    np.testing.assert_allclose(after.node, before.node, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(after.edge, before.edge, rtol=1e-11, atol=1e-14)


def test_ties_go_to_the_smaller_label():
    path, _ = chain.viterbi(np.zeros((4, 3)), chain.Edges.zeros(3), np.array([0, 4]))
    assert path.tolist() == [0, 0, 0, 0]


def test_path_scores(rng):
    offsets = np.array([0, 1, 4])
    scores, edges = random_chain(rng, 4, 3)
    labels = np.array([2, 0, 1, 1], dtype=np.int32)
    found = chain.path_scores(scores, edges, offsets, labels)
    for s in range(2):
        part = slice(offsets[s], offsets[s + 1])
        expected = oracle.path_score(scores[part], edges.transitions, edges.start, edges.end, labels[part])
        np.testing.assert_allclose(found[s], expected, rtol=1e-12)


@pytest.mark.parametrize("offsets", [[0, 2], [1, 3], [0, 2, 1, 3], [0, 4]])
def test_inconsistent_offsets_never_reach_the_core(offsets):
    with pytest.raises(ValueError, match="offsets"):
        chain.marginals(np.zeros((3, 2)), chain.Edges.zeros(2), np.array(offsets))


def test_labels_out_of_range_never_reach_the_core():
    with pytest.raises(ValueError, match="labels"):
        chain.path_scores(np.zeros((2, 2)), chain.Edges.zeros(2), np.array([0, 2]), np.array([0, 2]))


# ----------------------------------------------------------------------------- tangent


def marginals_by_enumeration(scores, edges):
    _, node, edge, _ = oracle.enumerate_chain(scores, edges.transitions, edges.start, edges.end)
    return node, edge if edges.transitions.ndim == 3 else edge.sum(axis=0)


def moved(scores, edges, d_scores, d_edges, step):
    return scores + step * d_scores, chain.Edges(
        edges.transitions + step * d_edges.transitions,
        edges.start + step * d_edges.start,
        edges.end + step * d_edges.end,
    )


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("Y", [1, 2, 4])
@pytest.mark.parametrize("T", [1, 2, 3, 5])
def test_tangent_agrees_with_differences(rng, T, Y, per_position):
    for scale in (0.3, 3.0):
        scores, edges = random_chain(rng, T, Y, scale, per_position)
        d_scores, d_edges = random_chain(rng, T, Y, 1.0, per_position)
        change = chain.tangent(scores, edges, np.array([0, T]), d_scores, d_edges)
        d_node, d_edge = change.node, change.edge
        step = 1e-5
        above = marginals_by_enumeration(*moved(scores, edges, d_scores, d_edges, step))
        below = marginals_by_enumeration(*moved(scores, edges, d_scores, d_edges, -step))
        np.testing.assert_allclose(d_node, (above[0] - below[0]) / (2 * step), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(d_edge, (above[1] - below[1]) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("per_position", [False, True])
def test_tangent_in_log_space(rng, per_position):
    """Where scaling fails, the fallback gives the derivative; forbidden transitions stay at zero."""
    for _ in range(20):
        T, Y = 4, 3
        scores, edges = random_chain(rng, T, Y, 1.0, per_position)
        scores += rng.choice([-700.0, 700.0], (T, Y))
        edges.transitions[..., 0, 1] = -np.inf
        d_scores, d_edges = random_chain(rng, T, Y, 1.0, per_position)
        change = chain.tangent(scores, edges, np.array([0, T]), d_scores, d_edges)
        d_node, d_edge = change.node, change.edge
        step = 1e-5
        above = marginals_by_enumeration(*moved(scores, edges, d_scores, d_edges, step))
        below = marginals_by_enumeration(*moved(scores, edges, d_scores, d_edges, -step))
        np.testing.assert_allclose(d_node, (above[0] - below[0]) / (2 * step), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(d_edge, (above[1] - below[1]) / (2 * step), rtol=1e-5, atol=1e-7)
        assert (d_edge[..., 0, 1] == 0).all()


def test_tangent_weights_and_sequences(rng):
    offsets = np.array([0, 3, 4, 9])
    scores, edges = random_chain(rng, 9, 3)
    d_scores, d_edges = random_chain(rng, 9, 3)
    weights = rng.random(3)
    whole = chain.tangent(scores, edges, offsets, d_scores, d_edges, weights)
    total = np.zeros((3, 3))
    for s in range(3):
        part = slice(offsets[s], offsets[s + 1])
        local = np.array([0, offsets[s + 1] - offsets[s]])
        own = chain.tangent(scores[part], edges, local, d_scores[part], d_edges)
        np.testing.assert_array_equal(whole.node[part], own.node)
        total += weights[s] * own.edge
    np.testing.assert_allclose(whole.edge, total, rtol=1e-12)


def test_tangent_of_a_long_sequence(rng):
    """Derivatives of marginals sum to zero at every one of 100,000 positions: nothing drifts."""
    T, Y = 100_000, 3
    scores, edges = random_chain(rng, T, Y)
    d_scores, d_edges = random_chain(rng, T, Y)
    change = chain.tangent(scores, edges, np.array([0, T]), d_scores, d_edges)
    d_node, d_edge = change.node, change.edge
    np.testing.assert_allclose(d_node.sum(axis=1), 0, atol=1e-12)
    assert abs(d_edge.sum()) < 1e-7
    step = 1e-5
    above = chain.marginals(*moved(scores, edges, d_scores, d_edges, step), np.array([0, T]))
    below = chain.marginals(*moved(scores, edges, d_scores, d_edges, -step), np.array([0, T]))
    np.testing.assert_allclose(d_node, (above.node - below.node) / (2 * step), rtol=1e-5, atol=1e-8)


def test_nan_among_scores_is_found_by_viterbi(rng):
    """Also where other labels of the position have scores, which comparisons prefer."""
    scores, edges = random_chain(rng, 6, 3)
    scores[4, 1] = np.nan
    with pytest.raises(NumericError):
        chain.viterbi(scores, edges, np.array([0, 3, 6]))
    chain.viterbi(scores[:3], edges, np.array([0, 3]))
