"""Tagging under constraints, and the probabilities it tells, against enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import models
import oracle
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import Decoder, Wishes, given_labels
from kcrf_core.scoring import allowed_transitions
from kcrf_core.system import Workers


def decode(model, dataset, **wishes):
    """All that is found out, and what the model makes of each sequence: (rows, scores, edges)."""
    with Workers(1) as workers:
        (found,) = Decoder(model, Wishes(**wishes)).decode(dataset, "data", workers)
    scores, edges = model.potentials(dataset)
    spans = [slice(first, last) for first, last in zip(dataset.offsets[:-1], dataset.offsets[1:], strict=True)]
    return found, [
        (rows, scores[rows], edges.transitions if edges.transitions.ndim == 2 else edges.transitions[rows])
        for rows in spans
    ]


def possible(model, scores, transitions, allowed=None, given=None):
    """Labellings that constraints leave, with their probabilities among themselves."""
    totals = {}
    for path in oracle.labellings(*scores.shape):
        if given is not None and any(g >= 0 and g != y for g, y in zip(given, path, strict=True)):
            continue
        if allowed is not None and not well_formed(path, allowed):
            continue
        edges = model.edges
        totals[path] = oracle.path_score(scores, transitions, edges.start, edges.end, path, edges.triples)
    log_z = np.logaddexp.reduce(list(totals.values()))
    return {path: np.exp(total - log_z) for path, total in totals.items()}


def well_formed(path, allowed):
    pairs = all(allowed.pairs[a, b] for a, b in pairwise(path))
    return bool(pairs and allowed.first[path[0]] and allowed.last[path[-1]])


def marginals(chances, Y):
    out = np.zeros((len(next(iter(chances))), Y))
    for path, p in chances.items():
        out[np.arange(len(path)), path] += p
    return out


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("kinds", [("explicit",), ("kernel", "edge-x")])
@pytest.mark.parametrize("scheme", [None, "iob1", "iob2"])
@pytest.mark.parametrize("force", [False, True])
def test_probabilities_are_those_of_what_is_left(order, kinds, scheme, force):
    rng = np.random.default_rng(11)
    model, corpus = models.random_model(rng, kinds, models.SPANS, order, scale=2.0)
    Y = len(model.labels)
    dataset = model.encoding.encode(corpus)
    if force:
        # Given labels may be any, as long as the scheme leaves something: O always does.
        outside = model.labels.index("O")
        given = np.where(rng.random(dataset.positions) < 0.4, outside, -1).astype(np.int32)
        if scheme is None:
            given = np.where(given >= 0, rng.integers(0, Y, dataset.positions), -1).astype(np.int32)
        dataset = replace(dataset, labels=given)
    allowed = None if scheme is None else allowed_transitions(model.labels, scheme)
    wishes = {"scheme": scheme, "force": force, "marginals": True, "probability": True, "nbest": 4}
    wishes["entropy"] = True
    found, sequences = decode(model, dataset, **wishes)
    for s, (rows, scores, transitions) in enumerate(sequences):
        chances = possible(model, scores, transitions, allowed, dataset.labels[rows] if force else None)
        np.testing.assert_allclose(found.marginals[rows], marginals(chances, Y), rtol=1e-8, atol=1e-12)
        best = tuple(found.labels[rows].tolist())
        assert best == max(chances, key=chances.__getitem__)
        np.testing.assert_allclose(np.exp(found.log_probabilities[s]), chances[best], rtol=1e-8)
        p = np.array([*chances.values()])
        np.testing.assert_allclose(found.entropies[s], -(p * np.log(p)).sum(), rtol=1e-5, atol=1e-6)
        ranked = found.nbest[s]
        assert tuple(ranked.labels[0].tolist()) == best
        expected = sorted(chances.values(), reverse=True)[:4]
        np.testing.assert_allclose(np.exp(ranked.scores), expected, rtol=1e-8)
        np.testing.assert_allclose([chances[tuple(path)] for path in ranked.labels.tolist()], expected, rtol=1e-8)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes", "bilou"])
@pytest.mark.parametrize("decoding", ["viterbi", "posterior"])
def test_nothing_that_a_scheme_forbids_comes_out(order, scheme, decoding):
    letters = {"iobes": "BIES", "bilou": "BILU"}.get(scheme, "BI")
    labels = (*sorted(f"{letter}-{kind}" for letter in letters for kind in "XY"), "O")
    for seed in range(5):
        model, corpus = models.random_model(np.random.default_rng(seed), ("explicit", "edge-x"), labels, order, 5.0)
        allowed = allowed_transitions(model.labels, scheme)
        dataset = model.encoding.encode(corpus)
        nbest = 5 if decoding == "viterbi" else None
        found, sequences = decode(model, dataset, scheme=scheme, decode=decoding, nbest=nbest)
        for s, (rows, _, _) in enumerate(sequences):
            assert well_formed(found.labels[rows].tolist(), allowed)
            for path in () if nbest is None else found.nbest[s].labels.tolist():
                assert well_formed(path, allowed)


def test_posterior_decoding_has_most_labels_right_on_average():
    differing = 0
    for seed in range(20):
        model, corpus = models.random_model(np.random.default_rng(seed), labels=models.SPANS, scale=0.5)
        dataset = model.encoding.encode(corpus)
        free, _ = decode(model, dataset, decode="posterior", marginals=True)
        assert np.array_equal(free.labels, free.marginals.argmax(axis=1))
        allowed = allowed_transitions(model.labels, "iob2")
        found, sequences = decode(model, dataset, decode="posterior", scheme="iob2", marginals=True)
        differing += not np.array_equal(found.labels, found.marginals.argmax(axis=1))
        for rows, scores, _ in sequences:
            part = found.marginals[rows]
            paths = [path for path in oracle.labellings(*scores.shape) if well_formed(path, allowed)]
            right = [part[np.arange(len(path)), path].sum() for path in paths]
            own = part[np.arange(len(part)), found.labels[rows]].sum()
            np.testing.assert_allclose(own, max(right), rtol=1e-12)
    assert differing  # else the scheme made no difference


def test_given_labels_by_name():
    model, corpus = models.random_model(np.random.default_rng(0))
    corpus = replace(corpus, columns=(*corpus.columns[:-1], ["B", "?", *corpus.columns[-1][2:]]))
    given = given_labels(model, corpus, "?")
    assert given[0] == model.labels.index("B") and given[1] == -1 and (given[2:] >= 0).all()
    with pytest.raises(DataError, match=r"random:\d+: the model has no label '\?'"):
        given_labels(model, corpus, "-")
    with pytest.raises(DataError, match="no column of labels"):
        given_labels(model, replace(corpus, columns=corpus.columns[:-1]), "?")


def test_what_cannot_be_is_named_by_its_line():
    model, corpus = models.random_model(np.random.default_rng(1), labels=models.SPANS)
    dataset = model.encoding.encode(corpus)
    given = np.full(dataset.positions, -1, dtype=np.int32)
    first = int(dataset.offsets[3])
    given[first] = model.labels.index("I-X")  # iob2 begins no sequence with it
    with pytest.raises(DataError, match=f"data:{dataset.lines[first]}: no labelling of this sequence is possible"):
        decode(model, replace(dataset, labels=given), force=True, scheme="iob2")


def test_a_scheme_of_other_labels_is_refused():
    model, _ = models.random_model(np.random.default_rng(2), labels=models.SPANS)
    with pytest.raises(ConfigError, match="are not those of the scheme iobes"):
        Decoder(model, Wishes(scheme="iobes"))
    model, _ = models.random_model(np.random.default_rng(2))
    with pytest.raises(ConfigError, match="'A' does not belong to the scheme iob2"):
        Decoder(model, Wishes(scheme="iob2"))


@pytest.mark.parametrize("kinds", [("explicit",), ("kernel", "edge-x")])
def test_a_model_gives_labels_by_its_decoder(kinds):
    rng = np.random.default_rng(4)
    model, corpus = models.random_model(rng, kinds, models.SPANS, scale=0.5)
    dataset = model.encoding.encode(corpus)
    stored = replace(model, decode="posterior")
    by_position, _ = decode(model, dataset, decode="posterior")
    by_path, _ = decode(model, dataset, decode="viterbi")
    assert not np.array_equal(by_position.labels, by_path.labels)
    for one, expected in ((model, by_path), (stored, by_position)):
        np.testing.assert_array_equal(one.tag(dataset), expected.labels)
        np.testing.assert_array_equal(decode(one, dataset)[0].labels, expected.labels)
        parts = list(one.over_parts(dataset, one.infer))
        np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), expected.labels)
        np.testing.assert_array_equal(np.concatenate([part.marginals.node for part in parts]), model.marginals(dataset))
    # The best of several labellings is the most probable one as a whole, whatever is stored.
    np.testing.assert_array_equal(decode(stored, dataset, nbest=2)[0].labels, by_path.labels)


def test_a_model_that_forbids_transitions_decodes_possible_labellings():
    alone = 0  # models whose most probable labels do not make a possible labelling
    for seed in range(10):
        model, corpus = models.random_model(np.random.default_rng(seed), labels=models.SPANS, scale=0.5)
        dataset = model.encoding.encode(corpus)
        allowed = allowed_transitions(model.labels, "iob2")
        edges = replace(
            model.edges,
            transitions=np.where(allowed.pairs, model.edges.transitions, -np.inf),
            start=np.where(allowed.first, model.edges.start, -np.inf),
        )
        kept = replace(model, decode="posterior", edges=edges)
        found = kept.tag(dataset)
        np.testing.assert_array_equal(found, decode(model, dataset, decode="posterior", scheme="iob2")[0].labels)
        alone += not np.array_equal(found, kept.marginals(dataset).argmax(axis=1))
    assert alone
