"""Labels that are not observed are summed over: P, its derivatives, its ends, and the way from data to models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_long_cliques import random_objective
from test_training import fit, toy_corpus

import oracle
from kcrf_core.chains import EDGE, EDGE2, EDGE_X, NODE
from kcrf_core.config import parse_config, with_options
from kcrf_core.encoding import UNKNOWN, UNOBSERVED, fit_encoding
from kcrf_core.errors import ConfigError, DataError
from kcrf_core.model import Model, load_dataset, save_dataset
from kcrf_core.objective.solvers import CERTIFIED, SOLVERS, STATIONARY, Run
from problems import on_threads

HIDDEN = "?"


def hiding(objective, labels):
    """The same with other labels."""
    problem = replace(objective.problem, labels=labels.astype(np.int32))
    return on_threads(
        problem,
        objective.engine.handles[0].terms,
        objective.engine.workers,
        objective.dtype,
        objective.engine.forbidden,
    )


KINDS = {
    "first order": (NODE, EDGE),
    "second order": (NODE, EDGE, EDGE2),
    "edge-x": (NODE, EDGE_X, EDGE),
    "edge-x of second order": (NODE, EDGE_X, EDGE2),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def objective(request, rng, workers):
    return random_objective(rng, workers, request.param, 3, longest=5)


def some_hidden(objective, rng, part=0.4):
    labels = objective.problem.labels.copy()
    labels[rng.random(len(labels)) < part] = UNOBSERVED
    return labels


def potentials(objective, theta):
    """Scores, transitions, and the rest of every sequence, for the oracle."""
    return [
        (part.scores[a:b], part.edges if part.edges.transitions.ndim == 2 else _cut(part.edges, a, b), part.labels[a:b])
        for part in objective.engine.handles[0].over_chunks(theta, lambda chunk: chunk)
        for a, b in zip(part.offsets[:-1], part.offsets[1:], strict=True)
    ]


def _cut(edges, a, b):
    return replace(edges, transitions=edges.transitions[a:b])


def test_p_is_that_of_all_ways_to_fill_them_in(objective, rng):
    objective = hiding(objective, some_hidden(objective, rng))
    theta = rng.normal(size=objective.size)
    expected = sum(
        float(theta[block] @ theta[block]) / (2 * variance)
        for block, variance in zip(objective.blocks, objective.sigma2, strict=True)
    )
    sequences = potentials(objective, theta)
    for weight, (scores, edges, labels) in zip(objective.problem.weights, sequences, strict=True):
        if not len(labels):
            continue
        paths = [path for path in oracle.labellings(len(labels), 3)
                 if all(label in (UNOBSERVED, y) for label, y in zip(labels, path, strict=True))]  # fmt: skip
        totals = [
            oracle.path_score(scores, edges.transitions, edges.start, edges.end, path, edges.triples) for path in paths
        ]
        log_z = oracle.enumerate_chain(scores, edges.transitions, edges.start, edges.end, edges.triples)[0]
        expected -= weight * (np.logaddexp.reduce(totals) - log_z)
    np.testing.assert_allclose(objective.evaluate(theta).value, expected, rtol=1e-10)


def test_derivatives_are_those_of_differences(objective, rng):
    objective = hiding(objective, some_hidden(objective, rng))
    theta, step = rng.normal(size=objective.size), 1e-5
    found = objective.evaluate(theta)
    for _ in range(5):
        direction = rng.normal(size=objective.size)
        above, below = (objective.evaluate(theta + sign * step * direction) for sign in (1, -1))
        np.testing.assert_allclose(found.gradient @ direction, (above.value - below.value) / (2 * step), rtol=1e-6)
        product = objective.hessian_product(theta, direction)
        np.testing.assert_allclose(product, (above.gradient - below.gradient) / (2 * step), rtol=1e-5, atol=1e-6)


def test_none_hidden_is_the_ordinary_objective_and_all_hidden_the_prior(objective, rng):
    theta = rng.normal(size=objective.size)
    assert objective.convex
    nothing = hiding(objective, np.full_like(objective.problem.labels, UNOBSERVED))
    assert not nothing.convex
    found = nothing.evaluate(theta)
    variances = np.concatenate(
        [np.full(block.stop - block.start, v) for block, v in zip(objective.blocks, objective.sigma2, strict=True)]
    )
    np.testing.assert_allclose(found.value, 0.5 * np.sum(theta**2 / variances), rtol=1e-10)
    np.testing.assert_allclose(found.gradient, theta / variances, rtol=1e-8, atol=1e-9)
    same = hiding(objective, objective.problem.labels)
    np.testing.assert_array_equal(same.evaluate(theta).gradient, objective.evaluate(theta).gradient)


@pytest.mark.each_choice
@pytest.mark.parametrize("solver", list(SOLVERS))
def test_every_solver_ends_at_a_stationary_point(objective, rng, solver):
    objective = hiding(objective, some_hidden(objective, rng))
    result = SOLVERS[solver](objective, rng.normal(size=objective.size), Run(1e-6, 3000))
    assert result.reason == STATIONARY and result.lower == -np.inf
    again = objective.evaluate(result.theta)
    np.testing.assert_allclose(result.gradient_norm, np.linalg.norm(again.gradient), rtol=1e-6)
    assert result.gradient_norm < 0.05 * np.linalg.norm(objective.evaluate(np.zeros(objective.size)).gradient)


def test_negative_curvature_does_not_stop_newton(objective, rng):
    """From far outside, where what is hidden has the Hessian curve the wrong way."""
    objective = hiding(objective, some_hidden(objective, rng, 0.8))
    theta = 4 * rng.normal(size=objective.size)
    start = objective.evaluate(theta)
    result = SOLVERS["newton"](objective, theta, Run(1e-6, 3000))
    assert result.reason == STATIONARY and result.value < start.value


# ----------------------------------------------------------------------------- from data to models


def hidden_corpus(rng, part, sequences=120):
    corpus = toy_corpus(rng, sequences)
    gold = list(corpus.columns[-1])
    shown = [HIDDEN if rng.random() < part else label for label in gold]
    return corpus, replace(corpus, columns=(*corpus.columns[:-1], shown))


def test_data_with_unobserved_labels_trains(rng, tmp_path):
    whole, shown = hidden_corpus(rng, 0.3)
    new = toy_corpus(rng, 200)
    found = {}
    for name, corpus, options in (("all", whole, {}), ("some", shown, {"unobserved": HIDDEN})):
        model, report = fit(corpus, {"sigma2": 1.0, "tolerance": 1e-5, "precision": "double", **options})
        found[name] = np.mean(np.array(model.tag_corpus(new)) == np.array(new.columns[-1]))
        assert model.labels == ("a", "b", "c")
        assert report.result.reason == (STATIONARY if options else CERTIFIED)
    assert report.to_dict()["lower_bound"] is None and report.to_dict()["certified_gap"] is None
    assert found["some"] > found["all"] - 0.06
    model.save(tmp_path / "m.npz")
    assert Model.load(tmp_path / "m.npz").encoding.unobserved == HIDDEN


def test_sigma2_is_chosen_by_what_is_observed(rng):
    _, shown = hidden_corpus(rng, 0.5)
    _, report = fit(shown, {"unobserved": HIDDEN})
    assert report.path and all(np.isfinite(trial.log_probability) for trial in report.path)


def test_held_out_labels_that_are_not_observed_have_no_say(rng):
    _, shown = hidden_corpus(rng, 0.4)
    whole = toy_corpus(rng, 50)
    hidden = np.array(rng.random(whole.positions) < 0.5)
    part = replace(whole, columns=(*whole.columns[:-1], list(np.where(hidden, HIDDEN, whole.columns[-1]))))
    encoding, _ = fit_encoding(parse_config({"unobserved": HIDDEN}), shown)
    model, report = fit(shown, {"sigma2": 1.0, "unobserved": HIDDEN}, dev=encoding.encode(part))
    right = np.array(model.tag_corpus(whole)) == np.array(whole.columns[-1])
    np.testing.assert_allclose(report.dev.accuracy, right[~hidden].mean())
    assert report.dev.unknown_gold == 0


def test_encoded_data_keeps_what_is_not_observed(rng, tmp_path):
    _, shown = hidden_corpus(rng, 0.5, 20)
    config = parse_config(with_options({}, {"unobserved": HIDDEN}))
    encoding, dataset = fit_encoding(config, shown)
    hidden = np.array(shown.columns[-1]) == HIDDEN
    assert (dataset.labels[hidden] == UNOBSERVED).all() and (dataset.labels[~hidden] >= 0).all()
    assert "labels are not observed ('?')" in "\n".join(encoding.remarks(dataset))
    save_dataset(tmp_path / "d.npz", encoding, dataset, config)
    stored = load_dataset(tmp_path / "d.npz")
    np.testing.assert_array_equal(stored.dataset.labels, dataset.labels)
    assert stored.config == config and stored.encoding.unobserved == HIDDEN
    strange = replace(shown, columns=(*shown.columns[:-1], ["z"] * shown.positions))
    assert (encoding.encode(strange).labels == UNKNOWN).all()


def test_what_does_not_go_with_it(rng):
    _, shown = hidden_corpus(rng, 0.5, 20)
    for options, more, words in (
        ({}, {"select_terms": True}, "cannot be selected"),
        ({"kernel": "rbf", "size": 5}, {"certify": "exact"}, "some are not observed"),
        ({"kernel": "rbf", "size": 5, "select": "gradient"}, {}, "needs all labels"),
    ):
        with pytest.raises(ConfigError, match=words):
            fit(shown, {"unobserved": HIDDEN, "sigma2": 1.0, **options}, **more)
    with pytest.raises(DataError, match="no labels to train on"):
        fit(replace(shown, columns=(*shown.columns[:-1], [HIDDEN] * shown.positions)), {"unobserved": HIDDEN})
