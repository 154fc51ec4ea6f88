"""Held-out data scored on the way, and the parameters that do best on it."""

from __future__ import annotations

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.config import parse_config, with_options
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import ConjunctionTerm
from kcrf_core.objective.solvers import DevProgress, DevScore, Progress
from kcrf_core.scoring import evaluation
from kcrf_core.system import Workers
from kcrf_core.training import train
from listening import Recorder

SETTINGS = [{}, {"kernel": "rbf", "size": 40}]
# Weak priors on little data: the best parameters for new data come long before the optimum.
LOOSE = {"sigma2": 100.0, "precision": "double"}


class Scores(Recorder):
    @property
    def taken(self):
        return self.of(DevProgress)

    @property
    def passes(self):
        return self.of(Progress)


def run(corpus, dev, options, **more):
    """Model, report, and what was told of the held-out data."""
    config = parse_config(with_options({}, options))
    encoding, dataset = fit_encoding(config, corpus)
    scores = Scores()
    with Workers(2) as workers:
        found = train(encoding, dataset, config, workers=workers, observer=scores, dev=encoding.encode(dev), **more)
    return *found, scores


def scored(model, corpus):
    return evaluation.evaluate(corpus.columns[-1], model.tag_corpus(corpus), corpus.offsets)


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("labels", ["ab", ("B-X", "I-X", "O")])
def test_figures_are_those_of_the_model_written(rng, options, labels):
    corpus, dev = toy_corpus(rng, 40, labels), toy_corpus(rng, 30, labels)
    model, report, scores = run(corpus, dev, options | LOOSE)
    found, expected = report.dev.score, scored(model, dev)
    assert found.accuracy == expected.accuracy
    assert found.f1 == (None if expected.spans is None else expected.spans.total.f1)
    node = model.marginals(model.encoding.encode(dev))
    gold = [model.labels.index(label) for label in dev.columns[-1]]
    np.testing.assert_allclose(found.log_probability, np.log(node[range(len(gold)), gold]).mean(), rtol=1e-9)
    last = scores.taken[-1].score
    if model.span_bonus:  # which is chosen in the end
        assert last.f1 < found.f1 and report.decoder.data == "dev"
    else:
        assert last.accuracy == found.accuracy
    assert model.info["training"]["dev"]["accuracy"] == found.accuracy


def test_figures_of_conjunctions(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    corpus, dev = (Corpus("words", one.columns[::2], one.offsets, one.lines) for one in (corpus, dev))
    model, report, scores = run(corpus, dev, {"kernel": "poly", "degree": 2} | LOOSE)
    assert isinstance(model.terms[0], ConjunctionTerm)
    assert report.dev.score.accuracy == scored(model, dev).accuracy == scores.taken[-1].score.accuracy
    np.testing.assert_allclose(scores.taken[-1].score.log_probability, report.dev.score.log_probability, rtol=1e-9)


def test_watching_changes_nothing(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    watched, report, _ = run(corpus, dev, LOOSE)
    alone, plain = fit(corpus, LOOSE)
    np.testing.assert_array_equal(watched.terms[0].weights, alone.terms[0].weights)
    assert report.result.passes == plain.result.passes


@pytest.mark.parametrize("options", SETTINGS)
def test_the_best_parameters_come_with_their_own_certificate(rng, options):
    corpus, dev = toy_corpus(rng, 25), toy_corpus(rng, 200)
    _, certified, _ = run(corpus, dev, options | LOOSE)
    best, report, scores = run(corpus, dev, options | LOOSE, keep="best")
    assert report.dev.score.accuracy > certified.dev.score.accuracy
    assert scored(best, dev).accuracy == report.dev.score.accuracy
    top = max(scores.taken, key=lambda one: (one.score.accuracy, one.score.log_probability))
    assert report.dev.best == top.score and report.dev.best_pass == top.passes
    # P there, in double precision, against the bound that the whole run proved.
    [there] = [one for one in scores.passes if one.passes == top.passes]
    np.testing.assert_allclose(report.result.value, there.value, rtol=1e-9)
    assert report.result.value > certified.result.value
    assert certified.result.lower <= report.result.lower <= certified.result.value
    assert report.result.reason == "best" and report.result.gap > 1e-3
    assert best.info["training"]["certified_gap"] == report.result.gap


def test_ties_are_broken_by_probability():
    one, other = DevScore(0.5, -1.0, None), DevScore(0.5, -0.9, None)
    assert other.better_than(one) and not one.better_than(other) and not one.better_than(one)
    assert DevScore(0.6, -5.0, None).better_than(other) and one.better_than(None)


def test_kept_parameters_are_the_same_on_any_number_of_threads(rng, tmp_path):
    corpus, dev = toy_corpus(rng, 25), toy_corpus(rng, 200)
    config = parse_config(with_options({}, {"sigma2": 100.0}))
    encoding, dataset = fit_encoding(config, corpus)
    for threads in (1, 2):
        with Workers(threads) as workers:
            model, _ = train(encoding, dataset, config, workers=workers, dev=encoding.encode(dev), keep="best")
        model.save(tmp_path / f"{threads}.npz")
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


@pytest.mark.parametrize("size", [20, 400])
def test_scoring_takes_at_most_a_third_of_the_work(rng, size):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, size)
    _, report, scores = run(corpus, dev, LOOSE)
    work = len(scores.taken) * dev.positions
    # Two more than the budget allows: the first, which nothing could be saved for, and the last.
    assert work <= report.result.passes * corpus.positions / 2 + 2 * dev.positions
    assert len(scores.taken) >= 2


def test_unknown_labels_count_as_wrong(rng):
    corpus, dev = toy_corpus(rng, 40), toy_corpus(rng, 30)
    gold = ["NEW" if t % 5 == 0 else label for t, label in enumerate(dev.columns[-1])]
    strange = Corpus(dev.source, (*dev.columns[:-1], gold), dev.offsets, dev.lines)
    model, report, _ = run(corpus, strange, LOOSE)
    assert report.dev.unknown_gold == gold.count("NEW")
    assert report.dev.score.accuracy == scored(model, strange).accuracy
    _, nothing, _ = run(corpus, Corpus(dev.source, (*dev.columns[:-1], ["NEW"] * dev.positions), dev.offsets,
                                       dev.lines), LOOSE)  # fmt: skip
    assert nothing.dev.score.accuracy == 0


def test_interruption_keeps_the_best_with_its_real_gap(rng):
    corpus, dev = toy_corpus(rng, 25), toy_corpus(rng, 100)
    asked = []

    def interrupted():
        asked.append(1)
        return len(asked) > 15

    model, report, _ = run(corpus, dev, LOOSE, keep="best", interrupted=interrupted)
    assert report.result.reason == "interrupted"
    assert scored(model, dev).accuracy == report.dev.score.accuracy >= 0.3
    assert report.result.lower < report.result.value


def noisy_corpus(rng, sequences, length, apart=0.7):
    """Two labels in short runs, and a number that says little about them: posterior decoding does better."""
    gold = np.repeat(rng.choice(["a", "b"], sequences * length // 2, p=[0.6, 0.4]), 2).tolist()
    numbers = [f"{apart * (label == 'b') + rng.normal():.3f}" for label in gold]
    offsets = np.arange(sequences + 1) * length
    return Corpus("noisy", (numbers, gold), offsets, np.arange(len(gold)) + np.repeat(np.arange(sequences), length) + 1)


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize(("sequences", "length"), [(60, 60), (2, 2000)])
def test_the_decoder_that_labels_it_better_is_stored(rng, keep, sequences, length):
    # Two long sequences are compared in blocks.
    corpus, dev = noisy_corpus(rng, 40, 40), noisy_corpus(rng, sequences, length)
    model, report, scores = run(corpus, dev, {"sigma2": 1.0}, keep=keep)
    assert model.decode == report.decoder.decode == report.dev.score.decode == "posterior"
    assert report.decoder.data == "dev" and report.decoder.units >= 30
    assert report.decoder.difference > report.decoder.error > 0
    assert report.dev.score.accuracy == scored(model, dev).accuracy
    assert model.info["training"]["decoder"]["posterior"] == pytest.approx(report.dev.score.accuracy, rel=1e-12)
    assert scores.taken[-1].score.decode == "posterior"
    path, told, _ = run(corpus, dev, {"sigma2": 1.0, "decode": "viterbi"}, keep=keep)
    assert path.decode == told.dev.score.decode == "viterbi" and told.decoder.values is None
    assert told.dev.score.accuracy < report.dev.score.accuracy


def test_the_best_is_the_best_by_the_metric(rng):
    labels = ("B-X", "I-X", "O")
    corpus, dev = toy_corpus(rng, 100, labels), toy_corpus(rng, 30, labels)
    tops = {}
    for metric in ("auto", "accuracy", "macro-f1", "log-loss"):
        options = LOOSE | {"metric": metric, "decode": "viterbi"}
        model, report, scores = run(corpus, dev, options, keep="best")
        name = "f1" if metric == "auto" else metric
        assert report.metric == report.dev.score.metric == name
        figures = {
            "f1": lambda score: score.f1,
            "accuracy": lambda score: score.accuracy,
            "macro-f1": lambda score: score.macro_f1,
            "log-loss": lambda score: score.log_probability,
        }
        value = figures[name]
        top = max(scores.taken, key=lambda one: (value(one.score), one.score.log_probability))
        assert report.dev.best == top.score and report.dev.best.value == value(top.score)
        tops[name] = report.dev.best_pass
        expected = scored(model, dev)
        assert report.dev.score.f1 == expected.spans.total.f1
        assert report.dev.score.macro_f1 == (expected.spans.macro_f1 if name == "macro-f1" else None)
    assert len(set(tops.values())) > 1  # figures disagree about what is best
