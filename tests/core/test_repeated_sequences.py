"""Sequences that come again: gone through once, with the P, the optimum and the model of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_training import toy_corpus

from kcrf_core.chains import Problem
from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import AttributeRows, Corpus
from kcrf_core.corpora.corpus import concatenate
from kcrf_core.encoding import fit_encoding
from kcrf_core.features.plans import fit_terms
from kcrf_core.objective import ObjectiveTerm
from kcrf_core.objective.solvers import Observer
from kcrf_core.training import train
from kcrf_core.training.problems import distinct_only, sequence_keys
from kcrf_core.training.task import TrainingTask
from listening import Recorder
from problems import on_threads

SETTINGS = [
    {},
    {"kernel": "poly", "map": "explicit"},
    {"kernel": "rbf", "size": 20},
    {"order": 2},
    {"terms": [{"type": "node"}, {"type": "edge"}, {"type": "edge-x", "features": ["c0"]}]},
]


def repeated(corpus, times=4):
    return concatenate([corpus] * times)


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_the_same_objective_and_gradient(rng, workers, options):
    corpus = toy_corpus(rng, 12)
    if options.get("map") == "explicit":
        corpus = Corpus("words", (corpus.columns[0], corpus.columns[2]), corpus.offsets, corpus.lines)
    raw = {"terms": options["terms"]} if "terms" in options else {}
    config = parse_config(with_options(raw, {key: value for key, value in options.items() if key != "terms"}))
    encoding, dataset = fit_encoding(config, repeated(corpus))
    problem = Problem(dataset.labels, dataset.offsets, rng.random(dataset.sequences), len(encoding.labels))
    recorder = Recorder()
    fitted = fit_terms(encoding, dataset, config, None, workers, Observer())
    smaller, first = distinct_only(problem, [dataset], recorder)
    terms = TrainingTask(problem, tuple(fitted), workers, np.dtype(np.float32)).subset(first).terms
    assert len(smaller.weights) == len(first) == 12
    assert recorder.notes == ["12 distinct sequences of 48: each is gone through once"]
    np.testing.assert_allclose(smaller.weights, problem.weights.reshape(4, 12).sum(axis=0), rtol=1e-12)
    theta, found = None, []
    for data, of_data in ((problem, fitted), (smaller, terms)):
        objective = on_threads(data, [ObjectiveTerm(term.config.clique, 2.0, term.map) for term in of_data], workers)
        theta = rng.normal(size=objective.size) if theta is None else theta
        here = objective.evaluate(theta)
        found.append(
            (here.value, here.gradient, objective.hessian_product(theta, theta), objective.initial_curvature())
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)  # maps are in single precision


def distinct_sequences(dataset):
    """Numbers of the first of each group of equal sequences, and for each sequence the number of its group."""
    numbers: dict[bytes, int] = {}
    group = [numbers.setdefault(key, len(numbers)) for key in sequence_keys(dataset)]
    return np.unique(group, return_index=True)[1], group


def test_other_labels_or_inputs_stay_apart(rng):
    corpus = repeated(toy_corpus(rng, 5), 2)
    _, dataset = fit_encoding(parse_config({}), corpus)
    assert len(distinct_sequences(dataset)[0]) == 5
    labels = dataset.labels.copy()
    labels[-1] = (labels[-1] + 1) % 3
    first, group = distinct_sequences(replace(dataset, labels=labels))
    np.testing.assert_array_equal(first, [0, 1, 2, 3, 4, 9])
    np.testing.assert_array_equal(group, [0, 1, 2, 3, 4, 0, 1, 2, 3, 5])
    real = dataset.real.copy()
    real[0] += 1
    assert len(distinct_sequences(replace(dataset, real=real))[0]) == 6


def test_attributes_and_their_values_count():
    # Four sequences of two positions: the third has another value, the fourth another order.
    names = ["a", "b", "a", "a", "b", "a", "a", "b", "a", "a", "a", "b"]
    indptr, values = np.array([0, 2, 3, 5, 6, 8, 9, 10, 12]), np.ones(12)
    values[7] = 3.0
    attributes = AttributeRows(indptr, names, values)
    corpus = Corpus("x.crfsuite", (["y", "z"] * 4,), np.arange(0, 9, 2), np.arange(1, 9), None, attributes)
    _, dataset = fit_encoding(parse_config({}), corpus)
    np.testing.assert_array_equal(distinct_sequences(dataset)[1], [0, 0, 1, 2])


def test_training_on_repeated_data_finds_the_optimum_of_weighted_data(rng, workers):
    corpus = toy_corpus(rng, 30)
    config = parse_config(with_options({}, {"sigma2": 2.0, "kernel": "rbf", "map": "full", "tolerance": 1e-4}))
    values = []
    for data, weight in ((repeated(corpus), None), (corpus, 4.0)):
        encoding, dataset = fit_encoding(config, data)
        if weight is not None:
            dataset = replace(dataset, weights=np.full(dataset.sequences, weight))
        values.append(train(encoding, dataset, config, workers=workers)[1].result.value)
    np.testing.assert_allclose(values[0], values[1], rtol=2e-4)


def test_a_few_repeats_are_left_alone(rng, workers):
    corpus = toy_corpus(rng, 40)
    encoding, dataset = fit_encoding(parse_config({}), corpus)
    dataset = dataset.subset([*range(40), 0])
    problem = Problem(dataset.labels, dataset.offsets, np.ones(41), len(encoding.labels))
    recorder = Recorder()
    assert distinct_only(problem, [dataset], recorder) == (problem, None)
    assert recorder.notes == []
