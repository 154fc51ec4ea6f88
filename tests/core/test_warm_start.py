"""Starting from an earlier model: the same optimum, sooner; labels and values found again by name."""

from __future__ import annotations

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.config import parse_config
from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.encoding import fit_encoding, translation
from kcrf_core.errors import ConfigError
from kcrf_core.features import ConjunctionTerm
from kcrf_core.kernels import UNSEEN
from kcrf_core.training import WarmStart
from listening import Recorder

TIGHT = {"sigma2": 1.0, "tolerance": 1e-7, "precision": "double"}

SETTINGS = [{}, {"kernel": "rbf", "size": 40}, {"kernel": "poly", "map": "full"}]


class Notes(Recorder):
    def about(self, word):
        return [text for text in self.notes if word in text]


def relabelled(corpus, names):
    """The same with other names of labels."""
    *columns, labels = corpus.columns
    renamed = [names.get(label, label) for label in labels]
    return Corpus(corpus.source, (*columns, renamed), corpus.offsets, corpus.lines, None, corpus.attributes)


def with_words(corpus, words):
    return Corpus(corpus.source, (words, *corpus.columns[1:]), corpus.offsets, corpus.lines)


def as_attributes(corpus):
    names = [name for t in range(corpus.positions) for name in (f"w={corpus.columns[0][t]}", "bias")]
    rows = AttributeRows(np.arange(0, len(names) + 1, 2), names, np.ones(len(names)))
    return Corpus("toy.crfsuite", (corpus.columns[-1],), corpus.offsets, corpus.lines, None, rows)


# ----------------------------------------------------------------------------- translation

EVERY_KIND = {
    "features": [
        {"column": "c0"},
        {"column": "c0", "transform": "suffix", "length": 1, "window": [0]},
        {"column": "c1", "type": "real", "window": [-1, 0]},
        {"conjunction": ["c0", "c0[-1]"], "window": [0, 1]},
        {"conjunction": ["c0", "c0[1]", "c0.suffix1"]},
    ]
}


@pytest.mark.parametrize("make", [lambda corpus: corpus, as_attributes])
def test_translated_inputs_are_those_that_the_other_encoding_gives(rng, make):
    """Two encodings fitted to different parts: what one says of a corpus, translated, is what the other says of it."""
    corpus = toy_corpus(rng, 60)
    words = [f"{word}{'x' if t % 11 == 0 else ''}" for t, word in enumerate(corpus.columns[0])]
    corpus = make(with_words(corpus, words))
    config = parse_config(EVERY_KIND if corpus.attributes is None else {})
    here, there = (fit_encoding(config, corpus.subset(part))[0] for part in (range(40), range(10, 60)))
    # Words and conjunctions that `here` lacks have no name to be translated by: compare where it knows them all.
    inputs = here.inputs(here.encode(corpus), here.names)
    expected = there.inputs(there.encode(corpus), there.names)
    translated = translation(here, here.names, there, there.names).inputs(inputs)
    rows = np.flatnonzero((inputs.unseen == 0) & (inputs.codes != UNSEEN).all(axis=1))
    assert len(rows) > 50
    np.testing.assert_array_equal(translated.codes[rows], expected.codes[rows])
    np.testing.assert_array_equal(translated.unseen[rows], expected.unseen[rows])
    if expected.bag is not None:
        np.testing.assert_array_equal(translated.bag[rows].toarray(), expected.bag[rows].toarray())
    inside = rows[~np.isin(rows, corpus.offsets[:-1])]  # beyond the ends both have their own mean
    np.testing.assert_allclose(translated.real[inside], expected.real[inside], rtol=1e-9, atol=1e-12)


def test_features_of_another_meaning_are_not_matched(rng):
    corpus = toy_corpus(rng, 5)
    plain = fit_encoding(parse_config({"features": [{"name": "f", "column": "c0"}]}), corpus)[0]
    lower = fit_encoding(parse_config({"features": [{"name": "f", "column": "c0", "transform": "lower"}]}), corpus)[0]
    assert translation(plain, ["f"], lower, ["f"]).fields == ()
    assert (translation(plain, ["f"], lower, ["f"]).explicit_columns()[0] == -1).all()


# ----------------------------------------------------------------------------- the start


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", "abc"])
def test_the_same_data_needs_few_passes(rng, options, labels):
    corpus = toy_corpus(rng, 60, labels)
    old, first = fit(corpus, options | TIGHT)
    _, again = fit(corpus, options | TIGHT, start=WarmStart(old))
    # Not one alone: what proved the optimum was a bundle of points, and it is gone.
    assert again.result.reason == "certified" and again.result.passes < first.result.passes / 2
    np.testing.assert_allclose(again.result.value, first.result.value, rtol=2e-7)


@pytest.mark.parametrize("options", SETTINGS)
def test_a_little_more_data_has_the_same_optimum_sooner(rng, options):
    corpus = toy_corpus(rng, 120)
    old, _ = fit(corpus.subset(range(118)), options | TIGHT)
    _, cold = fit(corpus, options | TIGHT)
    _, warm = fit(corpus, options | TIGHT, start=WarmStart(old))
    np.testing.assert_allclose(warm.result.value, cold.result.value, rtol=2e-7)
    loose = options | {"sigma2": 1.0}
    assert fit(corpus, loose, start=WarmStart(old))[1].result.steps < fit(corpus, loose)[1].result.steps


def start_scores(old, corpus, options):
    """Scores and edges of a model that was started from `old` and stopped at once."""
    model, _ = fit(corpus, options | {"max_passes": 1, "precision": "double"}, start=WarmStart(old))
    return model.potentials(model.encoding.encode(corpus))


def centred(scores):
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("options", [{"sigma2": 1.0}, {"sigma2": 1.0, "kernel": "rbf", "map": "full"}])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"c": "a"}, {}),
        ({}, {"c": "a"}),
        ({"a": "z"}, {"a": "z", "b": "y"}),
        ({"c": "a"}, {"c": "a", "b": "0"}),
    ],
)
def test_labels_are_found_again_by_name(rng, options, before, after):
    """From two labels to three and back, and in another order: known labels keep their scores."""
    corpus = toy_corpus(rng, 30)
    first, second = relabelled(corpus, before), relabelled(corpus, after)
    old, _ = fit(first, options)
    scores, edges = start_scores(old, second, options)
    expected, old_edges = old.potentials(old.encoding.encode(first))
    new_labels = sorted(set(second.columns[-1]))
    full = np.zeros((corpus.positions, len(new_labels)))
    pairs = np.zeros((len(new_labels),) * 2)
    number = {label: y for y, label in enumerate(old.labels)}
    for y, label in enumerate(new_labels):
        full[:, y] = expected[:, number[label]] if label in number else 0
        for z, other in enumerate(new_labels):
            if {label, other} <= set(number):
                pairs[y, z] = old_edges.transitions[number[label], number[other]]
    np.testing.assert_allclose(centred(scores), centred(full), atol=1e-6)
    np.testing.assert_allclose(edges.transitions, pairs, atol=1e-12)


def test_second_order_and_edge_x_terms_carry_over(rng):
    raw = {"terms": [{"name": "n"}, {"name": "x", "type": "edge-x", "features": ["c0"]}, {"type": "edge"},
                     {"type": "edge2"}]}  # fmt: skip
    corpus = toy_corpus(rng, 30)
    old, first = fit(corpus, TIGHT, raw)
    _, again = fit(corpus, TIGHT, raw, start=WarmStart(old))
    assert again.result.passes <= 3 < first.result.passes


def test_forbidden_transitions_count_as_zero(rng):
    corpus = toy_corpus(rng, 30)
    old, _ = fit(corpus.subset(range(3)), {"sigma2": 1.0, "observed_transitions": True})
    assert np.isneginf(old.edges.transitions).any()
    model, report = fit(corpus, TIGHT, start=WarmStart(old))
    assert np.isfinite(model.edges.transitions).all()
    np.testing.assert_allclose(report.result.value, fit(corpus, TIGHT)[1].result.value, rtol=2e-7)


WORDS = {"features": [{"column": "c0"}]}


@pytest.mark.parametrize(("before", "after"), [(2, 2), (3, 3), (3, 2), (2, 3)])
def test_conjunctions_are_found_again_by_their_features(rng, before, after):
    """The scores of the start are those of the model at every training position, merged columns or not."""
    corpus = toy_corpus(rng, 40)
    part = corpus.subset(range(30))
    old, _ = fit(part, {"kernel": "poly", "degree": before, "sigma2": 1.0}, WORDS)
    assert isinstance(old.terms[0], ConjunctionTerm)
    options = {"kernel": "poly", "degree": after, "sigma2": 1.0, "max_passes": 1, "precision": "double"}
    model, _ = fit(corpus, options, WORDS, start=WarmStart(old))
    expected, scores = (one.potentials(one.encoding.encode(part))[0] for one in (old, model))
    if after >= before:
        np.testing.assert_allclose(centred(scores), centred(expected), atol=1e-6)
    else:  # what three features say together is lost
        assert np.corrcoef(scores.ravel(), expected.ravel())[0, 1] > 0.9


def test_conjunctions_with_the_same_data_need_hardly_a_pass(rng):
    corpus = toy_corpus(rng, 40)
    old, first = fit(corpus, {"kernel": "poly"} | TIGHT, WORDS)
    notes = Notes()
    _, again = fit(corpus, {"kernel": "poly"} | TIGHT, WORDS, start=WarmStart(old), observer=notes)
    assert again.result.passes <= 3 < first.result.passes and "conjunctions" in notes.about("starting")[0]


def test_it_says_what_is_new(rng):
    corpus = relabelled(toy_corpus(rng, 40), {})
    old, _ = fit(corpus, {"sigma2": 1.0})
    words = ["new" if word == "w0" else word for word in corpus.columns[0]]
    notes = Notes()
    fit(relabelled(with_words(corpus, words), {"c": "z"}), {"sigma2": 1.0}, start=WarmStart(old, "m"), observer=notes)
    [told] = notes.about("starting from")
    # Five offsets of ten symbols, w0 being gone and `new` come, and a number.
    assert "2 of 3 labels" in told and "46 of 51 features" in told and "term edge" in told


def test_a_start_that_is_worse_than_none_is_not_used(rng):
    corpus = toy_corpus(rng, 60)
    old, _ = fit(relabelled(corpus, {"a": "b", "b": "c", "c": "a"}), {"sigma2": 100.0})
    notes = Notes()
    _, report = fit(corpus, TIGHT, start=WarmStart(old, "m"), observer=notes)
    assert notes.about("not used")
    np.testing.assert_allclose(report.result.value, fit(corpus, TIGHT)[1].result.value, rtol=2e-7)


@pytest.mark.slow
def test_sigma2_is_taken_over_unless_asked_for_again(rng):
    corpus = toy_corpus(rng, 120)
    old, first = fit(corpus)
    _, again = fit(corpus, start=WarmStart(old))
    assert again.path == () and again.sigma2 == first.sigma2
    _, searched = fit(corpus, start=WarmStart(old, search_prior=True))
    assert searched.path == first.path
    _, given = fit(corpus, {"sigma2": 7.0}, start=WarmStart(old))
    assert given.sigma2 == {"node": 7.0, "edge": 7.0}
    # Another kernel has other units.
    _, other = fit(corpus, {"kernel": "rbf", "size": 30}, start=WarmStart(old))
    assert other.path and other.sigma2["edge"] == first.sigma2["edge"]


def test_models_of_other_columns_are_refused(rng):
    corpus = toy_corpus(rng, 10)
    old, _ = fit(corpus, {"sigma2": 1.0})
    config = parse_config({"columns": ["word", "number", "label"]})
    with pytest.raises(ConfigError, match="other columns: c0, c1, label there, word, number, label here"):
        WarmStart(old, "m.npz").check_columns(fit_encoding(config, corpus)[0])
    with pytest.raises(ConfigError, match="trained on conll data"):
        WarmStart(old, "m.npz").check_columns(fit_encoding(parse_config({}), as_attributes(corpus))[0])


def test_the_decoder_of_the_earlier_model_stays(rng):
    corpus = toy_corpus(rng, 30)
    earlier, _ = fit(corpus, TIGHT | {"decode": "posterior"})
    again, report = fit(corpus, {"tolerance": 1e-3}, start=WarmStart(earlier))
    assert again.decode == report.decoder.decode == "posterior"  # sigma2 is taken over, too: nothing was held out
    other, _ = fit(corpus, {"decode": "viterbi"}, start=WarmStart(earlier))
    assert other.decode == "viterbi"
