"""The C library gives what Python gives: labels, marginals, n-best lists, for every kind of model that it takes."""

from __future__ import annotations

import io
import locale
import pickle
import re
import shutil
import struct
import subprocess
import sys
import time
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from decimal import Decimal
from functools import cache
from itertools import groupby, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from tests.models import find_conjunctions, library_labels

from kcrf_core import KernelCRF, fit_encoding, parse_config
from kcrf_core.chains import CLIQUES, Edges, best_labellings, chain
from kcrf_core.corpora import FORMATS
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.corpora.lines import blocks
from kcrf_core.encoding import Dataset
from kcrf_core.errors import ConfigError
from kcrf_core.features import ConjunctionTerm, ExplicitTerm
from kcrf_core.features.pivots import KernelTerm
from kcrf_core.kernels import PolynomialKernel
from kcrf_core.maps import ColumnOrder, SparseWeights, held_values
from kcrf_core.model import (
    CorpusPart,
    Decoder,
    LibraryLabels,
    Model,
    ScoreCalibration,
    Wishes,
    runtime_image,
)
from kcrf_core.model.runtime_sections import BAG, META, SECTIONS, attribute_sections
from kcrf_core.runtime import VERSION, RuntimeModel, RuntimeTagger, by_characters, text_table, weight_rows

WORDS = [
    "the",
    "The",
    "THE",
    "Straße",
    "STRASSE",
    "ΟΔΟΣ",
    "Σ",
    "İstanbul",
    "日本語",
    "x-1",
    "a.b.",
    "Σσς'Σ",
    "٣4",
    "New",
    "York",
]
WORDS += ["(1999a),", "pp.", "12–15;", "—", "J.-P.", "«Été»", "(New", "York;"]
WORDS += ["ǅ", "e\u0301E", "a" * 40, "", "NA", "12", "-3.5e1", "é"]
UNKNOWN = [f"{word}{end}" for word in WORDS for end in ("e", "Σ")]  # with prefixes that are known
TAGS = ["A", "B", "C", "New York", "é"]


def text(seed: int, sequences: int, labels: int, words=WORDS, width=2) -> str:
    """Return lines of a word, a tag, a number and a label, separated by TABs."""
    rng, out = np.random.default_rng(seed), []
    for length in rng.integers(1, 7, sequences):
        for _ in range(length):
            row = [words[rng.integers(len(words))], TAGS[rng.integers(len(TAGS))], f"{rng.normal():.3f}"]
            row[2] = "NA" if rng.random() < 0.2 else row[2]
            out.append("\t".join([*row, f"L{rng.integers(labels)}"]))
        out.append("")
    return "\n".join(out) + "\n"


def attributes(seed: int, sequences: int, labels: int) -> str:
    rng, out = np.random.default_rng(seed), []
    for length in rng.integers(1, 6, sequences):
        for _ in range(length):
            names = [f"{WORDS[k] or 'none'}" for k in rng.integers(len(WORDS), size=3)]
            values = [
                f"{name}:{value:.2g}" if value > 0 else name
                for name, value in zip(names, rng.normal(size=3), strict=True)
            ]
            out.append("\t".join([f"L{rng.integers(labels)}", *values]))
        out.append("")
    return "\n".join(out) + "\n"


def corpus_of(data: str, format_: str = "conll"):
    return concatenate(p.corpus for p in FORMATS[format_].parse(blocks(io.BytesIO(data.encode()), "data"), "data"))


WORD_FEATURES = [
    {"column": "c0", "window": [-2, -1, 0, 1, 2]},
    {"name": "low", "column": "c0", "transform": "lower", "window": [-1, 0, 1]},
    {"name": "pre", "column": "c0", "transform": "prefix", "length": 2, "window": [0]},
    {"name": "suf", "column": "c0", "transform": "suffix", "length": 3, "window": [0, 3]},
    {"name": "shape", "column": "c0", "transform": "shape", "window": [-1, 0]},
    {"name": "edges", "column": "c0", "transform": "edges", "window": [-1, 0]},
    {"name": "kind", "column": "c0", "transform": "kind", "window": [0, 2]},
    {"column": "c1", "window": [-1, 0], "min_count": 2},
]
CONJUNCTIONS = [
    *WORD_FEATURES,
    {"name": "pairs", "conjunction": ["c1[-1]", "c1[0]"], "window": [-1, 0, 1]},
    {"name": "triples", "conjunction": ["low", "c1[-2]", "shape[1]"], "window": [0], "min_count": 2},
]
OF_ONE_COLUMN = [
    {"column": "c1", "window": [-2, -1, 0, 1]},
    {"name": "pairs", "conjunction": ["c1", "c1[1]"], "window": [-2, -1, 0, 1]},
    {"name": "triples", "conjunction": ["c1", "c1[1]", "c1[3]"], "window": [-2, 0], "min_count": 2},
    {"column": "c0", "window": [0]},
]
FAR_PARTS = [  # parts are further away than any feature looks
    {"column": "c0", "window": [-1, 0, 1]},
    {"column": "c1", "window": [0]},
    {"name": "three", "conjunction": ["c1", "c1[1]", "c1[2]"], "window": [-1]},
    {"name": "here", "conjunction": ["c0[3]", "c1[3]"], "window": [-3]},
    {"name": "twice", "conjunction": ["c1", "c1"], "window": [0]},
]
TEMPLATES = ["U00:%x[-2,0]", "U01:%x[0,0]/%x[1,1]", "U:%x[-1,0]", "U:%x[1,0]", "U"]
FEATURES = {
    "words": WORD_FEATURES,
    "one place": [
        {"column": "c1", "window": [-1, 0]},
        {"name": "again", "conjunction": ["c1", "c1"], "window": [-1, 0]},
    ],
    "conjunctions": CONJUNCTIONS,
    "of one column": OF_ONE_COLUMN,
    "far parts": FAR_PARTS,
    "templates": [{"name": "bag", "templates": TEMPLATES}, {"column": "c1", "window": [-1, 0]}],
    "distinct lines": [
        {"name": "bag", "templates": ["U0:%x[-1,0]", "U1:%x[0,0]", "U2"]},
        {"column": "c1", "window": [0]},
    ],
    "wapiti": [{"name": "bag", "templates": ["u:a=%x[-5,0]", "u:b=%x[@1,0]%x[@-1,1]", "u:c"]}],
    "line": [
        {"name": "line", "templates": ["U%x[-1,0]-%x[9,1]"], "type": "categorical"},
        {"column": "c1", "window": [-1, 0]},
    ],
    "one number": [{"column": "c2", "type": "real", "window": [0]}],
    "numbers": [{"column": "c2", "type": "real", "window": [-1, 0, 2]}, {"column": "c0", "window": [0]}],
    "lexicon": [{"column": "c0", "lookup": "town", "window": [-1, 0, 1]}, {"column": "c1", "window": [0]}],
}
LEXICON = {"lexicons": {"town": ["new york", "strasse", "the new", "New York the"]}}
MORE = {"lexicon": LEXICON}  # settings beside features


def random_weights(rng, rows: int, columns: int, sparse: bool):
    weights = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.5)
    return SparseWeights.of(weights) if sparse else weights


def random_model(
    features: str, labels=3, seed=0, terms=("node",), sparse=True, order=1, forbidden=False, degree=0, **more
):
    """Return a model with random weights, and data to label with values that it has not seen."""
    rng = np.random.default_rng(seed)
    if features == "attributes":
        config, training = {}, corpus_of(attributes(seed, 30, labels), "crfsuite")
        new = corpus_of(attributes(seed + 1, 20, labels), "crfsuite")
    else:
        config = {"features": FEATURES[features], "separator": "\t", **MORE.get(features, {})}
        training = corpus_of(text(seed, 40, labels, WORDS[:-3] if features != "numbers" else WORDS))
        new = corpus_of(text(seed + 1, 25, labels, WORDS + UNKNOWN))
    encoding, dataset = fit_encoding(parse_config(config), training)
    names, Y = tuple(encoding.names), len(encoding.labels)
    made = []
    for kind in terms:
        clique = CLIQUES[kind]
        inputs = encoding.inputs(dataset, names)
        C = clique.columns(Y)
        about = (f"term{len(made)}", kind, names)
        if degree:
            kernel = PolynomialKernel(degree=degree, gamma=0.5, coef0=1.0, scale=1.0)
            found, _ = find_conjunctions(inputs, kernel)
            made.append(ConjunctionTerm(*about, found, random_weights(rng, found.size, C, sparse)))
            continue
        weights = random_weights(rng, ColumnOrder.of(inputs).size, C, sparse)
        made.append(ExplicitTerm(*about, weights))
    edges = Edges(
        rng.normal(size=(Y, Y)),
        rng.normal(size=Y),
        rng.normal(size=Y),
        rng.normal(size=(Y,) * 3) if order == 2 else None,
    )
    if forbidden:
        transitions, start = edges.transitions.copy(), edges.start.copy()
        transitions[0, 1] = transitions[2, 0] = start[1] = -np.inf
        edges = replace(edges, transitions=transitions, start=start)
    if more.get("few_pairs"):  # most labels stand alone
        edges.transitions[3:] = edges.transitions[:, 2:] = -np.inf
    calibration = ScoreCalibration(0.7, rng.normal(size=Y)) if more.get("calibrated") else None
    if more.get("spans"):
        encoding = replace(encoding, labels=("B-X", "I-X", "O"))
    how = {"decode": more.get("decode", "viterbi"), "span_bonus": more.get("spans", 0.0)}
    return Model(encoding, tuple(made), edges, calibration=calibration, **how), new


MODELS = {
    "words": ("words", {}),
    "dense weights": ("words", {"sparse": False}),
    "two labels": ("words", {"labels": 2}),
    "two labels, a weight for each": ("words", {"labels": 2, "terms": ("state",)}),
    "one label": ("words", {"labels": 1}),
    "many labels": ("words", {"labels": 12}),
    "conjunctions": ("conjunctions", {}),
    "conjunctions of one column": ("of one column", {}),
    "conjunctions of one place": ("one place", {}),
    "conjunctions of one column, pairs": ("of one column", {"terms": ("node", "edge-x")}),
    "far parts": ("far parts", {}),
    "far parts of second order": ("far parts", {"order": 2}),
    "templates": ("templates", {}),
    "wapiti": ("wapiti", {}),
    "numbers": ("numbers", {}),
    "lexicon": ("lexicon", {}),
    "attributes": ("attributes", {}),
    "attributes of second order": ("attributes", {"order": 2}),
    "degree 2": ("words", {"degree": 2, "sparse": False}),
    "degree 3 of a bag": ("distinct lines", {"degree": 3}),
    "two terms": ("conjunctions", {"terms": ("node", "node")}),
    "pairs": ("words", {"terms": ("node", "edge-x")}),
    "pairs alone": ("words", {"terms": ("edge-x",), "calibrated": True}),
    "second order": ("words", {"order": 2}),
    "second order, forbidden": ("conjunctions", {"order": 2, "forbidden": True}),
    "second order, few pairs": ("words", {"order": 2, "labels": 40, "few_pairs": True}),
    "second order with pairs": ("words", {"order": 2, "terms": ("node", "edge-x"), "forbidden": True}),
    "forbidden": ("words", {"forbidden": True}),
    "calibrated": ("words", {"calibrated": True}),
    "bonus": ("words", {"spans": 1.3}),
    "bonus, forbidden": ("words", {"spans": 1.3, "forbidden": True}),
    "bonus, pairs": ("words", {"spans": 1.3, "terms": ("node", "edge-x"), "calibrated": True}),
    "bonus, second order": ("words", {"spans": -0.8, "order": 2, "forbidden": True}),
    "bonus, second order with pairs": ("words", {"spans": 1.3, "order": 2, "terms": ("node", "edge-x")}),
    "posterior": ("words", {"decode": "posterior"}),
    "posterior, forbidden": ("words", {"decode": "posterior", "forbidden": True}),
    "posterior, second order, forbidden": ("words", {"decode": "posterior", "forbidden": True, "order": 2}),
}


def rows_of(model, corpus, first, last):
    if corpus.attributes is None:
        return [[corpus.columns[c][t] for c in range(len(model.encoding.columns) - 1)] for t in range(first, last)]
    rows, out = corpus.attributes, []
    for span in pairwise(rows.indptr[first : last + 1].tolist()):
        out.append(Counter())  # a file may name an attribute twice
        for e in range(*span):
            out[-1][rows.names[e]] += float(rows.values[e])
    return out


@pytest.mark.parametrize("name", MODELS)
def test_the_library_gives_what_python_gives(name):
    features, options = MODELS[name]
    compare(*random_model(features, **options))


def compare(model, corpus):
    tagger = RuntimeTagger(RuntimeModel(runtime_image(model)))
    dataset = model.encoding.encode(corpus)
    best, every = model.tag(dataset), model.marginals(dataset)
    scores, edges = model.potentials(dataset)
    for s, (first, last) in enumerate(pairwise(corpus.offsets.tolist())):
        rows, own = slice(first, last), dataset.span(s, s + 1)
        (tagger.set_columns if corpus.attributes is None else tagger.set_attributes)(
            rows_of(model, corpus, first, last)
        )
        np.testing.assert_array_equal(tagger.labels(), best[rows])
        assert tagger.label_names() == [model.labels[number] for number in best[rows]]
        np.testing.assert_allclose(tagger.marginals(), every[rows], rtol=1e-9, atol=1e-12)
        if s < 6:
            scores, edges = model.potentials(own)
            (wanted,) = best_labellings(scores, edges, own.offsets, 5)
            log_z = chain.marginals(scores, edges, own.offsets).log_z
            for path, log_probability in zip(wanted.labels, np.minimum(wanted.scores - log_z, 0), strict=True):
                assert tagger.log_probability(path) == pytest.approx(log_probability, rel=1e-9, abs=1e-12)
            np.testing.assert_array_equal(tagger.labels(), best[rows])  # after the rooms were used for others


def random_features(rng: np.random.Generator) -> list[dict]:
    """Return features with windows and parts of conjunctions at random offsets."""

    def window():
        return sorted({int(offset) for offset in rng.integers(-4, 5, rng.integers(1, 4))})

    kinds = [
        {"name": "word", "column": "c0"},
        {"name": "tag", "column": "c1"},
        {"name": "low", "column": "c0", "transform": "lower"},
        {"name": "pre", "column": "c0", "transform": "prefix", "length": 2},
        {"name": "same", "column": "c1", "transform": "lower"},
        {"name": "town", "column": "c0", "lookup": "town"},
    ]
    chosen = [kinds[k] for k in rng.permutation(len(kinds))[: rng.integers(1, 5)]]
    out = [{**kind, "window": window()} for kind in chosen]
    names = [feature["name"] for feature in out]
    for number in range(rng.integers(1, 4)):
        least = rng.choice([-4, 0])  # those of one column with none before are summed with it
        parts = [f"{rng.choice(names)}[{offset}]" for offset in rng.integers(least, 5, rng.integers(2, 5))]
        out.append({"name": f"parts{number}", "conjunction": parts, "window": window()})
    for feature in out:
        feature["min_count"] = int(rng.integers(1, 4))
    return [*out, {"column": "c2", "type": "real", "window": window()}] if rng.random() < 0.2 else out


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 400), marks=pytest.mark.slow)], ids=["few", "many"])
def test_random_features_are_as_in_python(seeds, monkeypatch):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        features = random_features(rng)
        name = "lexicon" if any("lookup" in feature for feature in features) else "random"
        monkeypatch.setitem(FEATURES, name, features)
        degree = 0 if features[-1].get("type") == "real" else int(rng.integers(3))
        terms = ("node", "edge-x") if rng.random() < 0.2 else ("node",)
        model = random_model(name, int(rng.integers(2, 6)), seed, terms, order=int(rng.integers(1, 3)), degree=degree)
        compare(*model)


def test_an_entry_of_a_lexicon_may_have_thousands_of_words(monkeypatch):
    entry = " ".join(["new york"] * 700)
    monkeypatch.setitem(LEXICON, "lexicons", {"town": ["strasse", entry], "city": ["strasse", entry]})
    monkeypatch.setitem(FEATURES, "lexicon", [{"column": "c0", "lookup": name} for name in LEXICON["lexicons"]])
    model, _ = random_model("lexicon")
    tables = [feature.table for feature in model.encoding.features]
    shared = tuple(replace(feature, table=tables[0]) for feature in model.encoding.features)
    model = replace(model, encoding=replace(model.encoding, features=shared))
    texts = [["New", "York"] * 701, ["Strasse", "new", "york"]]
    corpus = corpus_of("\n".join("".join(f"{word}\tA\t1\tL0\n" for word in words) for words in texts))
    np.testing.assert_array_equal(
        library_labels(runtime_image(model), model.encoding, corpus),
        model.tag(model.encoding.encode(corpus)),
    )
    monkeypatch.setattr("kcrf_core.model.runtime_files.MOST_WORDS", 1000)
    with pytest.raises(ConfigError, match="an entry of the lexicon a list has 1,400 words: tag with kcrf itself"):
        runtime_image(model)


@pytest.mark.parametrize("form", [{}, {"scale": "unit"}, {"terms": ("node", "edge-x"), "order": 2}])
def test_linear_terms_of_embeddings_are_as_in_python(form, tmp_path, monkeypatch):
    """Words are looked up as they are, in lower case, with digits as 0, or both; others have a row, too."""
    rng = np.random.default_rng(1)
    words = ["the", "The", "straße", "οδος", "x-0", "00", "new", "a.b.", "-0.0e0", "日本語", "york"]
    rows = [f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=5))}" for word in words]
    (tmp_path / "table.vec").write_text("\n".join(rows) + "\n")
    scale = {key: form[key] for key in form if key == "scale"}
    features = [
        {"column": "c0", "lookup": "embeddings", "window": [-2, 0, 1], **scale},
        *WORD_FEATURES,
        {"column": "c2", "type": "real", "window": [0]},
    ]
    monkeypatch.setitem(FEATURES, "embeddings", features)
    monkeypatch.setitem(MORE, "embeddings", {"embeddings": str(tmp_path / "table.vec")})
    options = {key: value for key, value in form.items() if key != "scale"}
    model, corpus = random_model("embeddings", **options)
    compare(model, corpus)
    compare(model, corpus_of(text(5, 20, 3, ["New1", "X-7", "45", "NEW", "ΟΔΟΣ", "A.B.", "unknown", "", "-7.5e1"])))


def wide_model(seed=0):
    """Return a model whose values at 201 distances would take more memory than a tagger has, and data."""
    more = "\t".join("x" * 79)
    lines = text(seed, 20, 8).replace("\tL", f"\t{more}\tL")
    config = {"features": [{"column": "c0", "window": "-100..100"}], "separator": "\t"}
    encoding, dataset = fit_encoding(parse_config(config), corpus_of(lines))
    rng, Y = np.random.default_rng(seed), len(encoding.labels)
    size = ColumnOrder.of(encoding.inputs(dataset, tuple(encoding.names))).size
    term = ExplicitTerm("node", "node", tuple(encoding.names), random_weights(rng, size, Y, True))
    return Model(encoding, (term,), Edges(*(rng.normal(size=shape) for shape in ((Y, Y), Y, Y)))), corpus_of(lines)


def test_what_the_library_refuses_the_model_labels_with_one_note(monkeypatch):
    model, corpus = wide_model()
    with pytest.raises(
        ConfigError, match=r"does not open the model in its form \(no memory .*\): tag with kcrf itself"
    ):
        runtime_image(model)
    notes, rows = [], [rows_of(model, corpus, *span) for span in pairwise(corpus.offsets.tolist())]
    monkeypatch.setattr("kcrf_core.model.library_labels.WEIGHTS_A_POSITION", 1e9)
    library, decoder = LibraryLabels(model, notes.append), Decoder(model, Wishes(), notes.append)
    assert [library.of(rows) for _ in range(3)] == [None] * 3
    assert len(notes) == 1 and "the model itself labels" in notes[0]
    blocks = [decoder.prepared(corpus) for _ in range(2)]
    assert len(notes) == 2 and all(isinstance(block, Dataset) for block in blocks)
    labels = decoder.decode_part(blocks[1], "data").labels
    np.testing.assert_array_equal(labels, model.tag(model.encoding.encode(corpus)))
    with pytest.warns(UserWarning, match="the model itself labels"):
        assert LibraryLabels(model).ready(10) is None


def exact_marginals(scores: np.ndarray, edges: Edges) -> np.ndarray:
    """Return the marginals of a sequence whose potentials are multiples of 1/2, by all labellings in integers."""
    T, Y = scores.shape
    every = np.array(list(product(range(Y), repeat=T)))
    terms = [scores[t, every[:, t]] for t in range(T)] + [edges.start[every[:, 0]], edges.end[every[:, -1]]]
    for t in range(1, T):
        table = edges.transitions if edges.transitions.ndim == 2 else edges.transitions[t]
        terms.append(table[every[:, t - 1], every[:, t]])
        if edges.triples is not None and t > 1:
            terms.append(edges.triples[every[:, t - 2], every[:, t - 1], every[:, t]])
    possible = np.all(np.isfinite(terms), axis=0)
    sums = sum((2 * term[possible]).astype(np.int64) for term in terms)
    p = np.exp((sums - sums.max()) / 2.0)
    p /= p.sum()
    return np.array([np.bincount(every[possible, t], p, Y) for t in range(T)])


def enlarged(model: Model, size: float, of_edges: float, halves: bool) -> Model:
    """Return a model with larger weights and transitions, multiples of 1/2 where scores must be exact."""
    parts = (model.edges.transitions, model.edges.start, model.edges.end, model.edges.triples)
    make = (lambda values: np.round(values) / 2) if halves else np.asarray
    edges = Edges(*(None if part is None else of_edges * make(part) for part in parts))
    terms = (replace(term, weights=SparseWeights.of(size * make(term.weights.dense()))) for term in model.terms)
    return replace(model, edges=edges, terms=tuple(terms))


@pytest.mark.parametrize("name", ["words", "forbidden", "pairs", "second order", "second order with pairs"])
def test_potentials_far_apart(name):
    features, options = MODELS[name]
    model, corpus = random_model(features, **options)
    spans = list(enumerate(pairwise(corpus.offsets.tolist())))[:12]
    for sizes in ((1e2, 1e2), (1e3, 1e3), (1e5, 1e5), (1e17, 1e17), (1e17, 1), (1, 1e17), (1e17, 1e8)):
        large = enlarged(model, *sizes, halves=False)
        tagger, dataset = RuntimeTagger(RuntimeModel(runtime_image(large))), large.encoding.encode(corpus)
        every = large.marginals(dataset)
        for _, (first, last) in spans:
            tagger.set_columns(rows_of(large, corpus, first, last))
            np.testing.assert_allclose(tagger.marginals(), every[first:last], rtol=1e-6, atol=1e-9)
    for sizes in ((1e3, 1e3), (2.0**52, 1), (2.0**52, 2.0**52), (1, 2.0**52), (2.0**52, 2.0**25)):
        large = enlarged(model, *sizes, halves=True)
        tagger, dataset = RuntimeTagger(RuntimeModel(runtime_image(large))), large.encoding.encode(corpus)
        for s, (first, last) in spans:
            tagger.set_columns(rows_of(large, corpus, first, last))
            marginals = tagger.marginals()
            np.testing.assert_allclose(marginals.sum(axis=1), 1, rtol=1e-12)
            if sizes[1] <= 1e3 and name in (
                "words",
                "second order",
            ):  # else messages need more digits than doubles have
                exact = exact_marginals(*large.potentials(dataset.span(s, s + 1)))
                np.testing.assert_allclose(marginals, exact, rtol=1e-9, atol=1e-12)


def test_quantized_weights_are_near():
    model, corpus = random_model("conjunctions", labels=5)
    exact, near = (RuntimeTagger(RuntimeModel(runtime_image(model, form))) for form in ("none", "float32"))
    for first, last in pairwise(corpus.offsets.tolist()):
        rows = rows_of(model, corpus, first, last)
        exact.set_columns(rows)
        near.set_columns(rows)
        np.testing.assert_allclose(near.marginals(), exact.marginals(), atol=1e-6, rtol=0)
    small, large = (len(runtime_image(model, form)) for form in ("float32", "none"))
    assert small < large


def test_a_model_that_is_not_supported_is_refused_by_name():
    model, _ = random_model("words")
    pivots = KernelTerm(
        "similar", "node", ("c0",), PolynomialKernel(2, 1.0, 1.0, 1.0), *[None] * (len(fields(KernelTerm)) - 4)
    )
    with pytest.raises(ConfigError, match="term 'similar' has pivots"):
        runtime_image(replace(model, terms=(pivots,)))
    cosine = replace(model.terms[0], cosine=True)
    with pytest.raises(ConfigError, match="term 'term0' has a cosine kernel"):
        runtime_image(replace(model, terms=(cosine,)))
    with pytest.raises(ConfigError, match="'line' takes the strings of a line of a template for categories"):
        runtime_image(random_model("line")[0])
    config = parse_config({"features": [{"name": "long", "column": "c0", "transform": "length"}], "separator": "\t"})
    encoding, _ = fit_encoding(config, corpus_of(text(0, 9, 2)))
    with pytest.raises(ConfigError, match="feature 'long' is made of numbers by 'length'"):
        runtime_image(replace(model, encoding=encoding, terms=()))


def shape(value: str) -> str:
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in value)
    return "".join(kind for kind, _ in groupby(kinds))


def between_edges(value: str) -> str:
    inner = [place for place, c in enumerate(value) if c.isupper() or c.isalpha() or c.isdigit()]
    return value[inner[0] : inner[-1] + 1] if inner else ""


def edges(value: str) -> str:
    word = between_edges(value)
    return value.replace(word, "x", 1) if word else value


def kind(value: str) -> str:
    word = between_edges(value)
    marks = "".join("X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else "." for c in word)
    return matching(f"{word if word.isdigit() or word[:-1].isdigit() else ''} {marks}")


@cache
def matching(word_and_marks: str) -> str:
    return next(name for pattern, name in KINDS if re.fullmatch(pattern, word_and_marks, re.DOTALL))


KINDS = [(" ", ""), (r"(1[4-9]|20)[0-9][0-9][a-z]? d{4}x?", "year")]
KINDS += [(rf".* d{{{count}}}", "d" * count) for count in (1, 2, 3, 4)] + [(".* d{5,}", "ddddd")]
KINDS += [(r".* d+\.+d+", "range"), (r".* [d.]+", "digits"), (".* .*d.*", "mixed"), (".* [xX]", "letter")]
KINDS += [(r".* ([xX]\.+)+[xX]", "initials"), (r".* [X.]+", "capitals"), (".* X.*", "capital"), (".*", "word")]
CHARACTERS = {"lower": str.lower, "shape": shape, "edges": edges, "kind": kind}
CHARACTERS["stripped"] = lambda value: (between_edges(value) or value).lower()


@pytest.mark.skipif(unicodedata.unidata_version != VERSION, reason=f"this Python does not have Unicode {VERSION}")
@pytest.mark.parametrize("end", [0x0600, pytest.param(0x110000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", CHARACTERS)
def test_every_character_is_as_in_python(kind, end):
    every = [chr(c) for c in range(end) if not 0xD800 <= c < 0xE000]
    for values in (every, [f"Aa{c}\u03a3" for c in every], [f"\u03a3{c}a" for c in every]):
        assert by_characters(values, kind) == list(map(CHARACTERS[kind], values))


@pytest.mark.parametrize("kind", CHARACTERS)
def test_transforms_of_random_texts_are_as_in_python(kind, rng):
    letters = [*"aZéΣß中19٣.,-()– '_", "12", "19", "20", "e\u0301"]
    values = ["", *("".join(rng.choice(letters, size)) for size in rng.integers(1, 9, 3000))]
    assert by_characters(values, kind) == list(map(CHARACTERS[kind], values))


def test_damaged_files_are_refused():
    model, _ = random_model("conjunctions")
    data = runtime_image(model)
    for bad, message in (
        (b"", "not a model"),
        (b"PK" + data[2:], "not a model"),
        (data[:-8], "cut off"),
        (data[:8] + struct.pack("<I", 99) + data[12:], "version 99"),
        (data[:40] + b"\xff" * 8 + data[48:], "damaged"),
    ):
        with pytest.raises(ValueError, match=message):
            RuntimeModel(bad)


def section(data: bytes, name: str) -> tuple[int, int]:
    """Return the place of a section in a file, and its number of items."""
    return struct.unpack_from("<QQ", data, 24 + 24 * SECTIONS.index(name) + 8)


def test_sizes_that_a_damaged_file_asks_for_are_refused():
    """Sums beyond the ends would take two hundred thousand rows of labels for each distance."""
    model, _ = random_model("words", labels=90)
    data = bytearray(runtime_image(model))
    struct.pack_into("<I", data, section(data, "meta")[0] + 4 * META.index("reach"), 100_000)
    first, count = section(data, "fields")
    for place in range(first, first + 24 * count, 24):
        struct.pack_into("<II", data, place + 8, 0, 0)  # all codes have the same row
    made = RuntimeModel(bytes(data))
    with pytest.raises(MemoryError):
        RuntimeTagger(made)


def states_changed(P: int, Y: int) -> dict[str, Callable[[np.ndarray], None]]:
    """Return changes of a section of states: first and second labels [P], begin [Y+1], into [P], into_begin, block."""
    begin, into, into_begin, block = 2 * P, 2 * P + Y + 1, 3 * P + Y + 1, 3 * P + 2 * (Y + 1)

    def swap(a, b):
        def change(states):
            states[[a, b]] = states[[b, a]]

        return change

    def put(at, value):
        return lambda states: states.__setitem__(at, value)

    return {
        "first label of another block": swap(0, P - 1),
        "second labels that do not ascend": swap(P, P + 1),
        "second label twice": lambda states: states.__setitem__(P, states[P + 1]),
        "second label too large": put(P, Y),
        "into: a state twice": lambda states: states.__setitem__(into, states[into + 1]),
        "into: states of another label": swap(into, into + P - 1),
        "into: negative": put(into, -1),
        "begin: descends": put(begin + 1, P + 1),
        "into_begin: not from 0": put(into_begin, 1),
        "block: another size": lambda states: states.__setitem__(block + 1, states[block + 1] + 1),
    }


@pytest.mark.parametrize("what", states_changed(0, 0))
def test_states_that_do_not_fit_each_other_are_refused(what):
    data = bytearray(runtime_image(random_model("words", order=2, forbidden=True)[0]))
    Y, P = 3, struct.unpack_from("<I", data, section(data, "meta")[0] + 4 * META.index("pair_states"))[0]
    at, count = section(data, "states")
    states = np.frombuffer(data, "<i4", count, at)
    RuntimeModel(bytes(data))
    states_changed(P, Y)[what](states)
    with pytest.raises(ValueError, match="damaged: transitions"):
        RuntimeModel(bytes(data))


def test_a_bag_that_a_term_has_twice_is_refused():
    """Room for the features of a position was that of one bag."""
    data = bytearray(runtime_image(random_model("distinct lines", degree=3)[0]))
    at, count = section(data, "fields")
    families = section(data, "families")[0]
    rows = [data[place : place + 24] for place in range(at, at + 24 * count, 24)]
    (bag,) = (row for row in rows if data[families + 56 * struct.unpack_from("<I", row)[0]] == BAG)
    data[at : at + 24 * count] = bag * count
    with pytest.raises(ValueError, match="damaged: a term"):
        RuntimeModel(bytes(data))


def test_models_store_the_version_of_unicode_and_training_uses_it():
    for features, version in (("words", VERSION), ("line", None)):
        model, _ = random_model(features)
        assert model.encoding.pack()[0]["encoding"].get("unicode") == version
    assert by_characters(["a\ud800B", "\u0130", ""], "lower") == ["a\ud800b", "i\u0307", ""]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(4096 if rng.random() < 0.3 else len(out)))
        width = min(1 << int(rng.integers(4)), len(out) - at)
        odd = [0, 1, 0x7F, 0xFF, 0x80000000, 0xFFFFFFFF, int(rng.integers(1 << 62))][rng.integers(7)]
        out[at : at + width] = odd.to_bytes(8, "little")[:width]
    return bytes(out)


@pytest.mark.parametrize("name", ["conjunctions", "numbers", "templates", "lexicon", "second order with pairs"])
def test_damaged_files_are_used_without_harm(name):
    features, options = MODELS[name]
    model, corpus = random_model(features, **options)
    data, rng, opened = runtime_image(model), np.random.default_rng(3), 0
    rows = rows_of(model, corpus, 0, int(corpus.offsets[3]))
    for _ in range(60):
        try:
            opened_model = RuntimeModel(damaged(data, rng))
            tagger = RuntimeTagger(opened_model)
            opened += 1
            opened_model.unseen(rows)
            tagger.set_columns(rows)
            tagger.labels()
            tagger.marginals()
        except (ValueError, OverflowError, MemoryError):
            pass
    assert opened > 10


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_damaged_files_under_sanitizers():
    """`make fuzz-runtime` does more of it, with the library and with kcrf-tag, also under the sanitizer of threads."""
    program = Path(__file__).parents[1] / "runtime" / "fuzz.py"
    subprocess.run([sys.executable, program, "--files", "2500"], check=True)


def numbers_read(cells: list[str], scale: float) -> np.ndarray:
    """Return numbers of cells, divided by a power of two, as the library reads them."""
    model, _ = random_model("one number")
    term = replace(model.terms[0], weights=SparseWeights.of(np.ones(model.terms[0].weights.shape)))
    data = bytearray(runtime_image(replace(model, terms=(term,))))
    (place,) = struct.unpack_from("<Q", data, section(data, "families")[0] + 48)
    struct.pack_into("<2d", data, section(data, "numbers")[0] + 8 * place, 0.0, scale)  # mean and scale
    tagger = RuntimeTagger(RuntimeModel(bytes(data)))
    tagger.set_columns([["", "", cell] for cell in cells])
    return tagger.scores()[:, 0]


def many_numbers() -> list[str]:
    """Return numbers of up to 25 digits, points between two doubles with their neighbours, subnormal and large ones."""
    rng, out = np.random.default_rng(5), []
    for bits in rng.integers(1 << 63, size=400, dtype=np.uint64):
        value = abs(float(bits.view(np.float64)))
        if not np.isfinite(value) or value > 1e308:
            continue
        halfway = (Decimal(value) + Decimal(float(np.nextafter(value, np.inf)))) / 2
        digits = f"{halfway:.800e}" if bits % 2 else f"{halfway:f}"
        out += [repr(value), f"{value:.16e}", f"{value:+.24e}", digits, f"{digits}1" if "e" not in digits else digits]
        out.append(f"-{''.join(map(str, rng.integers(10, size=17)))}.{rng.integers(10**8)}E{rng.integers(-320, 290)}")
    zeros = "0" * 1500
    out += ["5e-324", "2.4703282292062328e-324", "2.4703282292062327e-324", "1.7976931348623157e308", "0e99999999999"]
    out += ["2.2250738585072011e-308", "2.2250738585072014e-308", "9007199254740993", "9007199254740993." + zeros + "1"]
    out += [f"0.{zeros}12345678901234567e1501", f"1{zeros}e-1500", f"-.{zeros}1", "1e-999999999999999999999", "1.e5"]
    return out


def test_numbers_are_rounded_correctly():
    """Quotients by a power of two are exact: Python's numbers, which are rounded correctly, have the same bits."""
    by_scale: dict[float, list[str]] = {}
    for cell in many_numbers():
        size = abs(float(cell))
        by_scale.setdefault(2.0**-1000 if size < 1e-290 else 1.0 if size < 1 else 2.0**1000, []).append(cell)
    assert min(map(len, by_scale.values())) > 50
    for scale, cells in by_scale.items():
        wanted = np.array([float(cell) for cell in cells]) / scale
        wanted += 0.0  # a sum of scores has no negative zero
        np.testing.assert_array_equal(numbers_read(cells, scale).view(np.uint64), wanted.view(np.uint64))


@pytest.mark.parametrize(
    "cell", ["0x10", "inf", "-nan", "1e400", "-1.8e308", "1,5", "1_0", "1e", "1e+", ".", "+-1", " 1"]
)
def test_cells_that_are_no_finite_numbers(cell):
    with pytest.raises(ValueError, match="is not a number"):
        numbers_read([cell], 1.0)


@pytest.mark.skipif(shutil.which("localedef") is None, reason="there is no program to make a locale with")
def test_numbers_do_not_depend_on_the_locale(tmp_path, monkeypatch):
    """In many locales strtod expects a decimal comma."""
    (tmp_path / "source").write_text('LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3\nEND LC_NUMERIC\n')
    command = ["localedef", "-c", "--no-archive", "-i", "source", "-f", "ANSI_X3.4-1968", "./comma"]
    subprocess.run(command, cwd=tmp_path, capture_output=True)  # it warns of what the locale lacks
    before = locale.setlocale(locale.LC_ALL)  # `localeconv` changes LC_CTYPE for a moment, and may not find it again
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    try:
        locale.setlocale(locale.LC_NUMERIC, "comma")
        assert locale.localeconv()["decimal_point"] == ","
        assert numbers_read(["1.2345678901234567", "123.5e-60"], 1.0).tolist() == [1.2345678901234567, 123.5e-60]
        with pytest.raises(ValueError, match="is not a number"):
            numbers_read(["1,2345678901234567"], 1.0)
    except locale.Error:
        pytest.skip("this system does not take the locale")
    finally:
        monkeypatch.delenv("LOCPATH")
        locale.setlocale(locale.LC_ALL, before)


@pytest.mark.parametrize(
    "name", ["words", "conjunctions", "far parts", "templates", "numbers", "lexicon", "attributes"]
)
def test_values_that_training_did_not_have_are_counted(name):
    """Columns with a feature of their values and attributes are looked up; numbers, templates and lexicons are not."""
    model, corpus = random_model(name)
    known: dict[object, set[str]] = {}
    for feature in model.encoding.features:
        config = feature.config
        if name == "attributes":
            known[None] = set(feature.vocabulary.values)
        elif (config.type, config.transform, config.lookup, config.parts) == ("categorical", "identity", None, ()):
            known.setdefault(feature.column, set(feature.vocabulary.values))
    assert known
    own, totals = RuntimeModel(runtime_image(model)), np.zeros(2, int)
    for first, last in pairwise(corpus.offsets.tolist()):
        rows = rows_of(model, corpus, first, last)
        if name == "attributes":
            looked = [(value, known[None]) for row in rows for value in row]
        else:
            looked = [(row[c], values) for row in rows for c, values in known.items()]
        wanted = sum(value not in values for value, values in looked), len(looked)
        assert own.unseen(rows) == wanted
        totals += wanted
    assert totals[0] < totals[1] and (totals[0] > 0 or name in ("templates", "lexicon", "attributes"))
    assert own.unseen([]) == (0, 0)
    if name == "attributes":
        assert own.unseen([{"never": 1.0}, ["never", *list(known[None])[:2]]]) == (2, 4)


def test_lower_case_alone_counts_as_it_is_looked_up():
    training = corpus_of(text(0, 9, 2, ["The", "Straße"]))
    config = {"features": [{"name": "low", "column": "c0", "transform": "lower", "window": [0]}], "separator": "\t"}
    encoding, _ = fit_encoding(parse_config(config), training)
    term = ExplicitTerm("node", "node", ("low",), SparseWeights.of(np.ones((2, 1))))
    edges = Edges(np.zeros((2, 2)), np.zeros(2), np.zeros(2), None)
    model = RuntimeModel(runtime_image(Model(encoding, (term,), edges)))
    assert model.unseen([["THE", "A", "1"], ["STRASSE", "A", "1"], ["straße", "A", "1"]]) == (1, 3)
    with pytest.raises(TypeError):
        model.unseen([["the", "A", 1]])


def test_mistakes_of_callers_are_errors():
    model, _ = random_model("numbers")
    tagger = RuntimeTagger(RuntimeModel(runtime_image(model)))
    with pytest.raises(ValueError, match="no sequence is set"):
        tagger.labels()
    with pytest.raises(ValueError, match="2 columns, expected 3"):
        tagger.set_columns([["a", "b"]])
    with pytest.raises(ValueError, match="position 2: 'x' in column 'c2' is not a number"):
        tagger.set_columns([["a", "A", "1"], ["a", "A", "x"]])
    with pytest.raises(ValueError, match="the model labels positions with columns"):
        tagger.set_attributes([{"a": 1.0}])
    with pytest.raises(TypeError, match="a text, not int"):
        tagger.set_columns([["a", "A", 1]])
    with pytest.raises(UnicodeEncodeError):
        tagger.set_columns([["a", "half \ud800", "1"]])
    tagger.set_columns([])
    assert len(tagger.labels()) == 0


class Faulty:
    """An item, or a row, that sets a sequence of the tagger and then fails."""

    def __init__(self, act):
        self.act = act

    def __iter__(self):
        self.act()
        raise KeyError("row")


@pytest.mark.parametrize("name", ["numbers", "attributes"])
def test_no_results_are_left_of_a_sequence_before_one_that_is_refused(name):
    model, corpus = random_model(name)
    tagger, rows = RuntimeTagger(RuntimeModel(runtime_image(model))), rows_of(model, corpus, 0, int(corpus.offsets[1]))
    put = tagger.set_columns if name == "numbers" else tagger.set_attributes
    bad = [None, [5], [*rows, None], [Faulty(lambda: put(rows))]]
    bad += (
        [[["a", "A", "x"]], [["a"]], [["a", "\ud800", "1"]]] if name == "numbers" else [[{"a": 1e300}], [{"a": []}, 1]]
    )
    results = (tagger.label_names, tagger.labels, tagger.scores, tagger.marginals)
    for wrong in bad:
        put(rows)
        assert len(tagger.label_names()) == len(rows)
        with pytest.raises((TypeError, ValueError, KeyError)):
            put(wrong)
        assert len(tagger) == 0
        for result in (*results, lambda: tagger.log_probability([])):
            with pytest.raises(ValueError, match="no sequence is set"):
                result()
    put([])
    assert tagger.label_names() == [] and tagger.log_probability([]) == 0


def test_sequences_that_are_not_as_long_as_they_say():
    class Row(list):
        def __iter__(self):
            return iter(["x"] * 1000)

    tagger, row = RuntimeTagger(RuntimeModel(runtime_image(random_model("words")[0]))), ["the", "N", ""]
    tagger.set_columns([tuple(row), row])
    assert len(tagger) == 2
    with pytest.raises(ValueError, match="1000 columns, expected 3"):
        tagger.set_columns([row, Row(row)])
    with pytest.raises(TypeError, match="not int"):
        tagger.set_columns([["the", 3, ""]])


def test_rows_of_weights_and_names_are_checked():
    ends, labels, weights = np.array([0, 2, 2, 3]), np.array([2, 0, 5], np.int32), np.array([1.0, 2.0, 3.0])
    starts, columns, values = weight_rows(6, ends, labels, weights, np.array([2, -1, 0]), 10, 4)
    assert starts.tolist() == [10, 11, 11, 17]
    assert columns.tolist() == [5, 0, 0, 2, 0, 0, 0] and values.tolist() == [3, 2, 0, 1, 0, 0, 0]
    for width, rows, some in ((5, [2], ends), (6, [3], ends), (6, [0], ends + 1)):
        with pytest.raises(ValueError, match=r"not there|fewer rows|do not fit"):
            weight_rows(width, some, labels, weights, np.array(rows), 0, 4)
    with pytest.raises(ValueError, match="names do not fit"):
        text_table(np.zeros(5, np.uint8), np.array([3]), np.array([3]), np.zeros(1, np.uint32), 0)


SECTION_DAMAGE = {
    "none": (lambda sections: sections.clear(), "0 sections, expected 16"),
    "one less": (lambda sections: sections.pop(), "15 sections"),
    "no description": (lambda sections: sections.__setitem__(0, (0, b"")), "no description"),
    "a label beyond the text": (lambda sections: sections.__setitem__(1, (4, b"\0X\0Y")), "a name"),
    "rows that are not there": (lambda sections: sections.__setitem__(9, (0, b"")), "a term"),
}


@pytest.mark.parametrize("change, message", SECTION_DAMAGE.values(), ids=SECTION_DAMAGE)
def test_models_open_by_their_sections(change, message):
    """Sections stand anywhere; what they hold is checked as in a file."""
    text, double = b"X\0Y\0a\0bb\0", array("d", [0.5, -0.5, 1.0])
    names = text, array("q", [4, 6]), array("q", [1, 2])
    weights = 2, array("q", [0, 2, 3]), array("i", [0, 1, 1]), double
    sections = attribute_sections("XY", array("I", [0, 1, 2, 1]), names, weights, array("d", [0.0, 0.25, 0.0, 0.0]))
    tagger = RuntimeTagger(RuntimeModel(sections))
    tagger.set_attributes([{"a": 1.0}, {"bb": 2.0, "b": 9.0}])
    assert tagger.label_names() == ["X", "Y"]
    np.testing.assert_allclose(tagger.scores(), [[0.5, -0.5], [0.0, 2.0]], rtol=1e-15)
    change(sections)
    with pytest.raises(ValueError, match=message):
        RuntimeModel(sections)


def test_threads_with_taggers_of_their_own_agree():
    model, _ = random_model("words", labels=12)
    made, rng = RuntimeModel(runtime_image(model)), np.random.default_rng(4)
    rows = [[WORDS[k], TAGS[k % 5], ""] for k in rng.integers(len(WORDS), size=2000)]
    tagger = RuntimeTagger(made)
    tagger.set_columns(rows)
    labels, marginals = tagger.labels(), tagger.marginals()

    def work(_):
        own = RuntimeTagger(made)
        own.set_columns(rows)
        return own.labels(), own.marginals()

    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(work, range(6)):
            np.testing.assert_array_equal(found[0], labels)
            np.testing.assert_array_equal(found[1], marginals)


def test_labels_of_a_corpus():
    for name in ("words", "attributes"):
        model, corpus = random_model(name)
        labels = library_labels(runtime_image(model), model.encoding, corpus)
        np.testing.assert_array_equal(labels, model.tag(model.encoding.encode(corpus)))


def test_an_estimator_takes_the_quick_way_where_it_pays(monkeypatch):
    words, tags = [["the", "cat"], ["a", "dog", "ran"], ["ran"]], [["D", "N"], ["D", "N", "V"], ["V"]]
    X = [[{"w": w, "b": 2.0} for w in one] for one in words]
    made = []
    monkeypatch.setattr("kcrf_core.model.runtime_files.runtime_image", lambda m: made.append(m) or runtime_image(m))
    monkeypatch.setattr("kcrf_core.model.library_labels.WEIGHTS_A_POSITION", 0.1)
    crf = KernelCRF(sigma2=1.0).fit(X, tags)
    slow = crf.predict(X)  # the first call
    assert not made
    for _ in range(3):
        assert [crf.predict_single(one) for one in X] == slow
    assert len(made) == 1
    again = pickle.loads(pickle.dumps(crf))
    assert [again.predict([one])[0] for one in [*X, *X]] == [*slow, *slow]
    assert crf.predict([]) == []
    assert crf.predict([[], X[0]]) == [[], slow[0]]
    assert len(crf.predict([[{"w": "half \ud800"}]])[0]) == 1  # no UTF-8: the model itself takes it


def test_labels_of_the_library_are_those_of_the_model():
    for name in ("words", "attributes", "numbers"):
        model, corpus = random_model(name)
        library, best = LibraryLabels(model), model.tag(model.encoding.encode(corpus))
        X = [rows_of(model, corpus, *span) for span in pairwise(corpus.offsets.tolist())]
        library.pays = len(best) + 1
        assert library.of(X) is None
        found = library.of(X)
        if name == "numbers":  # whose columns need not be text
            assert found is None
            continue
        np.testing.assert_array_equal(found, best)
        np.testing.assert_array_equal(library.of([np.array(X[0], dtype=object), *X[1:]]), best)
        assert library.of([[3]]) is None


def test_threads_make_the_form_of_the_library_once(monkeypatch):
    model, corpus = random_model("words")
    made = []

    def slowly(*arguments):
        made.append(arguments)
        time.sleep(0.02)
        return runtime_image(*arguments)

    monkeypatch.setattr("kcrf_core.model.runtime_files.runtime_image", slowly)
    library = LibraryLabels(model)
    X = [rows_of(model, corpus, *span) for span in pairwise(corpus.offsets.tolist())]
    library.pays = 0
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: library.of(X), range(8)))
    best = model.tag(model.encoding.encode(corpus))
    assert len(made) == 1
    assert all((labels == best).all() for labels in found)


@pytest.mark.parametrize("name", ["words", "conjunctions", "posterior", "numbers", "attributes", "degree 2"])
def test_large_blocks_are_labelled_as_by_the_model(name):
    features, options = MODELS[name]
    model, _ = random_model(features, **options)
    form, make = ("crfsuite", attributes) if name == "attributes" else ("conll", text)
    (parsed,) = FORMATS[form].parse(blocks(io.BytesIO(make(9, 1800, 3).encode()), "data"), "data")
    decoder = Decoder(model, Wishes())
    block = decoder.prepared(parsed.corpus)
    assert isinstance(block, CorpusPart) == (name not in ("numbers", "degree 2"))  # that is slower in the library
    found = [decoder.decode_part(block.span(*chunk), "data").labels for chunk in decoder.chunks(block)]
    wanted = model.tag(model.encoding.encode(parsed.corpus))
    np.testing.assert_array_equal(np.concatenate(found), wanted)


@pytest.mark.parametrize("sparse", [True, False])
def test_the_library_labels_where_its_form_of_the_model_pays(monkeypatch, sparse):
    model, _ = random_model("words", sparse=sparse)
    (parsed,) = FORMATS["conll"].parse(blocks(io.BytesIO(text(9, 1800, 3).encode()), "data"), "data")
    weights = sum(held_values(term.weights).size for term in model.terms)
    for positions, by_library in ((1.5, [False, True, True]), (1, [True, True, True]), (1e9, [False] * 3)):
        rate = weights / (positions * parsed.corpus.positions)
        monkeypatch.setattr("kcrf_core.model.library_labels.WEIGHTS_A_POSITION", rate)
        decoder = Decoder(model, Wishes())
        assert [isinstance(decoder.prepared(parsed.corpus), CorpusPart) for _ in range(3)] == by_library
    decoder = Decoder(model, Wishes(marginals=True))
    assert isinstance(decoder.prepared(parsed.corpus), Dataset)
