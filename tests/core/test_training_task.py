"""Terms on their data: P of some terms, some sequences, some columns is what it would be by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_training import toy_corpus

from kcrf_core.chains import EDGE, NODE
from kcrf_core.config import parse_config, with_options
from kcrf_core.encoding import fit_encoding
from kcrf_core.features import fit_terms
from kcrf_core.objective.solvers import Observer
from kcrf_core.training.problems import problem_of
from kcrf_core.training.task import TrainingTask

SIGMA2 = {"words": 0.5, "numbers": 2.0, "edge": 1.5}
TERMS = [
    {"name": "words", "features": ["c0"]},
    {"name": "numbers", "features": ["c1"], "kernel": {"type": "rbf"}, "map": {"size": 12}},
    {"type": "edge"},
]


def task_of(corpus, workers):
    config = parse_config(with_options({"terms": TERMS}, {"precision": "double"}))
    encoding, dataset = fit_encoding(config, corpus)
    problem = problem_of(encoding, dataset)
    terms = fit_terms(encoding, dataset, config, None, workers, Observer())
    return TrainingTask(problem, tuple(terms), workers, np.dtype(np.float64))


def test_terms_without_a_variance_are_not_there(rng, workers):
    task = task_of(toy_corpus(rng, 20), workers)
    whole = task.objective(SIGMA2)
    few = task.objective({name: SIGMA2[name] for name in ("edge", "words")})
    assert [term.clique for term in few.terms] == [NODE, EDGE] and list(few.sigma2) == [0.5, 1.5]
    theta = rng.normal(size=whole.size)
    theta[whole.blocks[1]] = 0.0
    rest = np.concatenate([theta[whole.blocks[0]], theta[whole.blocks[2]]])
    assert few.evaluate(rest).value == pytest.approx(whole.evaluate(theta).value, rel=1e-12)


def test_parts_of_the_sequences_add_up(rng, workers):
    task = task_of(toy_corpus(rng, 20), workers)
    whole = task.objective(SIGMA2)
    theta = rng.normal(size=whole.size)
    parts = [task.subset(np.arange(7)), task.subset(np.arange(7, 20))]
    found = [part.objective(SIGMA2).log_likelihood(theta) for part in parts]
    assert sum(found) == pytest.approx(whole.log_likelihood(theta), rel=1e-12)
    weights = np.where(np.arange(20) < 7, 1.0, 0.0)
    weighted = replace(task, problem=replace(task.problem, weights=weights))
    assert weighted.objective(SIGMA2).log_likelihood(theta) == pytest.approx(found[0], rel=1e-12)


def test_columns_that_a_sample_lacks_can_be_left_out(rng, workers):
    sample = task_of(toy_corpus(rng, 20), workers).subset(np.arange(2))
    used = [None if term.map is None else term.map.used_columns() for term in sample.terms]
    narrow = sample.narrow(used)
    assert narrow.terms[0].map.size == len(used[0]) < sample.terms[0].map.size and used[-1] is None
    full, few = sample.objective(SIGMA2), narrow.objective(SIGMA2)
    theta = rng.normal(size=few.size)
    wide = np.zeros(full.size)
    for j, columns in enumerate(used):
        if columns is None:
            wide[full.blocks[j]] = theta[few.blocks[j]]
            continue
        weights = np.zeros((full.terms[j].rows, full.terms[j].columns))
        weights[columns] = few.weights_of(theta, j)
        wide[full.blocks[j]] = full.block_of(weights, j)
    np.testing.assert_allclose(few.evaluate(theta).value, full.evaluate(wide).value, rtol=1e-12)
    assert few.size < full.size
