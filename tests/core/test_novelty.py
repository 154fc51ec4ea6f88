"""Novelty: nothing at a pivot, everything where nothing is shared, the formula in between."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import models
import oracle
from kcrf_core.errors import ConfigError
from kcrf_core.model.novelty import Novelty


def test_formula_and_pivots():
    for seed in range(5):
        model, corpus = models.random_model(np.random.default_rng(seed), ("kernel",))
        dataset, (term,) = model.encoding.encode(corpus), model.terms
        found = Novelty(model).of(dataset)
        assert ((found >= 0) & (found <= 1)).all()
        inputs = model.encoding.inputs(dataset, term.features)
        K, k = oracle.gram(term.kernel, term.pivots, term.pivots), oracle.gram(term.kernel, inputs, term.pivots)
        expected = 1 - np.einsum("nm,nm->n", k, np.linalg.solve(K, k.T).T)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10)
        at_pivots = np.isin(corpus.lines, term.lines)
        assert found[at_pivots].max() < 1e-10
        assert found[~at_pivots].max() > 0.1


def test_of_several_terms_the_largest_counts():
    model, corpus = models.random_model(np.random.default_rng(3), ("kernel", "explicit", "edge-x kernel"))
    dataset = model.encoding.encode(corpus)
    alone = [Novelty(replace(model, terms=(term,))).of(dataset) for term in (model.terms[0], model.terms[2])]
    assert np.array_equal(Novelty(model).of(dataset), np.maximum(*alone))


def test_values_that_training_never_saw_are_new():
    model, corpus = models.random_model(np.random.default_rng(5), ("edge-x kernel",))
    N = corpus.positions
    strange = replace(corpus, columns=(["?"] * N, ["!"] * N, *corpus.columns[2:]))
    plain, new = (Novelty(model).of(model.encoding.encode(one)) for one in (corpus, strange))
    assert new.mean() > plain.mean() + 0.2 and new.max() <= 1


def test_models_without_pivots_are_refused():
    model, _ = models.random_model(np.random.default_rng(6))
    with pytest.raises(ConfigError, match="no pivots"):
        Novelty(model)
