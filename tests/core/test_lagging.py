"""Labels with a bounded delay, against enumeration of what is known when each of them is due."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.models import SPANS, random_corpus, random_model
from tests.oracle import enumerate_chain

from kcrf_core.chains import Edges, Messages
from kcrf_core.config import parse_config
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import Decoder, LagDecoder, Wishes, given_labels

MARGINALS = Wishes(decode="posterior", marginals=True)


def part(corpus, first, last):
    """Some positions of one sequence as a corpus."""
    alone = replace(corpus, offsets=np.arange(corpus.positions + 1))
    return replace(alone.subset(np.arange(first, last)), offsets=np.array([0, last - first]))


def potentials(model, corpus):
    return model.potentials(model.encoding.encode(corpus))


def known_when_due(model, corpus, lag, ahead, edges):
    """Marginals [T, Y] of one sequence, each by enumeration of what has been read when its label is due."""
    T = corpus.positions
    seen = [potentials(model, part(corpus, 0, min(T, u + lag + 1) if lag < ahead else T)) for u in range(T)]
    scores = np.stack([seen[u][0][u] for u in range(T)])
    own = [seen[u][1].transitions for u in range(T)]
    pairs = np.stack([edges.transitions if each.ndim == 2 else each[u] for u, each in enumerate(own)])
    out = []
    for t in range(T):
        m, end = T - 1, edges.end
        if t + lag < T:
            m, end = max(t, t + lag - ahead), np.zeros(len(edges.end))
        node = enumerate_chain(scores[: m + 1], pairs[: m + 1], edges.start, end, edges.triples)[1]
        out.append(node[t])
    return np.stack(out)


def fed(decoder, corpus, rng):
    """Labels and marginals of sequences that come a few positions at a time, and how many were out after each feed."""
    labels, node, out = [], [], 0
    for s in range(corpus.sequences):
        own = corpus.subset([s])
        at = 0
        while at < own.positions:
            to = min(at + int(rng.integers(1, 4)), own.positions)
            found = decoder.feed(part(own, at, to), False)
            at, out = to, out + len(found.labels)
            assert out - int(corpus.offsets[s]) == max(at - decoder.lag, 0)
            labels.append(found.labels)
            node.append(found.marginals)
        found = decoder.end()
        out += len(found.labels)
        assert out == corpus.offsets[s + 1]
        assert not decoder.waiting
        labels.append(found.labels)
        node.append(found.marginals)
    return np.concatenate(labels), np.concatenate(node)


@pytest.mark.each_choice
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("window", [(-1, 0), (0, 1), (-1, 2)])
@pytest.mark.parametrize("kinds", [("explicit",), ("edge-x", "kernel")])
@pytest.mark.parametrize("lag", [0, 1, 2, 3, 100])
def test_marginals_are_those_of_what_has_been_read(order, window, kinds, lag):
    rng = np.random.default_rng(100 * lag + order)
    model, corpus = random_model(rng, kinds, order=order, window=window)
    decoder = LagDecoder(model, lag, MARGINALS)
    assert (decoder.behind, decoder.ahead) == (max(-window[0], 0), max(window[-1], 0))
    labels, node = fed(decoder, corpus, rng)
    parts = [corpus.subset([s]) for s in range(corpus.sequences)]
    expected = np.concatenate([known_when_due(model, one, lag, decoder.ahead, model.edges) for one in parts])
    np.testing.assert_allclose(node, expected, rtol=0, atol=1e-12)
    assert np.array_equal(labels, expected.argmax(axis=1))


@pytest.mark.parametrize("order", [1, 2])
def test_a_lag_as_long_as_the_sequence_is_posterior_decoding(order):
    rng = np.random.default_rng(order)
    model, corpus = random_model(rng, order=order, window=(-1, 0, 1))
    labels, node = fed(LagDecoder(model, 5, MARGINALS), corpus, rng)
    whole = Decoder(model, MARGINALS).decode_part(model.encoding.encode(corpus), "test")
    np.testing.assert_allclose(node, whole.marginals, rtol=0, atol=1e-9)
    assert np.array_equal(labels, whole.labels)


@pytest.mark.parametrize("lag", [0, 1, 2, 4])
@pytest.mark.parametrize("order", [1, 2])
def test_bytes_do_not_depend_on_how_lines_come(lag, order):
    rng = np.random.default_rng(lag)
    model, corpus = random_model(rng, ("explicit", "kernel", "edge-x"), order=order, window=(-1, 0, 1))
    labels, node = fed(LagDecoder(model, lag, MARGINALS), corpus, rng)
    at_once = LagDecoder(model, lag, MARGINALS).feed(corpus, True)
    assert np.array_equal(node, at_once.marginals)
    assert np.array_equal(labels, at_once.labels)


@pytest.mark.each_choice
@pytest.mark.parametrize("lag", [0, 1, 2, 5])
@pytest.mark.parametrize("order", [1, 2])
def test_labels_follow_those_that_are_out(lag, order):
    rng = np.random.default_rng(7)
    model, _ = random_model(rng, labels=SPANS, order=order, scale=0.3)
    # Sequences long enough for mistakes: without a scheme there are some.
    corpus = random_corpus(rng, SPANS, sequences=20, longest=12)
    plain, _ = fed(LagDecoder(model, lag, MARGINALS), corpus, rng)
    labels, node = fed(LagDecoder(model, lag, replace(MARGINALS, scheme="iob2")), corpus, rng)

    def broken(found):
        names = [SPANS[number] for number in found]
        inside = [name[0] == "I" for name in names]
        starts = set(corpus.offsets.tolist())
        return sum(
            inside[t] and (t in starts or names[t - 1][1:] != names[t][1:] or names[t - 1] == "O")
            for t in range(len(names))
        )

    assert broken(plain) > 0
    assert broken(labels) == 0
    # Of the labels that may follow the one before, the one of the largest marginal; several that leave together at the
    # end of a sequence are a best path.
    follows = np.array([[b[0] != "I" or (a != "O" and a[2:] == b[2:]) for b in SPANS] for a in SPANS])
    for first, last in pairwise(corpus.offsets.tolist()):
        for t in range(first, last if lag <= 1 else last - lag):
            may = [name[0] != "I" for name in SPANS] if t == first else follows[labels[t - 1]]
            assert labels[t] == np.where(may, node[t], -1).argmax()


def test_given_labels_stay():
    rng = np.random.default_rng(3)
    model, corpus = random_model(rng, labels=SPANS)
    given = [label if t % 2 else "?" for t, label in enumerate(corpus.columns[-1])]
    corpus = replace(corpus, columns=(*corpus.columns[:-1], given))
    decoder = LagDecoder(model, 1, MARGINALS, lambda part: given_labels(model, part, "?"))
    labels, node = fed(decoder, corpus, rng)
    for t, name in enumerate(given):
        if name != "?":
            assert SPANS[labels[t]] == name
            assert node[t, labels[t]] == pytest.approx(1.0, rel=1e-12)


def test_labels_that_contradict_each_other_are_an_error_with_the_line():
    rng = np.random.default_rng(3)
    model, _ = random_model(rng, labels=SPANS)
    corpus = random_corpus(rng, SPANS, sequences=1, longest=2)
    corpus = part(corpus, 0, 1)
    corpus = replace(corpus, columns=(*corpus.columns[:-1], ["I-X"]))
    wishes = replace(MARGINALS, scheme="iob2")
    decoder = LagDecoder(model, 0, wishes, lambda part: given_labels(model, part, "?"))
    with pytest.raises(DataError, match="random:1: no labelling"):
        decoder.feed(corpus, False)


def test_costs_count_times_marginals():
    rng = np.random.default_rng(5)
    model, corpus = random_model(rng)
    costs = np.array([1.0, 30.0, 1.0])
    labels, node = fed(LagDecoder(model, 1, replace(MARGINALS, costs=costs)), corpus, rng)
    assert np.array_equal(labels, (node * costs).argmax(axis=1))
    assert (labels != node.argmax(axis=1)).any()


def test_positions_in_a_sequence_are_not_known_yet():
    rng = np.random.default_rng(5)
    corpus = random_corpus(rng, ("A", "B"))
    features = [{"name": "place", "column": "word", "transform": "position"}]
    config = parse_config({"columns": ["word", "class", "number", "label"], "features": features}, "test")
    encoding, _ = fit_encoding(config, corpus)
    model, _ = random_model(rng)
    term = replace(model.terms[0], features=("place",))
    with pytest.raises(ConfigError, match="'place' \\(position\\)"):
        LagDecoder(replace(model, encoding=encoding, terms=(term,)), 2, MARGINALS)


@pytest.mark.parametrize("order", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_messages_survive_long_sequences_and_large_potentials(order):
    """Ten thousand positions, potentials of hundreds: nothing underflows, and going on is the same as going at once."""
    rng = np.random.default_rng(order)
    n, Y = 10_000, 3
    triples = 300 * rng.normal(size=(Y, Y, Y)) if order == 2 else None
    edges = Edges(300 * rng.normal(size=(Y, Y)), rng.normal(size=Y), np.zeros(Y), triples)
    scores = 300 * rng.normal(size=(n, Y))
    whole = Messages.of(scores, edges, None)
    half = Messages.of(scores[:1], edges, None)
    rest = Messages.of(scores[1:], edges, half.last)
    assert np.array_equal(whole.values[1:], rest.values)
    assert np.isfinite(whole.values).all()
    node = whole.marginals(np.vstack([scores, np.zeros((2, Y))]), edges, 2)
    np.testing.assert_allclose(node.sum(axis=1), 1.0, rtol=1e-12)
