"""The weights that are told are those that score: a score is the sum of what features are told to add."""

from __future__ import annotations

import io

import numpy as np
import pytest
from test_pruning import KINDS, fit

from kcrf_core.config import parse_config
from kcrf_core.corpora import FORMATS
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import fit_encoding
from kcrf_core.encoding.names import CONSTANT
from kcrf_core.features import KernelTerm
from kcrf_core.kernels import gram
from kcrf_core.maps import feature_base, sparse_block
from kcrf_core.model import dump
from kcrf_core.model.inspection import term_weights

PARTS = {
    "columns": ["word", "pos", "f0", "energy", "label"],
    "features": [
        {"column": "word", "window": [-1, 0]},
        {"name": "pair", "conjunction": ["word[-1]", "pos"], "window": [0, 1]},
        {"name": "triple", "conjunction": ["pos[-1]", "pos", "word[1]"]},
        {"name": "loud", "columns": ["f0", "energy"], "type": "real", "window": [0, 1]},
        {"column": "word", "transform": "frequency"},
    ],
}


def told(model):
    """What the lines of a dump say, by their first cells."""
    out = {}
    for *where, weight in dump(model):
        key = tuple(where)
        assert key not in out
        out[key] = float(weight)
    return out


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "cosine"])
def test_scores_are_sums_of_what_is_told(kind):
    model, _, dataset = fit(kind)
    weights, labels = told(model), model.labels
    node, edges = model.potentials(dataset)
    expected = np.zeros_like(node)
    for t in range(dataset.positions):
        described = model.encoding.describe(dataset, t)
        values = {}
        for text in described:  # word[0]=w3, c1[0]=0.52 or attribute:2
            name, _, number = text.partition("=")
            if name.startswith("c1["):
                values[name] = float(number)
            elif model.encoding.format == "crfsuite":
                name, _, number = text.partition(":")
                values[name] = float(number or 1)
            else:
                values[text] = 1.0
        for term in model.terms:
            if term.type != "node":
                continue
            if isinstance(term, KernelTerm):
                inputs = model.encoding.inputs(dataset, term.features).take(slice(t, t + 1))
                kernel = {f"line:{line}": value for line, value in zip(term.lines, _gram(term, inputs), strict=True)}
                present = kernel
            elif kind == "conjunctions":
                names = list(values)
                present = {CONSTANT: 1.0} | dict.fromkeys(names, 1.0)
                present |= {f"{a} & {b}": 1.0 for a in names for b in names if a != b}
            else:
                present = {CONSTANT: 1.0} | values
            for y, label in enumerate(labels):
                expected[t, y] += sum(weights.get((term.name, name, label), 0.0) * x for name, x in present.items())
    # Real values are described by four digits, weights told by six.
    np.testing.assert_allclose(expected, node, atol=5e-3)
    if kind == "edge-x":
        t = int(dataset.offsets[1]) - 1
        words = [text for text in model.encoding.describe(dataset, t) if text.startswith("c0")]
        for i, before in enumerate(labels):
            for j, after in enumerate(labels):
                value = weights.get(("transition", before, after), 0.0)
                value += sum(weights.get(("edge-x", word, before, after), 0.0) for word in words)
                assert value == pytest.approx(edges.transitions[t, i, j], abs=1e-4)


def _gram(term, inputs):
    return gram(term.kernel, inputs, term.pivots)[0]


def test_edges_are_told_and_what_is_forbidden_too():
    model, _, _ = fit("several", observed_transitions=True)
    weights, edges = told(model), model.edges
    labels = model.labels
    assert not np.isfinite(edges.transitions).all() and edges.triples.any()
    for i, before in enumerate(labels):
        for j, after in enumerate(labels):
            assert weights.get(("transition", before, after), 0.0) == pytest.approx(edges.transitions[i, j], rel=1e-5)
            for k, last in enumerate(labels):
                assert weights.get(("triple", before, after, last), 0.0) == pytest.approx(
                    edges.triples[i, j, k], rel=1e-5
                )


def test_the_strongest_are_the_strongest(monkeypatch):
    monkeypatch.setattr("kcrf_core.model.inspection.VALUES_AT_ONCE", 28)
    for kind in ("linear", "observed", "conjunctions", "two labels"):
        model, _, _ = fit(kind)
        weights = term_weights(model, model.terms[0])
        every = np.concatenate([block for _, block in weights.blocks()])
        assert len(every) == weights.items
        assert list(weights.strongest(5)) == list(range(len(model.labels)))
        for y, found in weights.strongest(5).items():
            largest = np.sort(np.abs(every[:, y]))[::-1][:5]
            np.testing.assert_allclose(sorted((abs(w) for _, w in found), reverse=True), largest, rtol=1e-12)
            assert [w for _, w in found] == sorted((w for _, w in found), reverse=True)
            numbers = {weights.name(k): k for k in range(weights.items)}
            assert all(every[numbers[name], y] == w for name, w in found)
        together = [abs(w) for found in weights.strongest(5, together=True).values() for _, w in found]
        np.testing.assert_allclose(sorted(together), np.sort(np.abs(every).ravel())[-5:], rtol=1e-12)


def corpus_with_everything():
    text = "Das ART 1.5 2 O\nHaus N -2 1 B\nhat V 7 0 I\n\nein ART 0.25 3 O\nHaus N 1 2 B\n"
    parsed = FORMATS["conll"].parse(blocks(io.BytesIO(text.encode()), "data"), "data")
    return concatenate(part.corpus for part in parsed)


def test_names_are_what_positions_look_like():
    """Conjunctions are told by the values of their parts, in the order of the columns of an explicit map."""
    encoding, dataset = fit_encoding(parse_config(PARTS), corpus_with_everything())
    names = encoding.feature_names(encoding.names)
    inputs = encoding.inputs(dataset, encoding.names)
    assert len(names) == feature_base(inputs) - 1 + inputs.real.shape[1]
    rows = sparse_block(inputs)
    second = [names[int(k)] for k in rows.indices[rows.indptr[1] : rows.indptr[2]]]
    assert second == [
        "word[-1]=Das",
        "word[0]=Haus",
        "pair[0]=Das/N",
        "pair[1]=Haus/V",
        "triple[0]=ART/N/hat",
    ]
    first = [names[int(k)] for k in rows.indices[rows.indptr[0] : rows.indptr[1]]]
    assert first[0] == "word[-1]=_B-1" and first[-1] == "triple[0]=_B-1/ART/Haus"
    assert set(second) <= set(encoding.describe(dataset, 1))
    real = [names[k] for k in range(feature_base(inputs) - 1, len(names))]
    assert real == ["f0[0]", "energy[0]", "f0[1]", "energy[1]", "word.frequency[0]"]
    assert names[10**9] == "#1000000000" and names[-1] == "#-1"
