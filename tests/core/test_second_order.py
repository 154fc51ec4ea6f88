"""Second-order chains against enumeration: log Z, marginals, best labelling, tangent, forbidden pairs, log space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oracle
from kcrf_core.chains import chain
from kcrf_core.errors import NumericError


def random_chain(rng, T, Y, scale=1.0, per_position=False):
    shape = (T, Y, Y) if per_position else (Y, Y)
    parts = [scale * rng.normal(size=size) for size in (shape, Y, Y, (Y, Y, Y))]
    return scale * rng.normal(size=(T, Y)), chain.Edges(*parts)


def potentials(edges):
    return edges.transitions, edges.start, edges.end, edges.triples


def moved(scores, edges, d_scores, d_edges, step):
    parts = (a + step * b for a, b in zip(potentials(edges), potentials(d_edges), strict=True))
    return scores + step * d_scores, chain.Edges(*parts)


def by_enumeration(scores, edges):
    log_z, node, pairs, _ = oracle.enumerate_chain(scores, *potentials(edges))
    if edges.transitions.ndim == 2:
        pairs = pairs.sum(axis=0)
    return log_z, node, pairs, oracle.triple_marginals(scores, *potentials(edges))


def check_marginals(scores, edges, rtol=1e-9, atol=1e-12):
    found = chain.marginals(scores, edges, np.array([0, len(scores)]))
    expected = by_enumeration(scores, edges)
    for got, wanted in zip((found.log_z[0], found.node, found.edge, found.triple), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("Y", [1, 2, 3, 5])
@pytest.mark.parametrize("T", [1, 2, 3, 4, 5])
def test_marginals_against_enumeration(rng, T, Y, per_position):
    for scale in (0.1, 1.0, 5.0):
        check_marginals(*random_chain(rng, T, Y, scale, per_position))


@pytest.mark.parametrize("Y", [1, 2, 3, 5])
@pytest.mark.parametrize("T", [1, 2, 3, 5])
def test_best_labelling_against_enumeration(rng, T, Y):
    for per_position in (False, True):
        scores, edges = random_chain(rng, T, Y, 1.0, per_position)
        path, best = chain.viterbi(scores, edges, np.array([0, T]))
        expected = oracle.enumerate_chain(scores, *potentials(edges))[3]
        assert tuple(path) == expected
        score = oracle.path_score(scores, *potentials(edges)[:3], expected, edges.triples)
        np.testing.assert_allclose(best[0], score, rtol=1e-12)
        np.testing.assert_allclose(
            chain.path_scores(scores, edges, np.array([0, T]), path)[0], score, rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("T", [1, 2, 3, 5])
def test_tangent_against_differences(rng, T, per_position, forbid):
    for shift in (0.0, 700.0):
        scores, edges = random_chain(rng, T, 3, 1.0, per_position)
        scores += shift * rng.choice([-1.0, 1.0], (T, 3))
        if forbid:
            edges.transitions[..., 0, 1] = edges.transitions[..., 2, 2] = -np.inf
        d_scores, d_edges = random_chain(rng, T, 3, 1.0, per_position)
        change = chain.tangent(scores, edges, np.array([0, T]), d_scores, d_edges)
        step = 1e-5
        above = by_enumeration(*moved(scores, edges, d_scores, d_edges, step))
        below = by_enumeration(*moved(scores, edges, d_scores, d_edges, -step))
        for got, a, b in zip((change.node, change.edge, change.triple), above[1:], below[1:], strict=True):
            np.testing.assert_allclose(got, (a - b) / (2 * step), rtol=1e-5, atol=1e-6 if shift else 1e-8)


@pytest.mark.parametrize("per_position", [False, True])
def test_forbidden_pairs(rng, per_position):
    for _ in range(20):
        scores, edges = random_chain(rng, 4, 4, 1.0, per_position)
        edges.transitions[..., rng.random((4, 4)) < 0.3] = -np.inf
        edges.transitions[..., 1, 1] = 0.5  # one labelling stays possible
        check_marginals(scores, edges)
        path, _ = chain.viterbi(scores, edges, np.array([0, 4]))
        assert tuple(path) == oracle.enumerate_chain(scores, *potentials(edges))[3]


@pytest.mark.parametrize("T", [1, 2, 4])
def test_large_potentials_are_done_in_log_space(rng, T):
    for per_position in (False, True):
        scores, edges = random_chain(rng, T, 3, 1.0, per_position)
        scores += rng.choice([-700.0, 700.0], (T, 3))
        edges.triples[rng.random((3, 3, 3)) < 0.5] -= 700
        check_marginals(scores, edges, 1e-7, 1e-9)


def test_no_triples_is_the_first_order_chain(rng):
    scores, edges = random_chain(rng, 50, 4)
    offsets = np.array([0, 1, 1, 3, 20, 50])
    weights = rng.random(5)
    flat = replace(edges, triples=np.zeros((4, 4, 4)))
    first = chain.Edges(edges.transitions, edges.start, edges.end)
    second, expected = (chain.marginals(scores, each, offsets, weights) for each in (flat, first))
    np.testing.assert_allclose(second.node, expected.node, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(second.edge, expected.edge, rtol=1e-10)
    np.testing.assert_allclose(second.log_z, expected.log_z, rtol=1e-12)
    np.testing.assert_array_equal(chain.viterbi(scores, flat, offsets)[0], chain.viterbi(scores, first, offsets)[0])


def test_sequences_and_weights(rng):
    offsets = np.array([0, 3, 4, 9, 11])
    scores, edges = random_chain(rng, 11, 3)
    scores[4:9] += rng.choice([-700.0, 700.0], (5, 3))  # one of them in log space
    d_scores, d_edges = random_chain(rng, 11, 3)
    weights = rng.random(4)
    whole = chain.marginals(scores, edges, offsets, weights)
    change = chain.tangent(scores, edges, offsets, d_scores, d_edges, weights)
    sums = [np.zeros((3, 3)), np.zeros((3, 3, 3)), np.zeros((3, 3)), np.zeros((3, 3, 3))]
    for s in range(4):
        part, local = slice(offsets[s], offsets[s + 1]), np.array([0, offsets[s + 1] - offsets[s]])
        own = chain.marginals(scores[part], edges, local)
        own_change = chain.tangent(scores[part], edges, local, d_scores[part], d_edges)
        np.testing.assert_array_equal(whole.node[part], own.node)
        np.testing.assert_array_equal(change.node[part], own_change.node)
        for total, value in zip(sums, (own.edge, own.triple, own_change.edge, own_change.triple), strict=True):
            total += weights[s] * value
    for got, total in zip((whole.edge, whole.triple, change.edge, change.triple), sums, strict=True):
        np.testing.assert_allclose(got, total, rtol=1e-9, atol=1e-12)


def test_single_precision(rng):
    scores, edges = random_chain(rng, 30, 4)
    offsets = np.array([0, 10, 30])
    single, double = (chain.marginals(scores.astype(kind), edges, offsets) for kind in (np.float32, np.float64))
    assert single.node.dtype == np.float32
    np.testing.assert_allclose(single.node, double.node, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(single.triple, double.triple, rtol=1e-4, atol=1e-6)


def test_a_long_sequence(rng):
    T, Y = 20_000, 3
    scores, edges = random_chain(rng, T, Y)
    found = chain.marginals(scores, edges, np.array([0, T]))
    np.testing.assert_allclose(found.node.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found.triple.sum(), T - 2, rtol=1e-10)
    np.testing.assert_allclose(found.edge.sum(), T - 1, rtol=1e-10)
    change = chain.tangent(scores, edges, np.array([0, T]), *random_chain(rng, T, Y))
    np.testing.assert_allclose(change.node.sum(axis=1), 0, atol=1e-12)


def test_nothing_possible_is_an_error(rng):
    scores, edges = random_chain(rng, 3, 2)
    nowhere = chain.Edges(np.full((2, 2), -np.inf), edges.start, edges.end, edges.triples)
    for call in (
        lambda: chain.marginals(scores, nowhere, np.array([0, 3])),
        lambda: chain.tangent(scores, nowhere, np.array([0, 3]), scores, edges),
        lambda: chain.viterbi(scores, nowhere, np.array([0, 3])),
    ):
        with pytest.raises(NumericError, match="forbidden"):
            call()
    # A sequence of one position needs no pair.
    np.testing.assert_allclose(chain.marginals(scores[:1], nowhere, np.array([0, 1])).node.sum(), 1, rtol=1e-12)
    assert chain.viterbi(scores[:1], nowhere, np.array([0, 1]))[0][0] in (0, 1)
