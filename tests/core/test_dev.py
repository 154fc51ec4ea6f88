"""Held-out data that the model is scored on."""

from __future__ import annotations

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import ConjunctionTerm
from kcrf_core.scoring import evaluation
from kcrf_core.system import Workers
from kcrf_core.training import train

SETTINGS = [{}, {"kernel": "rbf", "size": 40}]
LOOSE = {"sigma2": 100.0, "precision": "double"}


def run(corpus, dev, options):
    """Model and report."""
    config = parse_config(with_options({}, options))
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(2) as workers:
        return train(encoding, dataset, config, workers=workers, dev=encoding.encode(dev))


def scored(model, corpus):
    return evaluation.evaluate(corpus.columns[-1], model.tag_corpus(corpus), corpus.offsets)


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", ("B-X", "I-X", "O")])
def test_figures_are_those_of_the_model_written(rng, options, labels):
    corpus, dev = toy_corpus(rng, 40, labels), toy_corpus(rng, 30, labels)
    model, report = run(corpus, dev, options | LOOSE)
    found, expected = report.dev, scored(model, dev)
    assert found.accuracy == expected.accuracy
    assert found.f1 == (None if expected.spans is None else expected.spans.total.f1)
    node = model.marginals(model.encoding.encode(dev))
    gold = [model.labels.index(label) for label in dev.columns[-1]]
    np.testing.assert_allclose(found.log_probability, np.log(node[range(len(gold)), gold]).mean(), rtol=1e-9)
    assert report.decoder.data == "dev"
    assert model.info["training"]["dev"]["accuracy"] == found.accuracy


def test_figures_of_conjunctions(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    corpus, dev = (Corpus("words", one.columns[::2], one.offsets, one.lines) for one in (corpus, dev))
    model, report = run(corpus, dev, {"kernel": "poly", "degree": 2} | LOOSE)
    assert isinstance(model.terms[0], ConjunctionTerm)
    assert report.dev.accuracy == scored(model, dev).accuracy


def test_scoring_changes_no_weight(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    watched, report = run(corpus, dev, LOOSE)
    alone, plain = fit(corpus, LOOSE)
    np.testing.assert_array_equal(watched.terms[0].weights, alone.terms[0].weights)
    assert report.result.passes == plain.result.passes


def test_unknown_labels_count_as_wrong(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    gold = ["NEW" if t % 5 == 0 else label for t, label in enumerate(dev.columns[-1])]
    strange = Corpus(dev.source, (*dev.columns[:-1], gold), dev.offsets, dev.lines)
    model, report = run(corpus, strange, LOOSE)
    assert report.dev.unknown_gold == gold.count("NEW")
    assert report.dev.accuracy == scored(model, strange).accuracy
    _, nothing = run(corpus, Corpus(dev.source, (*dev.columns[:-1], ["NEW"] * dev.positions), dev.offsets,
                                       dev.lines), LOOSE)  # fmt: skip
    assert nothing.dev.accuracy == 0


def noisy_corpus(rng, sequences, length, apart=0.7):
    """Two labels in short runs, and a number that says little about them: posterior decoding does better."""
    gold = np.repeat(rng.choice(["a", "b"], sequences * length // 2, p=[0.6, 0.4]), 2).tolist()
    numbers = [f"{apart * (label == 'b') + rng.normal():.3f}" for label in gold]
    offsets = np.arange(sequences + 1) * length
    return Corpus("noisy", (numbers, gold), offsets, np.arange(len(gold)) + np.repeat(np.arange(sequences), length) + 1)


@pytest.mark.parametrize(("sequences", "length"), [(60, 60), (2, 2000)])
def test_the_decoder_that_labels_it_better_is_stored(rng, sequences, length):
    # Two long sequences are compared in blocks.
    corpus, dev = noisy_corpus(rng, 40, 40), noisy_corpus(rng, sequences, length)
    model, report = run(corpus, dev, {"sigma2": 1.0})
    assert model.decode == report.decoder.decode == report.dev.decode == "posterior"
    assert report.decoder.data == "dev" and report.decoder.units >= 30
    assert report.decoder.difference > report.decoder.error > 0
    assert report.dev.accuracy == scored(model, dev).accuracy
    assert model.info["training"]["decoder"]["posterior"] == pytest.approx(report.dev.accuracy, rel=1e-12)
    path, told = run(corpus, dev, {"sigma2": 1.0, "decode": "viterbi"})
    assert path.decode == told.dev.decode == "viterbi" and told.decoder.values is None
    assert told.dev.accuracy < report.dev.accuracy


@pytest.mark.parametrize("metric", ["auto", "accuracy", "macro-f1", "log-loss"])
def test_the_metric_is_reported(rng, metric):
    labels = ("B-X", "I-X", "O")
    corpus, dev = toy_corpus(rng, 100, labels), toy_corpus(rng, 30, labels)
    model, report = run(corpus, dev, LOOSE | {"metric": metric, "decode": "viterbi"})
    assert report.metric == report.dev.metric == ("f1" if metric == "auto" else metric)
    expected = scored(model, dev)
    assert report.dev.f1 == expected.spans.total.f1
    assert report.dev.macro_f1 == (expected.spans.macro_f1 if metric == "macro-f1" else None)
