"""Kernels whose settings make every k(x, x') zero or one are refused, with a setting that suits the data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kcrf_core import KernelCRF
from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, NumericError
from kcrf_core.kernels import Inputs, KernelConfig, fit_kernel
from kcrf_core.kernels.plain import DOUBTED_ROWS, MEDIAN_SAMPLE
from kcrf_core.objective.solvers import Observer, Progress
from kcrf_core.system import Workers
from kcrf_core.training import train
from listening import Recorder


def real_inputs(rows):
    rows = np.asarray(rows, dtype=float).reshape(len(rows), -1)
    N = len(rows)
    return Inputs(np.zeros((N, 0), np.int32), np.zeros(0, np.int64), rows, None, np.zeros(N))


def categorical_inputs(codes):
    codes = np.asarray(codes, dtype=np.int32)
    return Inputs(codes, codes.max(axis=0).astype(np.int64) + 1, np.zeros((len(codes), 0)), None, np.zeros(len(codes)))


def fitted(inputs, kind="rbf", **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit_kernel(KernelConfig(kind, settings), inputs, 0, {}, "node")


@pytest.fixture
def inputs(rng):
    return real_inputs(rng.normal(size=(300, 4)))


@pytest.mark.parametrize("gamma", [1e100, 1e38, 1e30, 1e10])
def test_a_kernel_that_finds_nothing_alike(inputs, gamma):
    with pytest.raises(ConfigError) as caught:
        fitted(inputs, gamma=gamma)
    message = str(caught.value)
    assert "term 'node'" in message and "is zero" in message and f"{gamma:g}" in message and "\n" not in message
    suitable = float(message.split("inputs is zero; ")[1].split()[0])
    assert suitable == pytest.approx(fitted(inputs, gamma=None).gamma, rel=0.01)
    fitted(inputs, gamma=suitable)


@pytest.mark.parametrize("gamma", [1e-300, 1e-100, 1e-30, 1e-18])
def test_a_kernel_that_finds_everything_alike(inputs, gamma):
    with pytest.raises(ConfigError, match="is one; "):
        fitted(inputs, gamma=gamma)


@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1.0, 30.0])
def test_other_widths_are_left_alone(inputs, gamma):
    assert fitted(inputs, gamma=gamma).gamma == gamma


def test_categorical_columns(rng):
    codes = categorical_inputs(rng.integers(0, 5, (400, 3)))
    assert fitted(codes, gamma=20.0).gamma == 20.0  # two columns of three alike: e^-40
    with pytest.raises(ConfigError, match="is zero"):
        fitted(codes, gamma=60.0)


@pytest.mark.parametrize("gamma", [1e-100, 1.0, 1e100])
def test_one_input_again_and_again_is_no_reason_to_refuse(gamma):
    assert fitted(real_inputs([[1.0, 2.0]] * 20), gamma=gamma).gamma == gamma
    assert fitted(real_inputs([[1.0, 2.0]]), gamma=gamma).gamma == gamma


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e3, 1e12])
def test_the_units_of_columns_do_not_matter(inputs, scale):
    scaled = real_inputs(inputs.real * scale)
    gamma = fitted(scaled, gamma=None).gamma
    assert fitted(scaled, gamma=gamma).gamma == gamma
    with pytest.raises(ConfigError, match="is zero"):
        fitted(scaled, gamma=gamma * 1e10)
    with pytest.raises(ConfigError, match="is one"):
        fitted(scaled, gamma=gamma * 1e-20)


def test_pairs_outside_a_sample_count(rng):
    """Rows far from each other, each with one near: a sample of pairs seldom has such a pair."""
    places = np.arange(4000.0) * 10
    doubled = real_inputs(np.concatenate([places, places + 0.5]))
    assert len(doubled) > MEDIAN_SAMPLE > DOUBTED_ROWS
    assert fitted(doubled, gamma=2.0).gamma == 2.0
    with pytest.raises(ConfigError, match="is zero"):
        fitted(real_inputs(places), gamma=2.0)


def test_pictures(rng):
    pictures = real_inputs(rng.normal(size=(60, 12)))
    settings = {"shape": (4, 3)}
    assert fitted(pictures, "image", **settings).gamma > 0
    with pytest.raises(ConfigError, match=r"kernel 'image'.* is zero"):
        fitted(pictures, "image", **settings, gamma=1e30)


@pytest.mark.parametrize("kind", ["sum", "product"])
def test_parts_of_other_kernels(rng, kind):
    corpus = corpus_of(rng)
    kernel = {"type": kind, "parts": [{"type": "rbf", "gamma": 1e30, "features": ["c0"]}, {"type": "linear"}]}
    with pytest.raises(ConfigError, match="is zero"):
        fit(corpus, kernel)


@pytest.mark.parametrize("settings", [{"coef0": 1e100}, {"coef0": 1e30}, {"gamma": 1e-30}])
@pytest.mark.parametrize("degree", [2, 10])
def test_a_polynomial_that_is_a_constant(inputs, settings, degree):
    with pytest.raises((ConfigError, NumericError)) as caught:
        fitted(inputs, "poly", degree=degree, **settings)
    assert "auto" in str(caught.value) and "\n" not in str(caught.value)
    assert degree == 10 or "is one" in str(caught.value) or "mean diagonal" in str(caught.value)


@pytest.mark.parametrize("settings", [{"gamma": 1e100}, {"gamma": 1e40, "coef0": 0}, {"gamma": 1e-100, "coef0": 0}])
def test_a_polynomial_beyond_all_numbers(inputs, settings):
    with pytest.raises(NumericError, match="mean diagonal"):
        fitted(inputs, "poly", degree=10, **settings)


def test_ordinary_polynomials(inputs):
    for settings in ({}, {"coef0": 0}, {"coef0": 1e6}, {"gamma": 1e-6}, {"gamma": 1e6, "degree": 5}):
        fitted(inputs, "poly", **{"degree": 2, **settings})


@pytest.mark.parametrize("setting", ["gamma", "coef0"])
def test_settings_have_a_limit(setting):
    with pytest.raises(ConfigError, match=rf"'{setting}' must be at most 1e\+100, not 1e\+?308"):
        parse_config({"terms": [{"kernel": {"type": "poly", setting: 1e308}}, {"type": "edge"}]})


def corpus_of(rng, N=60):
    columns = ([f"{value:.3f}" for value in rng.normal(size=N)], [f"{v:.3f}" for v in rng.normal(size=N)])
    labels = ["AB"[i % 2] for i in range(N)]
    return Corpus("toy", (*columns, labels), np.arange(0, N + 1, 6), np.arange(1, N + 1))


def fit(corpus, kernel, observer=None):
    config = parse_config({"terms": [{"kernel": kernel}, {"type": "edge"}], "training": {"sigma2": 1.0}})
    with Workers(1) as workers, warnings.catch_warnings():
        warnings.simplefilter("error")
        return train(*fit_encoding(config, corpus), config, workers=workers, observer=observer or Observer())


@pytest.mark.parametrize("gamma", [1e38, 1e30, 1e-30])
def test_training_refuses_them_at_once(rng, gamma):
    events = Recorder()
    with pytest.raises(ConfigError, match="suits this data"):
        fit(corpus_of(rng), {"type": "rbf", "gamma": gamma}, events)
    assert not events.of(Progress)
    X = [rng.normal(size=(5, 2)) for _ in range(10)]
    with pytest.raises(ValueError, match="suits this data"):
        KernelCRF(kernel="rbf", gamma=gamma).fit(X, [["a", "b", "a", "b", "b"]] * 10)


def test_inputs_that_are_all_alike_are_told_of():
    notes = []

    class Notes(Observer):
        def tell(self, event):
            notes.append(getattr(event, "text", ""))

    corpus = Corpus("toy", (["w"] * 6, ["A", "B"] * 3), np.array([0, 3, 6]), np.arange(1, 7))
    kernel = {"type": "rbf", "gamma": 1e30}
    features = [{"column": "c0", "window": [0]}]
    raw = {"features": features, "terms": [{"kernel": kernel}, {"type": "edge"}], "training": {"sigma2": 1.0}}
    config = parse_config(raw)
    with Workers(1) as workers:
        train(*fit_encoding(config, corpus), config, workers=workers, observer=Notes())
    assert any("all inputs are alike" in note for note in notes)
