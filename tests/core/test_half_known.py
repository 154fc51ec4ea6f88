"""Labels that are half known: sets and soft labels, against enumeration, and the way from text to models."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import test_composed_engine as composed
from test_device_engine import check as check_device
from test_long_cliques import random_objective
from test_partial_labels import KINDS, potentials
from test_training import fit, toy_corpus

import device_problems
import oracle
from kcrf_core import KernelCRF, Workers
from kcrf_core.chains import EDGE, HALF_KNOWN, NODE, Edges, HalfKnown
from kcrf_core.config import parse_config
from kcrf_core.device import DeviceChoice, open_device
from kcrf_core.encoding import UNKNOWN, UNOBSERVED, fit_encoding, join_datasets
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import Model, load_dataset, save_dataset
from kcrf_core.objective import Engine, Objective
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, STATIONARY, Run
from problems import on_threads

Y = 3
WEIGHTS = np.array([[0.8, 0.2, 0], [0, 0.5, 0.5], [1, 1, 1], [0.1, 0, 3]])  # rows of the table


def half_known(objective, rng, soft, part=0.5, forbidden=None):
    """Return the objective with some labels replaced by rows of the table."""
    labels = objective.problem.labels.copy()
    half = rng.random(len(labels)) < part
    labels[half] = HALF_KNOWN - rng.integers(len(WEIGHTS), size=half.sum())
    table = HalfKnown(WEIGHTS if soft else np.sign(WEIGHTS), soft)
    problem = replace(objective.problem, labels=labels.astype(np.int32), half_known=table)
    about = objective.engine.workers, objective.dtype, forbidden
    return on_threads(problem, objective.engine.handles[0].terms, *about)


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def objective(request, rng, workers):
    return random_objective(rng, workers, request.param, Y, longest=5)


def enumerated(objective, theta, forbidden=None):
    """Return P by enumeration: -log of a sum of p(y) for sets, -sum q(y) log p(y) for soft labels."""
    blocks = zip(objective.blocks, objective.sigma2, strict=True)
    total = sum(float(theta[block] @ theta[block]) / (2 * variance) for block, variance in blocks)
    half = objective.problem.half_known
    for weight, (scores, edges, labels) in zip(objective.problem.weights, potentials(objective, theta), strict=True):
        if not len(labels):
            continue
        logs = []  # of q(y), up to a constant
        paths = list(oracle.labellings(len(labels), Y))
        with np.errstate(divide="ignore"):
            rows = [np.log(np.eye(Y)[g] if g >= 0 else half.weights[HALF_KNOWN - g]) for g in labels]
        for path in paths:
            allowed = 0.0
            if forbidden is not None:
                allowed = sum(forbidden.transitions[pair] for pair in pairwise(path))
                allowed += forbidden.start[path[0]] + forbidden.end[path[-1]]
            logs.append(sum(row[y] for row, y in zip(rows, path, strict=True)) + allowed)
        totals = [oracle.path_score(scores, edges.transitions, edges.start, edges.end, p, edges.triples) for p in paths]
        log_p = np.array(totals) - np.logaddexp.reduce(totals)
        logs = np.array(logs)
        if half.soft or (labels >= 0).all():
            q = np.exp(logs - np.logaddexp.reduce(logs))
            total -= weight * float(q[q > 0] @ log_p[q > 0])
        else:
            total -= weight * float(np.logaddexp.reduce(log_p[np.isfinite(logs)]))
    return total


@pytest.mark.parametrize("soft", [False, True], ids=["sets", "soft"])
def test_p_is_that_of_enumeration_and_its_derivatives_those_of_differences(objective, rng, soft):
    objective = half_known(objective, rng, soft)
    theta, step = rng.normal(size=objective.size), 1e-5
    found = objective.evaluate(theta)
    np.testing.assert_allclose(found.value, enumerated(objective, theta), rtol=1e-10)
    np.testing.assert_allclose(objective.log_likelihood(theta), found.log_likelihood, rtol=1e-9)
    direction = rng.normal(size=objective.size)
    above, below = (objective.evaluate(theta + sign * step * direction) for sign in (1, -1))
    np.testing.assert_allclose(found.gradient @ direction, (above.value - below.value) / (2 * step), rtol=1e-6)
    product = objective.hessian_product(theta, direction)
    np.testing.assert_allclose(product, (above.gradient - below.gradient) / (2 * step), rtol=1e-5, atol=1e-6)
    for clique in set(objective.engine.mapped.values()):  # errors of positions, which bounds are made of
        errors = objective.errors(theta, clique)
        assert np.isfinite(errors).all()


def test_forbidden_transitions_have_no_part_in_soft_labels(objective, rng):
    """q(y) has the allowed labellings alone: a product of its parts would have others."""
    forbidden = Edges(np.zeros((Y, Y)), np.zeros(Y), np.zeros(Y))
    forbidden.transitions[0, 1] = forbidden.start[2] = -np.inf
    # Labels of one set are possible everywhere.
    problem = replace(objective.problem, labels=np.full_like(objective.problem.labels, HALF_KNOWN))
    problem = replace(problem, half_known=HalfKnown(np.array([[0.5, 0.3, 0.2]]), soft=True))
    terms, workers = objective.engine.handles[0].terms, objective.engine.workers
    ruled = on_threads(problem, terms, workers, objective.dtype, forbidden)
    theta = rng.normal(size=ruled.size)
    found = ruled.evaluate(theta)
    assert np.isfinite(found.value)
    np.testing.assert_allclose(found.value, enumerated(ruled, theta, forbidden), rtol=1e-10)


def test_a_set_is_no_uniform_soft_label(rng, workers):
    """The entropy of q keeps a soft label from being certain of one of its labels; a set lets it be."""
    objective = random_objective(rng, workers, (NODE, EDGE), Y, longest=5)
    state = rng.bit_generator.state
    values = []
    for soft in (False, True):
        rng.bit_generator.state = state
        one = half_known(objective, rng, soft)
        uniform = HalfKnown(np.sign(WEIGHTS), soft)
        about = one.engine.handles[0].terms, one.engine.workers, one.dtype
        one = on_threads(replace(one.problem, half_known=uniform), *about)
        result = SOLVERS["newton"](one, np.zeros(one.size), Run(1e-6, 3000))
        assert result.reason == (CERTIFIED if soft else STATIONARY)
        values.append(result.value)
    assert values[0] < values[1] - 0.1


def test_one_label_each_is_the_ordinary_objective(objective, rng):
    """A table of certain labels gives P of these labels, as sets and as soft labels."""
    labels, theta = objective.problem.labels, rng.normal(size=objective.size)
    expected = objective.evaluate(theta)
    half = np.where(rng.random(len(labels)) < 0.5, labels, HALF_KNOWN - labels).astype(np.int32)
    for soft in (False, True):
        problem = replace(objective.problem, labels=half, half_known=HalfKnown(np.eye(Y), soft))
        for own in (problem, problem.partition(0), problem.subset(np.arange(len(problem.weights)))):
            about = objective.engine.handles[0].terms, objective.engine.workers, objective.dtype
            found = on_threads(own, *about).evaluate(theta)
            np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
            np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-8, atol=1e-9)


@pytest.mark.each_choice
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_every_solver_certifies_soft_labels(rng, workers, solver):
    objective = half_known(random_objective(rng, workers, (NODE, EDGE), Y, longest=5), rng, soft=True)
    result = SOLVERS[solver](objective, rng.normal(size=objective.size), Run(1e-5, 3000))
    assert result.reason == CERTIFIED and result.lower <= result.value
    other = SOLVERS["newton"](objective, np.zeros(objective.size), Run(1e-7, 3000))
    assert result.lower <= other.value * (1 + 1e-9)


def other_problem(problem, rng, soft):
    """Return a problem of three labels, some of which are half known."""
    labels = np.where(rng.random(problem.positions) < 0.2, HALF_KNOWN - rng.integers(4, size=problem.positions), 0)
    table = HalfKnown(WEIGHTS if soft else np.sign(WEIGHTS), soft)
    return replace(problem, labels=np.where(labels, labels, problem.labels).astype(np.int32), half_known=table)


@pytest.mark.parametrize("soft", [False, True], ids=["sets", "soft"])
@pytest.mark.parametrize("kind", ["kept", "edge-x", "edge2"])
def test_partitions_have_the_same_bits(kind, soft, rng, workers, monkeypatch):
    problem = other_problem(composed.problem_of(rng, Y, sequences=30, cut=True, partitions=4), rng, soft)
    terms = composed.terms_of(kind, rng, problem, workers, np.float32, monkeypatch)
    whole = on_threads(problem, terms, workers, np.float32)
    executor = composed.PicklingExecutor(workers)
    parts = Objective.on(Engine.over(problem, terms, executor, workers, np.float32), terms)
    assert len(parts.engine.handles) > 1
    theta, vector = rng.normal(size=(2, whole.size))
    composed.same(whole.engine.evaluate(theta), parts.engine.evaluate(theta))
    composed.same(whole.engine.product(theta, vector), parts.engine.product(theta, vector))
    composed.same(whole.engine.predictions(theta).gold, parts.engine.predictions(theta).gold)
    with Workers(2) as two:
        composed.same(whole.engine.evaluate(theta), on_threads(problem, terms, two, np.float32).engine.evaluate(theta))


@pytest.mark.parametrize("soft", [False, True], ids=["sets", "soft"])
@pytest.mark.parametrize("kind", ["linear", "edge-x", "edge2"])
def test_a_device_agrees_with_threads(kind, soft, rng, workers):
    said = []
    device = open_device(DeviceChoice("numpy"), tell=said.append)
    problem = other_problem(device_problems.problem_of(rng, Y), rng, soft)
    terms = device_problems.terms_of(kind, rng, problem, workers, np.float64)
    there = Objective.on(device.engine(problem, terms, workers), terms)
    check_device(on_threads(problem, terms, workers), there, rng, np.float64)
    assert any("some labels are not known" in text for text in said)


# ----------------------------------------------------------------------------- from text to models


def half_corpus(rng, sequences=80, soft=False, part=0.3):
    """Return a corpus, and the same with a part of its labels half known."""
    corpus = toy_corpus(rng, sequences)
    shown = []
    for label in corpus.columns[-1]:
        other = "abc"[("abc".index(label) + 1) % 3]
        both = f"{label}:0.8|{other}:0.2" if soft else "|".join(sorted((label, other)))
        shown.append(both if rng.random() < part else label)
    return corpus, replace(corpus, columns=(*corpus.columns[:-1], shown))


@pytest.mark.parametrize("soft", [False, True], ids=["sets", "soft"])
def test_half_known_labels_train_and_stay_in_files(rng, tmp_path, soft):
    whole, shown = half_corpus(rng, soft=soft)
    option = {"soft_labels" if soft else "label_sets": True}
    config = parse_config(option)
    encoding, dataset = fit_encoding(config, shown)
    assert encoding.labels == ("a", "b", "c") and (dataset.labels <= HALF_KNOWN).any()
    assert f"labels are {'soft' if soft else 'sets'}" in "\n".join(encoding.remarks(dataset))
    save_dataset(tmp_path / "d.npz", encoding, dataset, config)
    stored = load_dataset(tmp_path / "d.npz")
    np.testing.assert_array_equal(stored.dataset.half_known, dataset.half_known)
    halves = [encoding.encode(shown.span(0, 30)), encoding.encode(shown.span(30, 80))]
    joined = join_datasets(halves)  # whose parts have tables of their own
    rows = np.flatnonzero(dataset.labels <= HALF_KNOWN)
    np.testing.assert_array_equal(joined.labels >= 0, dataset.labels >= 0)
    for one in (joined, stored.dataset):
        found = one.half_known[HALF_KNOWN - one.labels[rows]]
        np.testing.assert_array_equal(found, dataset.half_known[HALF_KNOWN - dataset.labels[rows]])
    assert (encoding.encode(whole).labels == UNOBSERVED).sum() == 0
    plain = {"sigma2": 1.0, "tolerance": 1e-5, "precision": "double"}
    model, report = fit(shown, {**plain, **option})
    assert report.result.reason == (CERTIFIED if soft else STATIONARY)
    full, _ = fit(whole, plain)
    new = toy_corpus(rng, 200)
    right = [np.mean(np.array(one.tag_corpus(new)) == np.array(new.columns[-1])) for one in (model, full)]
    assert right[0] > right[1] - 0.06
    model.save(tmp_path / "m.npz")
    assert Model.load(tmp_path / "m.npz").encoding.half_known == encoding.half_known


def test_choices_look_at_positions_with_one_label(rng):
    whole, shown = half_corpus(rng)
    _, report = fit(shown.span(0, 20), {"label_sets": True})
    assert report.path and all(np.isfinite(trial.log_probability) for trial in report.path)
    encoding, _ = fit_encoding(parse_config({"label_sets": True}), shown)
    dev = encoding.encode(shown)
    model, report = fit(whole, {"sigma2": 1.0, "label_sets": True}, dev=dev)
    right = np.array(model.tag_corpus(whole)) == np.array(whole.columns[-1])
    np.testing.assert_allclose(report.dev.accuracy, right[dev.labels >= 0].mean())
    assert report.dev.unknown_gold == 0


@pytest.mark.parametrize(
    ("option", "label", "words"),
    [
        ("soft_labels", "a:0.8|b", "'b' has no weight"),
        ("soft_labels", "a:0.8|b:-1", "at least 0"),
        ("soft_labels", "a:nan|b:1", "at least 0"),
        ("soft_labels", "a:0|b:0", "are 0"),
        ("soft_labels", "a:1|a:2", "'a' twice"),
        ("soft_labels", ":1", "is empty"),
        ("label_sets", "a|", "is empty"),
        ("label_sets", "a|b|a", "'a' twice"),
    ],
)
def test_texts_that_are_no_labels(rng, option, label, words):
    corpus = toy_corpus(rng, 5)
    bad = list(corpus.columns[-1])
    bad[7] = label
    with pytest.raises(DataError, match=words) as error:
        fit(replace(corpus, columns=(*corpus.columns[:-1], bad)), {option: True})
    assert error.value.line == corpus.lines[7]
    fit_encoding(parse_config({}), replace(corpus, columns=(*corpus.columns[:-1], bad)))  # where it is a label


def test_soft_labels_that_are_certain_or_not_known(rng):
    corpus = toy_corpus(rng, 5)
    texts = ["a:1", "b:2|c:0", "b", "a:1|z:1", "a:1|b", "a:b", *["c"] * (corpus.positions - 6)]
    encoding, _ = fit_encoding(parse_config({"soft_labels": True}), toy_corpus(rng, 20))
    found = encoding.encode(replace(corpus, columns=(*corpus.columns[:-1], texts)))
    assert found.labels[:7].tolist() == [0, 1, 1, UNKNOWN, UNKNOWN, UNKNOWN, 2] and found.half_known is None


def test_where_nothing_is_allowed(rng):
    corpus = toy_corpus(rng, 5)
    labels = ["O"] * corpus.positions
    labels[int(corpus.offsets[2])] = "B-X"
    t = int(corpus.offsets[3]) + 1
    for option, text in (("label_sets", "I-X|I-Y"), ("soft_labels", "I-X:1|I-Y:2")):
        bad = labels.copy()
        bad[t] = text
        bad = replace(corpus, columns=(*corpus.columns[:-1], bad))
        with pytest.raises(DataError, match="no label is left") as error:
            fit(bad, {option: True, "scheme": "iob2", "sigma2": 1.0})
        assert error.value.line == corpus.lines[t] and error.value.path == corpus.source


def test_what_does_not_go_with_them(rng):
    _, shown = half_corpus(rng, 20)
    _, soft = half_corpus(rng, 20, soft=True)
    for data, options, more, words in (
        (shown, {"label_sets": True}, {"select_terms": True}, "cannot be selected"),
        (shown, {"label_sets": True, "kernel": "rbf", "size": 5}, {"certify": "exact"}, "not observed"),
        (shown, {"label_sets": True, "c1": 0.1}, {}, "half known"),
        (soft, {"soft_labels": True}, {"select_terms": True}, "cannot be selected"),
        (soft, {"soft_labels": True, "c1": 0.1}, {}, "half known"),
        (soft, {"soft_labels": True, "unobserved": "?"}, {}, "goes neither"),
        (soft, {"soft_labels": True, "label_sets": True}, {}, "goes neither"),
    ):
        with pytest.raises(ConfigError, match=words):
            fit(data, {"sigma2": 1.0, **options}, **more)
    _, report = fit(soft, {"soft_labels": True, "kernel": "rbf", "size": 5, "sigma2": 1.0}, certify="exact")
    assert report.result.reason == CERTIFIED


@pytest.mark.parametrize("soft", [False, True], ids=["sets", "soft"])
def test_the_estimator_takes_them(soft):
    X = [[{"w": "one"}, {"w": "two"}], [{"w": "two"}, {"w": "one"}]] * 10
    y = [["A", "A:0.5|B:0.5" if soft else "A|B"], ["B", "A"]] * 10
    crf = KernelCRF(sigma2=1, soft_labels=soft, label_sets=not soft).fit(X, y)
    assert list(crf.classes_) == ["A", "B"] and crf.predict(X)[1] == ["B", "A"]
