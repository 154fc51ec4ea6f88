"""Training with kernels made of kernels and with cosines: exactness of maps, files, bases, starts, choice of terms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from test_training import fit, toy_corpus

from kcrf_core.config import parse_config
from kcrf_core.corpora import Corpus
from kcrf_core.encoding import fit_encoding
from kcrf_core.errors import ConfigError, FileFormatError
from kcrf_core.features import KernelTerm, load_basis, save_basis, select_bases
from kcrf_core.files import read_container, write_container
from kcrf_core.kernels import gram
from kcrf_core.model import Model
from kcrf_core.objective.solvers import Observer
from kcrf_core.training import WarmStart

SUM = {"type": "sum", "parts": [{"type": "rbf", "features": ["c1"]}, {"type": "poly", "features": ["c0"], "weight": 2}]}
PRODUCT = {"type": "product", "parts": [{"type": "rbf", "features": ["c1"]}, {"type": "poly", "features": ["c0"]}]}
NESTED = {"type": "sum", "parts": [PRODUCT, {"type": "linear", "features": ["c0"], "cosine": True}]}
COMPOSITES = {"sum": SUM, "product": PRODUCT, "nested": NESTED, "cosine": SUM | {"cosine": True}}
composite = pytest.mark.parametrize("kernel", COMPOSITES.values(), ids=COMPOSITES)

TIGHT = {"sigma2": 1.0, "tolerance": 1e-7, "precision": "double"}


def terms(kernel, map_="full"):
    return {"terms": [{"kernel": kernel, "map": map_}, {"type": "edge"}]}


@composite
def test_a_saved_model_tags_as_before(rng, tmp_path, kernel):
    corpus, new = toy_corpus(rng), toy_corpus(rng, 20)
    new.columns[0][:3] = ["strange"] * 3
    model, _ = fit(corpus, {"sigma2": 1.0}, terms(kernel, {"type": "reduced", "size": 30}))
    model.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    assert again.terms[0].kernel == model.terms[0].kernel
    data = model.encoding.encode(new)
    np.testing.assert_array_equal(again.marginals(data), model.marginals(data))
    one, _ = fit(corpus, {"sigma2": 1.0}, terms(kernel, {"type": "reduced", "size": 30}), threads=1)
    one.save(tmp_path / "one.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()


@composite
def test_the_mean_diagonal_is_one(rng, kernel):
    corpus = toy_corpus(rng)
    model, _ = fit(corpus, {"sigma2": 1.0}, terms(kernel))
    inputs = model.encoding.inputs(model.encoding.encode(corpus), model.terms[0].features)
    np.testing.assert_allclose(model.terms[0].kernel.diagonal(inputs).mean(), 1, rtol=1e-12)


def test_a_sum_is_two_terms_with_one_variance(rng):
    """Lemma 5: the kernel of several terms is the sum of theirs."""
    corpus = toy_corpus(rng, 60)
    one, first = fit(corpus, TIGHT, terms(SUM))
    shares = one.terms[0].kernel.weights
    apart = [
        {"name": part["type"], "features": part["features"], "kernel": part["type"], "map": "full", "sigma2": share}
        for part, share in zip(SUM["parts"], shares, strict=True)
    ]
    _, second = fit(corpus, {**TIGHT}, {"terms": [*apart, {"type": "edge", "sigma2": 1.0}]})
    np.testing.assert_allclose(first.result.value, second.result.value, rtol=1e-6)


@composite
def test_an_earlier_model_is_its_own_start(rng, kernel):
    corpus = toy_corpus(rng, 60)
    old, first = fit(corpus, TIGHT, terms(kernel))
    _, again = fit(corpus, TIGHT, terms(kernel), start=WarmStart(old))
    assert again.result.reason == "certified" and again.result.passes < first.result.passes / 2
    np.testing.assert_allclose(again.result.value, first.result.value, rtol=2e-7)


def test_a_basis_file_keeps_the_kernel(rng, tmp_path, workers):
    corpus = toy_corpus(rng)
    config = parse_config(terms(NESTED, {"type": "reduced", "size": 25}) | {"training": {"sigma2": 1.0}})
    encoding, dataset = fit_encoding(config, corpus)
    basis = select_bases(encoding, dataset, config, workers, Observer())
    save_basis(tmp_path / "b.npz", basis, "digest")
    again = load_basis(tmp_path / "b.npz")
    assert again.terms[0].kernel == basis.terms[0].kernel and again.config == config
    direct, _ = fit(corpus, None, config.to_dict())
    through, _ = fit(corpus, None, config.to_dict(), basis=again)
    np.testing.assert_array_equal(through.terms[0].alpha, direct.terms[0].alpha)


def test_an_altered_kernel_in_a_file_is_a_clean_error(rng, tmp_path):
    model, _ = fit(toy_corpus(rng), {"sigma2": 1.0}, terms(SUM))
    model.save(tmp_path / "m.npz")
    contents = read_container(tmp_path / "m.npz", "model")
    contents.header["terms"][0]["kernel"]["parts"][0]["real"] = [7]
    write_container(tmp_path / "bad.npz", "model", contents.header, contents.arrays)
    with pytest.raises(FileFormatError, match="unknown kernel"):
        Model.load(tmp_path / "bad.npz")


def test_composites_are_terms_to_choose_from(rng):
    corpus = toy_corpus(rng, 300)
    raw = {
        "window": [0],
        "terms": [
            {"name": "both", "kernel": PRODUCT, "map": {"type": "reduced", "size": 30}},
            {"name": "alone", "features": ["c1"], "kernel": {"type": "rbf"}, "map": {"type": "reduced", "size": 30}},
            {"type": "edge"},
        ],
    }
    model, _ = fit(corpus, {"sigma2": 1.0}, raw, select_terms=True)
    assert "both" in [term.name for term in model.terms]


def test_a_part_that_names_no_feature_is_an_error(rng):
    wrong = {"type": "sum", "parts": [{"type": "rbf", "features": ["c9"]}, {"type": "linear"}]}
    with pytest.raises(ConfigError, match="no feature is called 'c9'"):
        fit(toy_corpus(rng), {"sigma2": 1.0}, terms(wrong))


# ----------------------------------------------------------------------------- cosine


@pytest.mark.parametrize(
    ("kernel", "features"),
    [
        ({"type": "linear", "cosine": True}, ["c0", "c1"]),
        ({"type": "poly", "degree": 2, "cosine": True}, ["c0"]),
        ({"type": "poly", "degree": 3, "cosine": True}, ["c0"]),
    ],
)
def test_explicit_cosines_are_those_of_the_full_map(rng, tmp_path, kernel, features):
    corpus, new = toy_corpus(rng, 60), toy_corpus(rng, 20)
    new.columns[0][:3] = ["strange"] * 3
    # Rare words have no value, so that lengths differ.
    raw = {
        "features": [{"column": "c0", "min_count": 40}, {"column": "c1"}],
        "terms": [{"kernel": kernel, "features": features}, {"type": "edge"}],
    }
    models = []
    for kind in ("explicit", "full"):
        raw["terms"][0]["map"] = kind
        models.append(fit(corpus, TIGHT, raw))
    (explicit, first), (full, second) = models
    assert isinstance(full.terms[0], KernelTerm) and not isinstance(explicit.terms[0], KernelTerm)
    np.testing.assert_allclose(first.result.value, second.result.value, rtol=1e-6)
    data = explicit.encoding.encode(new)
    np.testing.assert_allclose(explicit.marginals(data), full.marginals(data), atol=2e-3)
    explicit.save(tmp_path / "m.npz")
    again = Model.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.marginals(data), explicit.marginals(data))
    raw["terms"][0]["kernel"] = {**kernel, "cosine": False}
    assert abs(fit(corpus, TIGHT, raw)[1].result.value - first.result.value) > 1e-3


def test_a_cosine_that_is_no_flag_is_refused(rng, tmp_path):
    model, _ = fit(toy_corpus(rng), {"sigma2": 1.0, "cosine": True})
    model.save(tmp_path / "m.npz")
    contents = read_container(tmp_path / "m.npz", "model")
    assert contents.header["terms"][0]["cosine"] is True
    contents.header["terms"][0]["cosine"] = "yes"
    write_container(tmp_path / "bad.npz", "model", contents.header, contents.arrays)
    with pytest.raises(FileFormatError, match="cosine"):
        Model.load(tmp_path / "bad.npz")


# ----------------------------------------------------------------------------- pictures


def strokes(rng, sequences=60):
    """Pictures of 6x5 pixels with an upright or a lying stroke somewhere, and the label before drawn with a dot."""
    pixels, gold, lengths = [], [], rng.integers(1, 6, sequences)
    for _ in range(int(lengths.sum())):
        picture, lying = np.zeros((6, 5), int), bool(rng.integers(2))
        h, w = rng.integers(0, 4), rng.integers(0, 3)
        picture[h : h + 3, w] = 1
        if lying:
            picture[:] = 0
            picture[h, w : w + 3] = 1
        picture[rng.integers(6), rng.integers(5)] = 1
        pixels.append(picture.ravel())
        gold.append("l" if lying else "u")
    columns = [[str(value) for value in column] for column in np.array(pixels).T]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Corpus("strokes", (*columns, gold), offsets, np.arange(1, len(gold) + 1))


@pytest.mark.parametrize("map_", ["full", {"type": "reduced", "size": 60}])
def test_pictures_are_told_apart_by_their_strokes(rng, tmp_path, map_):
    corpus, new = strokes(rng), strokes(rng)
    gold = np.array(new.columns[-1])

    def errors(kernel):
        model, _ = fit(corpus, {"sigma2": 10.0}, terms(kernel, map_))
        model.save(tmp_path / "m.npz")
        return float(np.mean(np.array(Model.load(tmp_path / "m.npz").tag_corpus(new)) != gold))

    assert errors({"type": "image", "shape": "6x5"}) < 0.5 * errors("rbf")


def test_a_picture_of_another_size_is_an_error(rng):
    with pytest.raises(ConfigError, match="term 'node': kernel 'image': an image of 5x5 pixels has 25 real columns"):
        fit(strokes(rng, 5), {"sigma2": 1.0}, terms({"type": "image", "shape": [5, 5]}))


def test_pictures_within_a_sum(rng):
    corpus = strokes(rng)
    parts = [{"type": "image", "shape": "6x5"}, {"type": "linear", "features": ["c1*"]}]
    model, _ = fit(corpus, {"sigma2": 1.0}, terms({"type": "sum", "parts": parts}))
    inputs = model.encoding.inputs(model.encoding.encode(corpus), model.terms[0].features)
    K = gram(model.terms[0].kernel, inputs, inputs)
    np.testing.assert_allclose(np.diagonal(K).mean(), 1, rtol=1e-9)
    assert json.dumps(model.info["config"])
