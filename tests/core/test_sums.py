"""No figure rests on the built-in `sum` of floats, which rounds otherwise from Python 3.12 on."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest
from test_audit import drawn, scored
from test_explanation import explain
from test_training import fit, toy_corpus

import models
from kcrf_core.scoring.metrics import flat_f1_score
from kcrf_core.selection.evidence import Channel, label_counts, learn_channel
from kcrf_core.selection.planted_regression import PlantedRegression


@pytest.fixture
def no_float_sums(monkeypatch):
    """In kcrf, `sum` takes no numbers that are floats; arrays and NumPy's own numbers are added as ever."""

    def checked(values, start=0):
        values = list(values)
        assert not any(type(value) is float for value in (*values, start)), "math.fsum or NumPy says how it rounds"
        return builtins.sum(values, start)

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("kcrf_core", "kcrf_cli"):
            monkeypatch.setitem(vars(module), "sum", checked)


@pytest.mark.parametrize(
    "options",
    [
        {"sigma2": 1.0, "c1": 0.1},
        {"kernel": "rbf", "select": "gradient", "sigma2": 2.0},
        {"sigma2": 1.0, "precision": "double", "solver": "newton"},
    ],
)
def test_training(no_float_sums, rng, options):
    assert fit(toy_corpus(rng, 20), options)[0].labels == ("a", "b", "c")


@pytest.mark.parametrize(("average", "figure"), [("macro", (1 + 2 / 3) / 3), ("weighted", (1 + 2 / 3) / 3)])
def test_scores(no_float_sums, average, figure):
    found = flat_f1_score([["a", "b", "c"]], [["a", "b", "b"]], average=average)
    np.testing.assert_allclose(found, figure, rtol=1e-15)


def test_explanations_and_audits(no_float_sums, rng, workers):
    corpus = toy_corpus(rng, 20)
    model = fit(corpus, {"sigma2": 1.0})[0]
    assert explain(model, model.encoding.encode(corpus), 3).explanations
    assert np.isfinite(learn_channel([scored()], workers).log_t).all()
    spans = drawn(rng, models.SPANS, 4, 3.0)
    channel = Channel.by_kind(*label_counts([spans]))
    assert np.isfinite(PlantedRegression.fit([spans], channel, workers).coefficients).all()
