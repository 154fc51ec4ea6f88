"""Chains on which scaled messages underflow although what they lose wins in the end, against logarithms throughout."""

from dataclasses import replace

import numpy as np
import pytest

import oracle
from kcrf_core.chains import chain, hold
from kcrf_core.errors import NumericError

KINDS = ("free", "few values", "detour", "drift")


def random_chains(rng, count, T, Y, kind):
    """Scores [B, T, Y], edges [B, T, Y, Y], start and end [B, Y] of `count` chains.

    Potentials up to +-1000, of all sizes, and forbidden transitions of all densities, also none.
    """
    B = count
    size = rng.choice([1.0, 30.0, 300.0, 1000.0], (4, B))
    shapes = (T, Y), (T, Y, Y), (Y,), (Y,)
    F, E, s, e = (
        scale.reshape(B, *[1] * len(shape)) * rng.uniform(-1, 1, (B, *shape))
        for scale, shape in zip(size, shapes, strict=True)
    )
    if kind == "few values":
        F, E, s, e = (rng.choice([-1000.0, -300.0, 0.0, 300.0], part.shape) for part in (F, E, s, e))
    density = rng.choice([0.0, 0.1, 0.3, 0.5, 0.8], B)
    forbidden = rng.random((B, 1, Y, Y)) < density[:, None, None, None]
    E[np.broadcast_to(forbidden, E.shape)] = -np.inf
    for ends in (s, e):
        ends[rng.random(ends.shape) < 0.3 * density[:, None]] = -np.inf
    if kind in ("detour", "drift"):
        # Two groups of labels that never meet, or hardly ever. Both cost about the same in all, one of them at the
        # beginning and at the end, the other in between: on its way each looks hopeless beside the other.
        group = np.arange(Y) < max(1, Y // 2)
        apart = rng.choice([-np.inf, -1000.0], (B, 1, 1, 1), p=[0.8, 0.2])
        E = np.where(group[:, None] == group[None, :], rng.normal(size=(B, T, Y, Y)), apart)
        F, s, e = (rng.normal(size=part.shape) for part in (F, s, e))
        about = rng.uniform(0.99, 1.01, B)
    if kind == "detour":
        door = rng.uniform(300, 1000, (2, B, 2))  # at the start and at the end: potential of the label, score
        dear = about * np.minimum(door.sum(axis=(0, 2)) / max(T - 1, 1), 990)
        E -= dear[:, None, None, None] * (group[:, None] & group)
        for ends, row, cost in ((s, 0, door[0]), (e, T - 1, door[1])):
            ends -= cost[:, :1] * ~group
            F[:, row] -= cost[:, 1:] * ~group
    if kind == "drift":
        inner = (np.arange(T) >= T // 3) & (np.arange(T) < T - T // 3)
        outer_cost = rng.uniform(10, 500, B)
        inner_cost = about * outer_cost * (~inner).sum() / max(inner.sum(), 1)
        F -= np.where(inner[:, None], inner_cost[:, None, None] * group, outer_cost[:, None, None] * ~group)
    return F, E, s, e


def states_of_pairs(F, E, s, e, U):
    """The same chains of second order as chains of first order over pairs of labels, for sequences of two and more."""
    B, T, Y = F.shape
    nodes = (E + F[:, :, None, :])[:, 1:].reshape(B, T - 1, Y * Y)
    first = np.repeat((s + F[:, 0])[:, :, None], Y, axis=2).reshape(B, Y * Y)
    last = np.repeat(e[:, None, :], Y, axis=1).reshape(B, Y * Y)
    meets = np.eye(Y, dtype=bool)[None, :, :, None]  # (i, j) before (j', k): only with j = j'
    steps = np.where(meets, U[:, :, :, None, :], -np.inf).reshape(B, 1, Y * Y, Y * Y)
    return nodes, np.broadcast_to(steps, (B, T - 1, Y * Y, Y * Y)), first, last


def direction_of_pairs(dF, dE, ds, de, dU):
    nodes, steps, first, last = states_of_pairs(dF, dE, ds, de, dU)
    return nodes, np.where(np.isneginf(steps), 0, steps), first, last


def check(found, change, log_z, node, edge, d_node, d_edge):
    """All to 1e-9, log Z too; only derivatives, which grow with the square of the length, relative to their size."""
    np.testing.assert_allclose(found.log_z, [log_z], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.node, node, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.edge, edge, rtol=0, atol=1e-9)
    np.testing.assert_allclose(change.node, d_node, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(change.edge, d_edge, rtol=1e-10, atol=1e-9)


def check_first_order(rng, count, T, Y, kind, per_position):
    F, E, s, e = random_chains(rng, count, T, Y, kind)
    if not per_position:
        E = np.repeat(E[:, -1:], T, axis=1)
    d = [rng.normal(size=part.shape) for part in (F, E, s, e)]
    if not per_position:
        d[1] = np.repeat(d[1][:, -1:], T, axis=1)
    expected = oracle.log_space_chains(F, E, s, e, *d)
    whole = np.array([0, T])
    for k in range(count):
        edges, d_edges = (
            chain.Edges(pair[k] if per_position else pair[k, -1], first[k], last[k])
            for pair, first, last in ((E, s, e), d[1:])
        )
        if np.isneginf(expected[0][k]):
            for job in (chain.marginals, lambda *given: chain.tangent(*given, d[0][k], d_edges)):  # noqa: B023
                with pytest.raises(NumericError, match="forbidden"):
                    job(F[k], edges, whole)
            continue
        log_z, node, edge, d_node, d_edge = (part[k] for part in expected)
        if not per_position:
            edge, d_edge = edge.sum(axis=0), d_edge.sum(axis=0)
        found = chain.marginals(F[k], edges, whole)
        check(found, chain.tangent(F[k], edges, whole, d[0][k], d_edges), log_z, node, edge, d_node, d_edge)


def check_second_order(rng, count, T, Y, kind, per_position):
    F, E, s, e = random_chains(rng, count, T, Y, kind)
    if not per_position:
        E = np.repeat(E[:, -1:], T, axis=1)
    U = rng.choice([1.0, 300.0, 1000.0], (count, 1, 1, 1)) * rng.uniform(-1, 1, (count, Y, Y, Y))
    if kind == "detour":
        U = rng.normal(size=U.shape)
    U[rng.random(U.shape) < rng.choice([0.0, 0.2], (count, 1, 1, 1))] = -np.inf
    d = [rng.normal(size=part.shape) for part in (F, E, s, e, U)]
    if not per_position:
        d[1] = np.repeat(d[1][:, -1:], T, axis=1)
    log_z, pair, triple, d_pair, d_triple = oracle.log_space_chains(
        *states_of_pairs(F, E, s, e, U), *direction_of_pairs(*d)
    )
    whole = np.array([0, T])
    for k in range(count):
        edges, d_edges = (
            chain.Edges(pairs[k] if per_position else pairs[k, -1], first[k], last[k], triples[k])
            for pairs, first, last, triples in ((E, s, e, U), d[1:])
        )
        if np.isneginf(log_z[k]):
            with pytest.raises(NumericError, match="forbidden"):
                chain.marginals(F[k], edges, whole)
            continue
        expected = []
        for pairs in (pair[k], d_pair[k]):
            pairs = pairs.reshape(T - 1, Y, Y)
            edge = np.concatenate([np.zeros((1, Y, Y)), pairs])
            node = np.concatenate([pairs[:1].sum(axis=2), pairs.sum(axis=1)])
            expected += [node, edge if per_position else edge.sum(axis=0)]
        node, edge, d_node, d_edge = expected
        found, change = chain.marginals(F[k], edges, whole), chain.tangent(F[k], edges, whole, d[0][k], d_edges)
        check(found, change, log_z[k], node, edge, d_node, d_edge)
        for of_triples, steps in ((found.triple, triple[k]), (change.triple, d_triple[k])):
            steps = np.einsum("tijjk->ijk", steps.reshape(T - 1, Y, Y, Y, Y))
            np.testing.assert_allclose(of_triples, steps, rtol=0, atol=1e-9)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_position", [False, True])
def test_first_order(rng, per_position, kind):
    for T in (1, 2, 3, 4, 8, 15, 30):
        for Y in (1, 2, 3, 4, 6):
            check_first_order(rng, 10, T, Y, kind, per_position)


@pytest.mark.each_choice
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("per_position", [False, True])
def test_second_order(rng, per_position, kind):
    for T in (2, 3, 4, 7, 12, 20):
        for Y in range(1, 4):
            check_second_order(rng, 6, T, Y, kind, per_position)


def two_ways(T, cost):
    """Label 1 costs 760 at the beginning and as much at the end, label 0 `cost` at each step."""
    scores = np.zeros((T, 2))
    scores[0, 1] = scores[-1, 1] = -60
    ends = np.array([0.0, -700.0])
    return scores, chain.Edges(np.array([[cost, -np.inf], [-np.inf, 0.0]]), ends, ends)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("T, cost", [(8, -290.0), (12, -200.0)])
def test_the_dear_beginning_wins(T, cost, order, per_position, dtype):
    scores, edges = two_ways(T, cost)
    if per_position:
        edges = edges.plus_pairs(np.zeros((T, 2, 2)))
    if order == 2:
        edges = replace(edges, triples=np.zeros((2, 2, 2)))
    found = chain.marginals(scores.astype(dtype), edges, np.array([0, T]))
    assert found.log_z[0] == pytest.approx(-1520, rel=1e-15)
    np.testing.assert_array_equal(found.node[:, 1], 1)
    np.testing.assert_allclose(found.edge.reshape(-1, 2, 2).sum(axis=0), [[0, 0], [0, T - 1]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_both_ways_are_equally_good(order):
    """Derivatives are not zero where the two balance: 1/4 towards the label that is raised."""
    scores, edges = two_ways(9, -190.0)
    d_scores = np.zeros_like(scores)
    d_scores[4, 1] = 1
    d_edges = chain.Edges.zeros(2)
    if order == 2:
        edges = replace(edges, triples=np.zeros((2, 2, 2)))
    whole = np.array([0, 9])
    assert chain.marginals(scores, edges, whole).log_z[0] == pytest.approx(-1520 + np.log(2), rel=1e-15)
    change = chain.tangent(scores, edges, whole, d_scores, d_edges)
    np.testing.assert_allclose(change.node, np.tile([-0.25, 0.25], (9, 1)), rtol=1e-12)
    np.testing.assert_allclose(change.edge, [[-2, 0], [0, 2]], rtol=1e-12)


@pytest.mark.parametrize("Y", [2, 3])
@pytest.mark.parametrize("per_position", [False, True])
def test_long_sequences(rng, Y, per_position):
    """So long that all scales together say nothing: with ordinary potentials, and with some that underflow."""
    for kind in ("free", "drift"):
        check_first_order(rng, 5, 300, Y, kind, per_position)


def test_labels_that_are_held(rng):
    """What is not observed between two observed labels is summed over, however dear the way."""
    scores, edges = two_ways(12, -200.0)
    labels = np.full(12, -1)
    labels[5] = 0
    for observed, expected in ((0, -2200), (1, -1520)):
        labels[5] = observed
        held = hold(labels, np.array([0, 12]), scores, edges, np.ones(1))
        assert held.marginals().log_z[0] == pytest.approx(expected, rel=1e-15)
