"""Arithmetic at its edges: finite results that are probabilities, or an error that names cause and remedy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.chains import chain
from kcrf_core.corpora import Corpus
from kcrf_core.errors import NumericError
from kcrf_core.kernels.plain import RBFKernel
from kcrf_core.maps.factorisation import ThreadSource
from problems import random_inputs

KERNELS = {
    "linear": {},
    "poly": {"kernel": "poly", "degree": 3},
    "poly without a constant": {"kernel": "poly", "degree": 2, "coef0": 0},
    "rbf": {"kernel": "rbf", "size": 60},
    "nearly constant": {"kernel": "rbf", "size": 60, "gamma": 1e-12},
    "nearly the identity": {"kernel": "rbf", "size": 60, "gamma": 40.0},
    "second order": {"order": 2},
}


def repeated(corpus, times):
    """Every row several times over: kernel matrices of low rank."""
    offsets = np.concatenate([[0], np.cumsum(np.tile(np.diff(corpus.offsets), times))])
    return Corpus(corpus.source, tuple(column * times for column in corpus.columns), offsets,
                  np.arange(1, times * corpus.positions + 1))  # fmt: skip


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("sigma2", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("options", KERNELS.values(), ids=KERNELS)
def test_marginals_are_probabilities(rng, options, sigma2, precision):
    corpus = repeated(toy_corpus(rng, 20), 3)
    more = {"sigma2": sigma2, "precision": precision, "max_passes": 100}
    model, report = fit(corpus, options | more)
    assert np.isfinite(report.result.value) and report.result.lower <= report.result.value
    marginals = model.marginals(model.encoding.encode(toy_corpus(rng, 30)))
    assert np.all(marginals >= 0)
    np.testing.assert_allclose(marginals.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("map_", ["full", "reduced"])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton", "block-jacobi"])
def test_kernel_matrices_without_full_rank(rng, solver, map_):
    """A linear kernel on two columns has rank two, however many pivots are asked for."""
    corpus = repeated(toy_corpus(rng, 15), 4)
    raw = {"features": [{"column": "c1", "type": "real", "window": [0, 1]}]}
    raw |= {"terms": [{"kernel": {"type": "linear"}, "map": map_}, {"type": "edge"}]}
    found = {}
    for kind in (map_, "explicit"):
        raw["terms"][0]["map"] = kind
        _, report = fit(corpus, {"sigma2": 1.0, "tolerance": 1e-6, "precision": "double", "solver": solver}, raw)
        assert report.result.gap <= 1e-6
        found[kind] = report.result.value
    np.testing.assert_allclose(found[map_], found["explicit"], rtol=1e-5)


@pytest.mark.parametrize("options", [KERNELS["linear"], KERNELS["poly"], KERNELS["rbf"], KERNELS["second order"]])
def test_single_precision_finds_the_same_optimum(rng, options):
    corpus, new = toy_corpus(rng), toy_corpus(rng, 100)
    found = {}
    for precision in ("single", "double"):
        model, report = fit(corpus, options | {"sigma2": 1.0, "precision": precision, "tolerance": 1e-4})
        found[precision] = report.result.value, model.marginals(model.encoding.encode(new))
    np.testing.assert_allclose(found["single"][0], found["double"][0], rtol=1e-4)
    np.testing.assert_allclose(found["single"][1], found["double"][1], atol=0.02)


@pytest.mark.parametrize("size", [1e3, 1e5, 1e8])
@pytest.mark.parametrize("triples", [False, True])
def test_potentials_far_beyond_the_range_of_exp(rng, size, triples):
    T, Y = 30, 4
    edges = chain.Edges(size * rng.normal(size=(Y, Y)), size * rng.normal(size=Y), size * rng.normal(size=Y))
    if triples:
        edges = replace(edges, triples=size * rng.normal(size=(Y, Y, Y)))
    found = chain.marginals(size * rng.normal(size=(T, Y)), edges, np.array([0, 1, 7, T]))
    assert np.isfinite(found.log_z).all()
    np.testing.assert_allclose(found.node.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found.edge.sum(), T - 3, atol=1e-6)
    if triples:
        np.testing.assert_allclose(found.triple.sum(), T - 5, atol=1e-6)


def test_sums_beyond_the_range_of_numbers_are_an_error():
    with pytest.raises(NumericError, match="finite"):
        chain.marginals(np.full((4, 3), 1e308), chain.Edges.zeros(3), np.array([0, 4]))


def test_a_kernel_that_is_zero_everywhere(rng):
    corpus = toy_corpus(rng)
    corpus.columns[1][:] = ["0"] * corpus.positions
    raw = {"features": [{"column": "c1", "type": "real", "scale": "none"}]}
    with pytest.raises(NumericError, match=r"scale the columns|zero at every position"):
        fit(corpus, {"kernel": "poly", "coef0": 0, "gamma": 1.0, "map": "reduced", "sigma2": 1.0}, raw)


def test_pivots_that_are_mixtures_of_others_are_found(rng, workers):
    """Each comes twice: the second is explained by the first."""
    inputs = random_inputs(rng, 6, 1, 2)
    twice = inputs.take(np.array([0, 1, 0, 2, 1, 3, 3]))
    source = ThreadSource(twice, RBFKernel(0.7), workers, np.dtype(np.float64))
    assert source.independent(np.arange(7), 1e-10).tolist() == [0, 1, 3, 5]
    source = ThreadSource(inputs, RBFKernel(0.7), workers, np.dtype(np.float64))
    assert source.independent(np.arange(4), 1e-10).tolist() == [0, 1, 2, 3]
