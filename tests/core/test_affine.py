"""The polynomial kernel of degree 1 by explicit features: the same function as by pivots."""

from __future__ import annotations

import numpy as np
import pytest

from kcrf_core.config import parse_config
from kcrf_core.corpora import read_corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.features import AffineTerm
from kcrf_core.features.linear import affine_columns
from kcrf_core.files import read_container, write_container
from kcrf_core.kernels import Inputs, Pivots, PolynomialKernel
from kcrf_core.maps import ExplicitMap
from kcrf_core.model import Model
from kcrf_core.system import Workers
from kcrf_core.training import train


@pytest.fixture
def corpus(sample_data):
    return read_corpus(sample_data / "pitch_accent.conll").subset(range(80))


def fitted(corpus, terms, solver, tolerance=1e-6):
    raw = {"terms": terms, "training": {"sigma2": 2.0, "solver": solver, "tolerance": tolerance}}
    config = parse_config(raw)
    encoding, dataset = fit_encoding(config, corpus)
    with Workers(1) as workers:
        return *train(encoding, dataset, config, workers=workers), dataset


def term(kind, **map_):
    return {"type": kind, "kernel": {"type": "poly", "degree": 1, "gamma": 0.3, "coef0": 0.7}, "map": map_}


def test_its_columns_make_the_kernel():
    rng = np.random.default_rng(0)
    inputs = Inputs(rng.integers(-1, 3, (9, 2), dtype=np.int32), np.array([3, 3]), rng.normal(size=(9, 4)), None,
                    np.zeros(9))  # fmt: skip
    kernel = PolynomialKernel(1, 0.4, 1.5, 0.2)
    phi = ExplicitMap(*affine_columns(kernel, inputs), np.float64)
    W = np.eye(phi.size)
    rows = np.zeros((9, phi.size))
    phi.add_scores(phi.prepare(W, np.dtype(np.float64)), slice(0, 9), rows)
    np.testing.assert_allclose(rows @ rows.T, Pivots(inputs, kernel).gram(inputs), rtol=1e-12)


@pytest.mark.parametrize("kind", ["node", pytest.param("edge-x", marks=pytest.mark.slow)])
def test_it_is_the_model_of_all_pivots(corpus, kind):
    others = [{"type": "edge"}]
    explicit, report, data = fitted(corpus, [term(kind, type="explicit"), *others], "lbfgs")
    full, reference, _ = fitted(corpus, [term(kind, type="full"), *others], "block-jacobi")
    assert isinstance(explicit.terms[0], AffineTerm)
    np.testing.assert_allclose(report.result.value, reference.result.value, rtol=3e-6)
    np.testing.assert_allclose(explicit.marginals(data), full.marginals(data), rtol=0, atol=2e-2)


def test_it_is_stored(corpus, tmp_path):
    model, _, data = fitted(corpus, [term("node", type="explicit"), {"type": "edge"}], "lbfgs", 1e-3)
    path = tmp_path / "m.npz"
    model.save(path)
    assert np.array_equal(Model.load(path).marginals(data), model.marginals(data))
    contents = read_container(path, "model")
    arrays = contents.arrays | {"term0.bias": np.zeros(7)}
    header = {key: value for key, value in contents.header.items() if key not in ("magic", "kind", "format", "version")}
    write_container(tmp_path / "bad.npz", "model", header, arrays)
    with pytest.raises(FileFormatError, match="bias"):
        Model.load(tmp_path / "bad.npz")


def test_higher_degrees_want_pivots(corpus):
    wrong = term("node", type="explicit")
    wrong["kernel"]["degree"] = 2
    with pytest.raises(ConfigError, match="there are real columns"):
        fitted(corpus, [wrong], "lbfgs")
