"""The K best labellings against enumeration, on chains of both orders."""

from __future__ import annotations

import numpy as np
import pytest

import oracle
from kcrf_core.chains import Edges, best_labellings, chain


def random_chain(rng, order, per_position, forbid=0.0, whole=False):
    """Potentials of one short sequence; `whole` numbers make ties."""

    def draw(*shape):
        return rng.integers(-1, 2, shape).astype(float) if whole else rng.normal(size=shape)

    T, Y = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    transitions = draw(T, Y, Y) if per_position else draw(Y, Y)
    transitions = np.where(rng.random(transitions.shape) < forbid, -np.inf, transitions)
    return draw(T, Y), Edges(transitions, draw(Y), draw(Y), draw(Y, Y, Y) if order == 2 else None)


def every_labelling(scores, edges):
    """Labellings that are possible, with their scores."""
    paths = oracle.labellings(*scores.shape)
    parts = (edges.transitions, edges.start, edges.end)
    totals = {path: oracle.path_score(scores, *parts, path, edges.triples) for path in paths}
    return {path: total for path, total in totals.items() if total > -np.inf}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("forbid", [0.0, 0.3])
@pytest.mark.parametrize("whole", [False, True])
def test_against_enumeration(order, per_position, forbid, whole):
    rng = np.random.default_rng(5)
    for _ in range(25):
        scores, edges = random_chain(rng, order, per_position, forbid, whole)
        offsets = np.array([0, len(scores)])
        totals = every_labelling(scores, edges)
        number = int(rng.integers(1, 40))
        (found,) = best_labellings(scores, edges, offsets, number)
        expected = sorted(totals.values(), reverse=True)[:number]
        paths = [tuple(path) for path in found.labels.tolist()]
        assert len(set(paths)) == len(paths) == len(expected)
        np.testing.assert_allclose(found.scores, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose([totals[path] for path in paths], expected, rtol=1e-10, atol=1e-12)
        assert (np.diff(found.scores) <= 0).all()
        if paths:
            assert paths[0] == tuple(chain.viterbi(scores, edges, offsets)[0].tolist())


@pytest.mark.parametrize("order", [1, 2])
def test_sequences_do_not_see_each_other(order):
    rng = np.random.default_rng(6)
    Y, offsets = 4, np.array([0, 3, 4, 9])
    scores = rng.normal(size=(9, Y))
    triples = rng.normal(size=(Y, Y, Y)) if order == 2 else None
    edges = Edges(rng.normal(size=(9, Y, Y)), rng.normal(size=Y), rng.normal(size=Y), triples)
    together = best_labellings(scores, edges, offsets, 6)
    assert [len(found.labels) for found in together] == [6, 4, 6]
    for found, first, last in zip(together, offsets[:-1], offsets[1:], strict=True):
        own = Edges(edges.transitions[first:last], edges.start, edges.end, triples)
        (alone,) = best_labellings(scores[first:last], own, np.array([0, last - first]), 6)
        assert np.array_equal(found.labels, alone.labels) and np.array_equal(found.scores, alone.scores)


@pytest.mark.parametrize("order", [1, 2])
def test_a_few_are_the_first_of_many(order):
    rng = np.random.default_rng(7)
    T, Y = 30, 5
    edges = Edges(rng.normal(size=(Y, Y)), np.zeros(Y), np.zeros(Y), rng.normal(size=(Y, Y, Y)) if order == 2 else None)
    scores = rng.normal(size=(T, Y))
    offsets = np.array([0, T])
    (many,), (few,) = (best_labellings(scores, edges, offsets, number) for number in (500, 20))
    assert np.array_equal(many.labels[:20], few.labels)
    assert len(np.unique(many.labels, axis=0)) == 500
    repeated = np.concatenate([many.labels[k] for k in range(500)])
    found = chain.path_scores(np.tile(scores, (500, 1)), edges, np.arange(501) * T, repeated)
    np.testing.assert_allclose(many.scores, found, rtol=1e-10)
